"""One turn: everything a prompt causes, inside one cancel scope."""

import asyncio
import logging

import anyio

from hark.engine.services import EngineServices
from hark.engine.session.journal_writer import JournalWriter
from hark.engine.turn.model_calls import ReplyTooLong
from hark.engine.turn.quiet_timer import QuietActions, QuietTimer
from hark.engine.turn.step import LiveTurn, StepRunner
from hark.engine.turn.timeline import Timeline
from hark.engine.turn.transcript import close_calls
from hark.engine.turn.turn_io import TurnIO
from hark.protocol.commands import PAUSE, Interrupt
from hark.protocol.outcomes import Completed, ErrorInfo, Failed, Interrupted, LimitReached, Outcome
from hark.protocol.provider import ProviderError
from hark.protocol.receipts import Settled
from hark.protocol.records import AnyRecord, CallEnded, TurnEnded, TurnStarted
from hark.protocol.store import StoreError

COMPACT = "compact"
LOG = logging.getLogger(__name__)


class Turn:
    """A turn. It can be interrupted as soon as it is created, before any of its work runs.

    Each turn has its own cancel scope, so an interrupt that arrives late cancels nothing.
    """

    def __init__(self, started: TurnStarted, services: EngineServices, journal: JournalWriter, io: TurnIO) -> None:
        self.id = started.turn
        self._started = started
        self.steering = io.steering
        self.settled: asyncio.Future[Settled | None] = asyncio.get_running_loop().create_future()
        self._services = services
        self._journal = journal
        self._io = io
        self._timeline = Timeline()
        self._scope = anyio.CancelScope()
        self._interrupt: Interrupt | None = None
        runner = self._step_runner = StepRunner(services, journal, io, self._timeline)
        actions = QuietActions(lambda: runner.last_event_at, runner.describe_wait, runner.retry, io.stop)
        self._quiet_timer = QuietTimer(io, services.rules.limits, actions)

    @property
    def services(self) -> EngineServices:
        """The services with the settings that the turn started with."""
        return self._services

    @property
    def live(self) -> LiveTurn:
        """The parts of the turn that are not in the journal yet."""
        return self._step_runner.live

    def interrupt(self, interrupt: Interrupt) -> None:
        """Cancel the turn. Only the first interrupt counts and is reported, but a later stop also ends children."""
        if self._interrupt is None:
            self._interrupt = interrupt
            self._io.is_cut_by_message = not interrupt.is_stop
            self._timeline.mark_interrupt()
            self._scope.cancel()
        elif interrupt.is_stop:
            self._io.is_cut_by_message = False

    def settle(self, settled: Settled | None) -> None:
        """Notify waiting tasks that the turn's end is durable. `settled` is None if the session changed its owner."""
        if not self.settled.done():
            self.settled.set_result(settled)

    async def run(self) -> list[AnyRecord]:
        """Run the turn to its end and return its final records, which are not written yet.

        Raises:
            StoreError: The journal can't be written.
        """
        outcome: Outcome | None = None
        limits = self._services.rules.limits
        if limits.seconds is not None:
            self._scope.deadline = anyio.current_time() + limits.seconds
        try:
            with self._quiet_timer, self._scope:
                outcome = await self._run_work()
        finally:
            self._step_runner.release()
        return self._final_records(outcome or self._cancelled_outcome())

    async def _run_work(self) -> Outcome:
        try:
            if self._started.task == COMPACT:
                return Completed(await self._step_runner.compact(instructions=self._started.instructions))
            return await self._run_steps()
        except ProviderError as error:
            return Failed(ErrorInfo(error.code, str(error)))
        except ReplyTooLong as error:
            return error.limit
        except StoreError:
            raise
        except Exception as error:
            LOG.exception("turn %s failed", self.id)
            return Failed(ErrorInfo("internal", f"Internal error in Hark: {type(error).__name__}: {error}"))

    async def _run_steps(self) -> Outcome:
        await self._step_runner.load_prior_usage()
        number = 0
        while True:
            number += 1
            limit = self._step_runner.meter.check_limits(number)
            if limit is not None:
                return limit
            if number > 1 and self._is_pausing:
                return Interrupted(PAUSE)
            # Yields to the event loop, so that even a provider that never waits can be interrupted.
            await anyio.lowlevel.checkpoint()
            message = await self._step_runner.run(number)
            if not message.calls:
                return Completed(message.text)

    @property
    def _is_pausing(self) -> bool:
        state = self._journal.state.turn
        return state is not None and state.is_pausing

    def _cancelled_outcome(self) -> Outcome:
        if self._interrupt is None:
            seconds = self._services.rules.limits.seconds
            return LimitReached("seconds", f"Time limit reached ({seconds:g} s).")
        return Interrupted(self._interrupt.source, tuple(self._step_runner.calls.abandoned))

    def _final_records(self, outcome: Outcome) -> list[AnyRecord]:
        """Return the turn's final records: the partial reply, a result for every open call, and the outcome."""
        at = self._services.clock.now()
        records: list[AnyRecord] = []
        partial = self._step_runner.partial_record(self._interrupt.shown if self._interrupt else None)
        if partial is not None:
            records.append(partial)
        open_turn = self._journal.state.turn
        assert open_turn is not None, "a turn settles once"
        calls = close_calls(open_turn.calls.values(), (), "interrupted")
        records.extend(CallEnded(turn=self.id, result=result, at=at) for result in calls)
        timings = self._timeline.timings()
        usage, cost = self._step_runner.meter.usage, self._step_runner.meter.cost
        task = self._started.task
        records.append(
            TurnEnded(turn=self.id, outcome=outcome, timings=timings, usage=usage, cost=cost, task=task, at=at)
        )
        return records
