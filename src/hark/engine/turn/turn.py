"""One turn: everything a prompt causes, inside one cancel scope."""

import asyncio
import logging

import anyio

from hark.engine.services import EngineServices
from hark.engine.session.log import Log
from hark.engine.turn.model_calls import ReplyTooLong
from hark.engine.turn.step import Steps
from hark.engine.turn.timeline import Timeline
from hark.engine.turn.transcript import close_calls
from hark.engine.turn.turn_io import TurnIO
from hark.protocol.commands import Interrupt
from hark.protocol.outcomes import Completed, ErrorInfo, Failed, Interrupted, LimitReached, Outcome
from hark.protocol.provider import ProviderError
from hark.protocol.receipts import Settled
from hark.protocol.records import AnyRecord, CallEnded, TurnEnded, TurnStarted
from hark.protocol.store import StoreError

COMPACT = "compact"
LOG = logging.getLogger(__name__)


class Turn:
    """A turn can be interrupted from the moment it is made, before anything of it runs.

    Its scope belongs to it alone: an interrupt that comes when the turn is over cancels nothing.
    """

    def __init__(self, started: TurnStarted, bench: EngineServices, log: Log, lines: TurnIO) -> None:
        self.id = started.turn
        self._started = started
        self.steering = lines.steering
        self.settled: asyncio.Future[Settled | None] = asyncio.get_running_loop().create_future()
        self._bench = bench
        self._log = log
        self._lines = lines
        self._timeline = Timeline()
        self._scope = anyio.CancelScope()
        self._interrupt: Interrupt | None = None
        self._steps = Steps(bench, log, lines, self._timeline)

    def interrupt(self, interrupt: Interrupt) -> None:
        """End the turn, at once and once: the first wish is the one that is told."""
        if self._interrupt is None:
            self._interrupt = interrupt
            self._timeline.interrupted()
            self._scope.cancel()

    def settle(self, settled: Settled | None) -> None:
        """Tell whoever waits that the turn's end is durable; None when it is out of this process's hands."""
        if not self.settled.done():
            self.settled.set_result(settled)

    async def run(self) -> list[AnyRecord]:
        """Run to the end, whatever it is; return the records that settle it, which are not written yet.

        Raises:
            StoreError: The journal can't be written; nothing can be settled here.
        """
        outcome: Outcome | None = None
        limits = self._bench.rules.limits
        if limits.seconds is not None:
            self._scope.deadline = anyio.current_time() + limits.seconds
        try:
            with self._scope:
                outcome = await self._work()
        finally:
            self._steps.let_go()
        return self._settlement(outcome or self._cut_outcome())

    async def _work(self) -> Outcome:
        try:
            if self._started.task == COMPACT:
                return Completed(await self._steps.compact(instructions=self._started.instructions))
            return await self._take_steps()
        except ProviderError as error:
            return Failed(ErrorInfo(error.code, str(error)))
        except ReplyTooLong as error:
            return error.limit
        except StoreError:
            raise
        except Exception as error:
            LOG.exception("turn %s failed", self.id)
            return Failed(ErrorInfo("internal", f"Something in Hark went wrong: {type(error).__name__}: {error}"))

    async def _take_steps(self) -> Outcome:
        await self._steps.begin()
        number = 0
        while True:
            number += 1
            limit = self._steps.meter.reached(number)
            if limit is not None:
                return limit
            # Even a provider that never waits must leave an opening for an interrupt.
            await anyio.lowlevel.checkpoint()
            message = await self._steps.run(number)
            if not message.calls:
                return Completed(message.text)

    def _cut_outcome(self) -> Outcome:
        if self._interrupt is None:
            seconds = self._bench.rules.limits.seconds
            return LimitReached("seconds", f"The turn took {seconds} seconds, as long as it may.")
        return Interrupted(self._interrupt.source, tuple(self._steps.calls.abandoned))

    def _settlement(self, outcome: Outcome) -> list[AnyRecord]:
        """Return what stays of the turn: what the person saw, a result for every call, and how it ended."""
        at = self._bench.clock.now()
        records: list[AnyRecord] = []
        partial = self._steps.partial(self._interrupt.shown if self._interrupt else None)
        if partial is not None:
            records.append(partial)
        open_turn = self._log.state.turn
        assert open_turn is not None, "a turn settles once"
        calls = close_calls(open_turn.calls.values(), (), "interrupted")
        records.extend(CallEnded(turn=self.id, result=result, at=at) for result in calls)
        timings = self._timeline.timings()
        usage, cost = self._steps.meter.usage, self._steps.meter.cost
        records.append(TurnEnded(turn=self.id, outcome=outcome, timings=timings, usage=usage, cost=cost, at=at))
        return records
