"""One conversation: it decides on each command immediately, and runs one turn at a time."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import anyio

from hark.engine.services import EngineServices
from hark.engine.session import decide, decide_changes
from hark.engine.session.announcements import Announcement, apply_records, publish, set_receipts
from hark.engine.session.decide import WORK_CLOSED, WORK_LOST
from hark.engine.session.decision_context import DecisionContext
from hark.engine.session.fanout import Fanout
from hark.engine.session.in_flight import InFlightMessages
from hark.engine.session.journal_writer import JournalWriter
from hark.engine.session.questions import Questions, TurnQuestions
from hark.engine.session.signal import Signal
from hark.engine.session.state import SessionState
from hark.engine.turn.turn import Turn
from hark.engine.turn.turn_io import TurnIO
from hark.protocol.commands import (
    CRASH,
    NEW_MESSAGE,
    RESET,
    SHUTDOWN,
    Answer,
    ChangeCommand,
    Compact,
    Delivery,
    EndWork,
    Interrupt,
    Reset,
    Say,
)
from hark.protocol.events import QuestionAsked
from hark.protocol.names import is_child, is_scheduled
from hark.protocol.outcomes import Interrupted
from hark.protocol.receipts import Refusal, Settled
from hark.protocol.records import AnyRecord, CommandRefused, RouteChosen, SessionReset, TurnEnded, TurnStarted
from hark.protocol.store import InboxEntry, Lease, StoreError

FENCED = "the session was taken over"
LAST_MESSAGES_SECONDS = 1.0


class Session:
    """A session that this process owns. Decisions never wait, so two decisions can't interleave.

    Every public method may be called from any task of the event loop; `run` is the session's own task.
    """

    def __init__(self, lease: Lease, services: EngineServices, fanout: Fanout, in_flight: InFlightMessages) -> None:
        self.id = lease.session
        self.state = SessionState()
        self.published = 0  # the number of records that are durable and published to the readers
        self._services = services
        self._fanout = fanout
        self._in_flight = in_flight
        self._questions = Questions(fanout, services.clock, can_ask=services.rules.can_ask)
        self._journal = JournalWriter(services.store.journal, lease, self.state)
        self._journal.on_durable(self._publish)
        self._journal.on_failure(lambda _: self._fence())
        # Turns that are started but not durably ended, in order. The first is the one that users see running.
        self._turns: list[tuple[Turn, asyncio.Future[None]]] = []
        self._changed = Signal()
        self._verified_lapses = services.lease_renewal.lapses
        self._is_between_turns = False  # the last turn has ended, and a queued message is about to start the next one
        self._is_closing = False
        self._is_fenced = False
        self.is_over = False

    @property
    def turn(self) -> Turn | None:
        """The turn that users see running, until its end is durable."""
        return self._turns[0][0] if self._turns else None

    @property
    def is_idle(self) -> bool:
        """True when no turn is running, and no queued message may run."""
        return not self._turns and (not self.state.queue or self.state.is_held or self._services.rules.is_paused)

    # Commands.

    def process_entry(self, entry: InboxEntry) -> bool:
        """Process an inbox entry. Return False if the session is closing or earlier entries must be read first."""
        if entry.seq <= self.state.cursor:
            return True
        if entry.seq > self.state.cursor + 1 or self._is_closing:
            return False
        context = self._context(entry.seq)
        match entry.command:
            case Say() as say:
                self._process_say(say, context)
            case Interrupt() as interrupt:
                self._process_interrupt(interrupt, context)
            case Answer() as answer:
                is_open = self._questions.is_open(answer.question)
                self._append(*decide.on_answer(answer, context, is_open=is_open))
                self._questions.answer(answer.question, answer.text)
            case command:
                self._append(*decide_changes.on_change(self.state, command, context))
                self._act_after(command)
        return True

    def interrupt(self, interrupt: Interrupt) -> Turn | None:
        """Cancel the running turn in the same event-loop tick. Return the turn, or None if that turn is not running.

        Without a turn name, cancel the newest turn, which may start while the previous turn's end is being written.
        """
        turn = next((turn for turn, _ in reversed(self._turns) if interrupt.turn in ("", turn.id)), None)
        if turn is not None or not interrupt.turn:
            self._stop_work(interrupt)
        named = Interrupt(interrupt.id, interrupt.source, turn.id if turn else interrupt.turn, interrupt.shown)
        if turn is not None:
            turn.interrupt(named)
        self._append(*decide.on_interrupt(self.state, named, self._services.rules.after_stop, self._context()))
        return turn

    async def change(self, command: ChangeCommand) -> Refusal | None:
        """Change the queue, the route or another setting. Return a refusal, or None when the change is durable."""
        if self._is_closing and isinstance(command, Compact):
            return Refusal("closing", "Hark is shutting down.")  # no task would run that turn
        records = decide_changes.on_change(self.state, command, self._context())
        last = records[-1]
        if isinstance(last, CommandRefused):
            return Refusal(last.code, last.message)
        durable = self._append(*records)
        self._act_after(command)
        await durable
        return None

    def _act_after(self, command: ChangeCommand) -> None:
        """Carry out a recorded change: start a turn that ended work may start, or stop the work of a reset."""
        if isinstance(command, EndWork):
            self.start_next()
        elif isinstance(command, Reset):
            if self.state.turn is not None:
                self._last_turn().interrupt(Interrupt(command.id, RESET, self.state.turn.id))
            self._services.resets.notify((self.id, command))

    def start_next(self) -> None:
        """Start the next turn, if no turn is running and a message or a report may start one."""
        if not self._is_closing and not self._is_between_turns:
            self._append(*decide.on_ready(self.state, self._context()))

    def _stop_work(self, interrupt: Interrupt) -> None:
        """If the interrupt is a stop, hold wake-ups and notify the owner of the session's children."""
        if interrupt.is_stop:
            self._append(*decide.on_stop(self.state, self._context()))
            self._services.stopped.notify(self.id)

    def answer(self, answer: Answer) -> Refusal | None:
        """Answer a question from the running turn. Return a refusal if that is not possible."""
        if self._questions.answer(answer.question, answer.text):
            return None
        return Refusal("not_asked", "That question is no longer open.")

    @property
    def open_questions(self) -> list[str]:
        """The ids of the unanswered questions, oldest first."""
        return self._questions.open_ids

    @property
    def open_question_events(self) -> list[QuestionAsked]:
        """The unanswered questions as events, for readers that join late."""
        return self._questions.open_events(self.id)

    def close(self, source: str = SHUTDOWN) -> None:
        """Stop the running turn, then end `run`. Queued messages remain for the next owner."""
        self._is_closing = True
        for turn, _ in self._turns:
            turn.interrupt(Interrupt(self._services.clock.new_id(), source))
        self._changed.set()

    def drain(self) -> None:
        """Let the running turn finish, then end `run`. Queued messages remain for the next owner."""
        self._is_closing = True
        self._changed.set()

    def drop_callbacks(self) -> None:
        """Drop all callbacks after the session has closed, so that their memory is freed immediately."""
        self.is_over = True
        self._journal.clear_callbacks()

    def on_durable(self, callback: Callable[[AnyRecord], None]) -> None:
        """Call `callback` for each record that becomes durable from now on, in order."""
        self._journal.on_durable(lambda record, _: callback(record))

    @property
    def has_crashed_turn(self) -> bool:
        """True when the last turn was found open, because of a crash or a takeover."""
        end = self.state.last_end
        return end is not None and end.outcome == Interrupted(CRASH)

    async def flush(self) -> None:
        """Wait until all decisions are durable.

        Raises:
            StoreError: The records can't be written.
        """
        await self._journal.flush()

    async def check_ownership(self) -> None:
        """Stop the session if another process owns it. A turn that writes nothing can't detect that.

        Raises:
            StoreError: Another process owns the session, or the store can't be reached.
        """
        if self._verified_lapses != self._services.lease_renewal.lapses:
            await self._verify_ownership()
        known = self.state.length
        found = await self._services.store.journal.read(self.id, known)
        if known + len(found) > self.state.length:
            self._fence()

    # The session's own task.

    async def load(self, published: int | None = None) -> None:
        """Read the journal, close a turn that a crash left open, and process the inbox.

        `published` is the number of records already published to local readers; None for all existing records.
        """
        records = await self._services.store.journal.read(self.id)
        self._fanout.start_at(len(records) + 1)
        self._apply_journal(records, len(records) if published is None else published)
        self.published = len(records)
        entries = await self._services.store.inbox.entries_after(self.id, self.state.cursor)
        with self._journal.announce_together():
            self._append(*decide.on_load(self.state, self._context()))
            alive = [work for session, work in self._services.running_work if session == self.id]
            wakes = not is_child(self.id)  # no user would see a turn of a child
            self._append(*decide.end_all_work(self.state, WORK_LOST, self._context(), wakes=wakes, alive=alive))
            self._process_backlog(entries)

    def _apply_journal(self, records: list[AnyRecord], published: int) -> None:
        """Apply the journal's records, and publish the previous owner's records that are new to local readers."""
        for position, announcements in enumerate(apply_records(self.id, self.state, records), 1):
            if position > published:
                publish(announcements, self._in_flight, self._fanout)
            else:
                set_receipts(announcements, self._in_flight)

    async def run(self) -> None:
        """Run turns until `close`. Cancelling leaves an open turn, like a crash.

        Raises:
            StoreError: The journal can't be written, or another process owns it.
        """
        while True:
            while not self._turns and not self._is_closing:
                self._changed.clear()
                await self._changed.wait()
            if not self._turns:
                if not self._is_fenced:
                    self._append(*decide.end_all_work(self.state, WORK_CLOSED, self._context(), wakes=False))
                return await self._journal.flush()
            turn, is_durable = self._turns[0]
            await is_durable
            await self._end_turn(await turn.run())

    async def _end_turn(self, records: list[AnyRecord]) -> None:
        """Append a turn's last records, and start the next turn.

        A queued message waits until the end is published, because a steer that is sent before that runs first.
        """
        self._is_between_turns = decide.starts_queued_message(self.state)
        starts_next = not self._is_closing and not self._is_between_turns
        await self._append(*decide.on_end(self.state, records, self._context(), starts_next=starts_next))
        if self._is_between_turns:
            await self._read_last_messages()
            self._is_between_turns = False
            self.start_next()

    async def _read_last_messages(self) -> None:
        """Process the messages that were sent before the turn ended, also by other processes."""
        with anyio.move_on_after(LAST_MESSAGES_SECONDS), suppress(StoreError):
            await self._in_flight.wait_until_stored()
            for entry in await self._services.store.inbox.entries_after(self.id, self.state.cursor):
                self.process_entry(entry)

    # Decisions.

    def _process_say(self, say: Say, context: DecisionContext) -> None:
        if refusal := decide.on_full_queue(self.state, say, context):
            self._append(*refusal)
            return
        stop = self._in_flight.find_stop(say.id)
        is_running = self.state.turn is not None
        if is_running and say.delivery is Delivery.INTERRUPT and stop is None:
            turn = self._last_turn()
            shown = say.shown.characters if say.shown and say.shown.turn == turn.id else None
            turn.interrupt(Interrupt(say.id, NEW_MESSAGE, turn.id, shown))
        if self._is_between_turns and stop is None:
            self._append(*decide.on_backlog(self.state, say, context))
        else:
            self._append(*decide.on_say(self.state, say, context, is_stopped=stop is not None))
        if stop is not None:  # a message that was sent before the stop does not allow wake-ups again
            self._append(*decide.on_stop(self.state, self._context()))
        if is_running and say.delivery is Delivery.STEER:
            self._last_turn().steering.set()
        if not is_running and self._turns and stop is not None:
            self._last_turn().interrupt(stop)

    def _process_backlog(self, entries: list[InboxEntry]) -> None:
        """Queue all entries that arrived while no process owned the session, then start the first turn.

        A stop on an in-flight message applies to all entries up to that message. Later entries are processed next.
        """
        stops = [self._in_flight.find_stop(entry.command.id) for entry in entries]
        stopped = max((place for place, stop in enumerate(stops, 1) if stop is not None), default=len(entries))
        for entry in entries[:stopped]:
            if isinstance(entry.command, Say):
                self._append(*decide.on_backlog(self.state, entry.command, self._context(entry.seq)))
            elif isinstance(entry.command, EndWork):
                self._append(*decide_changes.on_change(self.state, entry.command, self._context(entry.seq)))
            else:
                self.process_entry(entry)
        self._append(*decide.on_ready(self.state, self._context()))
        stop = stops[stopped - 1] if stops else None
        if stop is not None:
            self.interrupt(stop)
        for entry in entries[stopped:]:
            self.process_entry(entry)

    def _process_interrupt(self, interrupt: Interrupt, context: DecisionContext) -> None:
        """Process an interrupt from another process. An interrupt without a turn name stops the running turn."""
        turn = self.state.turn.id if self.state.turn else ""
        named = Interrupt(interrupt.id, interrupt.source, interrupt.turn or turn, interrupt.shown)
        if named.turn == turn:
            self._stop_work(named)
        if turn and named.turn == turn:
            self._last_turn().interrupt(named)
        self._append(*decide.on_interrupt(self.state, named, self._services.rules.after_stop, context))

    def _last_turn(self) -> Turn:
        return self._turns[-1][0]

    def _append(self, *records: AnyRecord) -> asyncio.Future[None]:
        """Append records. A turn that they start exists immediately, but runs only once its start is durable."""
        future = self._journal.append(*records)
        for record in records:
            if isinstance(record, TurnStarted):
                # later setting changes apply to the next turn
                services = self._services.with_settings(self._services.current.settings)
                questions = TurnQuestions(self._questions, record.turn, self._question_timeout(record))
                stop = partial(self._stop_turn, record.turn)
                io = TurnIO(self.id, record.turn, self._fanout, questions, self._verify_ownership, stop)
                self._turns.append((Turn(record, services, self._journal, io), future))
                self._services.turn_started.notify(record)
                self._changed.set()
            elif isinstance(record, RouteChosen):
                self._services.routes.end_cool_down(record.route)
            elif isinstance(record, SessionReset):
                self._services.routes.end_cool_down("")
        return future

    def _stop_turn(self, turn: str, source: str) -> None:
        self.interrupt(Interrupt(self._services.clock.new_id(), source, turn))

    def _question_timeout(self, started: TurnStarted) -> float | None:
        """Return the question timeout for a turn: None if a user started it, `unattended_seconds` if a schedule did."""
        is_alone = bool(started.messages) and all(is_scheduled(one.id) for one in started.messages)
        return self._services.rules.unattended_seconds if is_alone else None

    async def _verify_ownership(self) -> None:
        """Wait until this process has verified that it owns the session. No work may start before that."""
        renewal = self._services.lease_renewal
        while not renewal.is_fresh or self._verified_lapses != renewal.lapses:
            await renewal.renew()
            lapses = renewal.lapses
            await self._journal.verify_ownership()
            self._verified_lapses = lapses

    def _context(self, inbox: int = 0) -> DecisionContext:
        return DecisionContext(self._services.clock.now(), self.id, inbox, self._services.rules)

    # Publishing.

    def _publish(self, record: AnyRecord, announcements: list[Announcement]) -> None:
        """Publish a durable record's announcements. If the record ends the running turn, settle the turn."""
        self.published += 1
        if isinstance(record, TurnEnded) and self.turn is not None and self.turn.id == record.turn:
            turn, _ = self._turns.pop(0)
            turn.settle(Settled(turn.id, record.outcome, record.timings))
            self._services.turn_ended.notify(record)
        publish(announcements, self._in_flight, self._fanout)

    def _fence(self) -> None:
        """Stop all work and write nothing more, because another process owns the journal."""
        for turn, _ in self._turns:
            turn.interrupt(Interrupt(self._services.clock.new_id(), FENCED))
            turn.settle(None)
        self._is_closing = self._is_fenced = True
        self._changed.set()
