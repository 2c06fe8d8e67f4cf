"""One conversation: it decides about every command at once, and runs one turn after the other."""

import asyncio
from collections.abc import Callable

from hark.engine.services import EngineServices
from hark.engine.session import decide
from hark.engine.session.announce import Announcement, read_along, tell, tell_receipts
from hark.engine.session.arrivals import Arrivals
from hark.engine.session.decide import NEW_MESSAGE, Moment
from hark.engine.session.fanout import Fanout
from hark.engine.session.log import Log
from hark.engine.session.questions import Questions, TurnQuestions
from hark.engine.session.signal import Signal
from hark.engine.session.state import SHUTDOWN, SessionState
from hark.engine.turn.transcript import CRASH
from hark.engine.turn.turn import Turn
from hark.engine.turn.turn_io import TurnIO
from hark.protocol.commands import Answer, Change, Compact, Delivery, Interrupt, Say
from hark.protocol.events import QuestionAsked
from hark.protocol.names import is_scheduled
from hark.protocol.outcomes import Interrupted
from hark.protocol.receipts import Refusal, Settled
from hark.protocol.records import AnyRecord, Refused, RouteChosen, TurnEnded, TurnStarted
from hark.protocol.store import Entry, Lease

FENCED = "the session was taken over"


class Session:
    """A session that this process owns. Deciding never waits, so no two decisions can cross.

    Every public method may be called from any task of the loop; `run` is the session's own task.
    """

    def __init__(self, lease: Lease, bench: EngineServices, fanout: Fanout, arrivals: Arrivals) -> None:
        self.id = lease.session
        self.state = SessionState()
        self.told = 0  # how many records are durable, and known to the readers
        self._bench = bench
        self._fanout = fanout
        self._arrivals = arrivals
        self._questions = Questions(fanout, bench.clock, can_ask=bench.rules.can_ask)
        self._log = Log(bench.store.journal, lease, self.state)
        self._log.on_durable(self._tell)
        self._log.on_broken(lambda _: self._fence())
        # Decided and not durably ended, in order: the first is the one that people see running.
        self._turns: list[tuple[Turn, asyncio.Future[None]]] = []
        self._changed = Signal()
        self._proven = bench.tenure.lapses
        self._is_closing = False
        self.is_over = False

    @property
    def turn(self) -> Turn | None:
        """The turn that people see running, up to its durable end."""
        return self._turns[0][0] if self._turns else None

    @property
    def is_idle(self) -> bool:
        """True when nothing runs, and nothing that waits may run."""
        return not self._turns and (not self.state.queue or self.state.is_held)

    # Commands.

    def take(self, entry: Entry) -> bool:
        """Decide about an inbox entry. False: there are others before it, which must be read first."""
        if entry.seq <= self.state.cursor:
            return True
        if entry.seq > self.state.cursor + 1 or self._is_closing:
            return False
        moment = self._moment(entry.seq)
        match entry.command:
            case Say() as say:
                self._say(say, moment)
            case Interrupt() as interrupt:
                self._interrupt(interrupt, moment)
            case Answer() as answer:
                is_open = self._questions.is_open(answer.question)
                self._append(*decide.on_answer(answer, moment, is_open=is_open))
                self._questions.answer(answer.question, answer.text)
            case command:
                self._append(decide.on_change(self.state, command, moment))
        return True

    def interrupt(self, interrupt: Interrupt) -> Turn | None:
        """Cancel the running turn, in this very tick; return it, or None when that turn does not run.

        Without a name it is the newest: while one turn's end is being written, the next is decided already.
        """
        turn = next((turn for turn, _ in reversed(self._turns) if interrupt.turn in ("", turn.id)), None)
        if turn is None:
            return None
        aimed = Interrupt(interrupt.id, interrupt.source, turn.id, interrupt.shown)
        turn.interrupt(aimed)
        self._append(*decide.on_interrupt(self.state, aimed, self._bench.rules.after_stop, self._moment()))
        return turn

    async def change(self, command: Change) -> Refusal | None:
        """Change the queue, the route or what else can be; return why not, or None when it is durable."""
        if self._is_closing and isinstance(command, Compact):
            return Refusal("closing", "Hark is shutting down.")  # nothing would end that turn
        record = decide.on_change(self.state, command, self._moment())
        if isinstance(record, Refused):
            return Refusal(record.code, record.message)
        await self._append(record)
        return None

    def answer(self, answer: Answer) -> Refusal | None:
        """Answer a question of the running turn; return why not."""
        if self._questions.answer(answer.question, answer.text):
            return None
        return Refusal("not_asked", "That question is not open any more.")

    @property
    def open_questions(self) -> list[str]:
        """The questions that wait for an answer, the oldest first."""
        return self._questions.open_names

    @property
    def asked(self) -> list[QuestionAsked]:
        """The same, as whoever comes only now reads them."""
        at = self._bench.clock.now()
        return [
            QuestionAsked(self.id, turn, 0, at, name, question.text, question.choices, question.kind, call)
            for name, turn, question, call in self._questions.asked
        ]

    def close(self, source: str = SHUTDOWN) -> None:
        """End the running turn and then `run`; what waits stays for the next owner."""
        self._is_closing = True
        for turn, _ in self._turns:
            turn.interrupt(Interrupt(self._bench.clock.new_id(), source))
        self._changed.set()

    def drain(self) -> None:
        """Let the running turn come to its end, then end `run`; what waits stays for the next owner."""
        self._is_closing = True
        self._changed.set()

    def let_go(self) -> None:
        """Nothing more comes: hold on to nothing, so that the memory is free at once."""
        self.is_over = True
        self._log.let_go()

    def on_durable(self, told: Callable[[AnyRecord], None]) -> None:
        """Call `told` for each record that becomes durable from now on, in order."""
        self._log.on_durable(lambda record, _: told(record))

    @property
    def was_cut(self) -> bool:
        """True when the last turn that ended was found open, as a crash or a take-over leaves it."""
        end = self.state.last_end
        return end is not None and end.outcome == Interrupted(CRASH)

    async def flush(self) -> None:
        """Wait until all that was decided is durable.

        Raises:
            StoreError: It can't be made durable.
        """
        await self._log.flush()

    async def look(self) -> None:
        """Stop at once if another process has written here: a turn that writes nothing would never learn of it."""
        known = self.state.length
        found = await self._bench.store.journal.read(self.id, known)
        if known + len(found) > self.state.length:
            self._fence()

    # The session's own task.

    async def load(self, told: int | None = None) -> None:
        """Read the journal, close what a crash left open, and decide about what came meanwhile.

        `told` is how many records the readers here know of already; None: what is there is no news.
        """
        records = await self._bench.store.journal.read(self.id)
        self._fanout.start_at(len(records) + 1)
        self._read(records, len(records) if told is None else told)
        self.told = len(records)
        entries = await self._bench.store.inbox.after(self.id, self.state.cursor)
        with self._log.together():
            self._append(*decide.on_load(self.state, self._moment()))
            self._take_backlog(entries)

    def _read(self, records: list[AnyRecord], told: int) -> None:
        """Fold the journal. The owner before us may have decided about what was brought here: that is told."""
        for place, news in enumerate(read_along(self.id, self.state, records), 1):
            if place > told:
                tell(news, self._arrivals, self._fanout)
            else:
                tell_receipts(news, self._arrivals)

    async def run(self) -> None:
        """Run turn after turn until `close`. Cancelling leaves an open turn as a crash does.

        Raises:
            StoreError: The journal can't be written, or is another's.
        """
        while True:
            while not self._turns and not self._is_closing:
                self._changed.clear()
                await self._changed.wait()
            if not self._turns:
                return await self._log.flush()
            turn, is_durable = self._turns[0]
            await is_durable
            await self._end(await turn.run())

    def _end(self, records: list[AnyRecord]) -> asyncio.Future[None]:
        if not self._is_closing:
            records = decide.on_end(self.state, records, self._moment())
        return self._append(*records)

    # Deciding.

    def _say(self, say: Say, moment: Moment) -> None:
        stop = self._arrivals.stop_on(say.id)
        is_running = self.state.turn is not None
        if is_running and say.delivery is Delivery.INTERRUPT and stop is None:
            turn = self._last_turn()
            shown = say.shown.characters if say.shown and say.shown.turn == turn.id else None
            turn.interrupt(Interrupt(say.id, NEW_MESSAGE, turn.id, shown))
        self._append(*decide.on_say(self.state, say, moment, is_stopped=stop is not None))
        if is_running and say.delivery is Delivery.STEER:
            self._last_turn().steering.set()
        if not is_running and self._turns and stop is not None:
            self._last_turn().interrupt(stop)

    def _take_backlog(self, entries: list[Entry]) -> None:
        """Take what came while nobody owned the session: all of it waits until it is read, then the first may run.

        A stop that met a message on its way in holds for all up to that one; what came behind it comes now.
        """
        stops = [self._arrivals.stop_on(entry.command.id) for entry in entries]
        met = max((place for place, stop in enumerate(stops, 1) if stop is not None), default=len(entries))
        for entry in entries[:met]:
            if isinstance(entry.command, Say):
                self._append(*decide.on_backlog(self.state, entry.command, self._moment(entry.seq)))
            else:
                self.take(entry)
        self._append(*decide.on_ready(self.state, self._moment()))
        stop = stops[met - 1] if stops else None
        if stop is not None:
            self.interrupt(stop)
        for entry in entries[met:]:
            self.take(entry)

    def _interrupt(self, interrupt: Interrupt, moment: Moment) -> None:
        """Take an interrupt of another process: without a name it means the turn that runs when it is read."""
        turn = self.state.turn.id if self.state.turn else ""
        aimed = Interrupt(interrupt.id, interrupt.source, interrupt.turn or turn, interrupt.shown)
        if turn and aimed.turn == turn:
            self._last_turn().interrupt(aimed)
        self._append(*decide.on_interrupt(self.state, aimed, self._bench.rules.after_stop, moment))

    def _last_turn(self) -> Turn:
        return self._turns[-1][0]

    def _append(self, *records: AnyRecord) -> asyncio.Future[None]:
        """Write records; a turn that they start exists from here on, and runs once its start is durable."""
        done = self._log.append(*records)
        for record in records:
            if isinstance(record, TurnStarted):
                bench = self._bench.under(self._bench.current.terms)  # what is changed later is for the next turn
                questions = TurnQuestions(self._questions, record.turn, self._patience(record))
                lines = TurnIO(self.id, record.turn, self._fanout, questions, self._prove)
                self._turns.append((Turn(record, bench, self._log, lines), done))
                self._bench.starts.tell(record)
                self._changed.set()
            elif isinstance(record, RouteChosen):
                self._bench.routes.wake(record.route)
        return done

    def _patience(self, started: TurnStarted) -> float | None:
        """Return how long a question of this turn waits: for ever where a person is, not where a schedule began it."""
        is_alone = bool(started.messages) and all(is_scheduled(one.id) for one in started.messages)
        return self._bench.rules.unattended_seconds if is_alone else None

    async def _prove(self) -> None:
        """Return when the session is surely ours: nothing may begin in the name of one that another has taken."""
        tenure = self._bench.tenure
        while not tenure.is_fresh or self._proven != tenure.lapses:
            await tenure.renew()
            lapses = tenure.lapses
            await self._log.prove()
            self._proven = lapses

    def _moment(self, inbox: int = 0) -> Moment:
        return Moment(self._bench.clock.now(), self.id, inbox)

    # Telling.

    def _tell(self, record: AnyRecord, news: list[Announcement]) -> None:
        """Tell what has become durable."""
        self.told += 1
        if isinstance(record, TurnEnded) and self.turn is not None and self.turn.id == record.turn:
            turn, _ = self._turns.pop(0)
            turn.settle(Settled(turn.id, record.outcome, record.timings))
            self._bench.ends.tell(record)
        tell(news, self._arrivals, self._fanout)

    def _fence(self) -> None:
        """The journal is closed to us: stop working at once, and write nothing more."""
        for turn, _ in self._turns:
            turn.interrupt(Interrupt(self._bench.clock.new_id(), FENCED))
            turn.settle(None)
        self._is_closing = True
        self._changed.set()
