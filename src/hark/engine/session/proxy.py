"""The door of a session: commands come in here, whichever process owns it."""

import asyncio
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager

from msgspec import structs

from hark.engine.services import EngineServices
from hark.engine.session.arrivals import Arrival
from hark.engine.session.fanout import Subscription
from hark.engine.session.ownership import Ownership
from hark.engine.session.receipts import queue_items
from hark.engine.session.state import SHUTDOWN, SessionState
from hark.engine.turn.turn import Turn
from hark.protocol.commands import Answer, Change, Interrupt, Say
from hark.protocol.events import Notice, QuestionAsked
from hark.protocol.outcomes import Outcome
from hark.protocol.receipts import QueueItem, Receipt, ReceiptState, Refusal, Settled
from hark.protocol.store import Entry, StoreError
from hark.text.clean import clean

CLOSING = Refusal("closing", "Hark is shutting down.")


class SessionProxy:
    """Knows whether this process owns the session; whoever stands in front of it need not."""

    def __init__(self, session: str, bench: EngineServices) -> None:
        self.id = session
        self._bench = bench
        self._keeper = Ownership(session, bench)

    @property
    def state(self) -> SessionState:
        """What is known of the session; wait for `known` first."""
        owner = self._keeper.session or self._keeper.guest
        return owner.state if owner else SessionState()

    @property
    def is_loaded(self) -> bool:
        """True when the state is known here: False before the session is loaded, and when it is being closed."""
        return self._keeper.session is not None or self._keeper.guest is not None

    @property
    def is_busy(self) -> bool:
        """True when a turn runs here or a message is on its way."""
        session = self._keeper.session
        return not self._keeper.arrivals.is_empty or (session is not None and not session.is_idle)

    @property
    def open_questions(self) -> list[str]:
        """The questions of this process's own turn that wait for an answer, the oldest first."""
        return self._keeper.session.open_questions if self._keeper.session else []

    @property
    def asked(self) -> list[QuestionAsked]:
        """The same, as whoever comes only now reads them."""
        return self._keeper.session.asked if self._keeper.session else []

    @property
    def is_unneeded(self) -> bool:
        """True when nothing runs or waits here, and nobody watches or asks."""
        return not self.is_busy and not self._keeper.users and not self._keeper.fanout.has_readers

    async def known(self) -> None:
        """Return when the session is loaded, here or in the process that owns it."""
        await self._keeper.is_known.wait()

    def subscribe(self) -> Subscription:
        """Return the events from now on."""
        return self._keeper.fanout.subscribe()

    async def say(self, say: Say, stop: Interrupt | None = None) -> Receipt:
        """Accept a message; return what became of it, true and durable.

        With a `stop`, one that came while the message was on its way here, it is accepted and goes no further.

        Cancelling leaves open whether it was accepted; the same id can be said again.

        Raises:
            StoreError: It could not be accepted.
        """
        say = Say(say.id, clean(say.text), say.delivery, clean(say.author), say.attachments, say.shown)
        arrival = self._keeper.arrivals.add(say.id, stop)
        # A task of its own: whoever gives up waiting does not leave a stored message that nobody looks at.
        asyncio.create_task(self._accept(say, arrival)).add_done_callback(arrival.ended)
        return await arrival.receipt()

    async def _accept(self, say: Say, arrival: Arrival) -> None:
        try:
            accepted = await self._bench.store.inbox.put(self.id, say)
            if not accepted.is_new:
                self.wake()  # it may be one that nobody has looked at yet
                return arrival.answer(Receipt(say.id, self.id, ReceiptState.DUPLICATE))
            arrival.accepted()
            if self._keeper.session is None or not self._keeper.session.take(Entry(accepted.seq, say)):
                self.wake()
                await self._bench.store.bus.wake(self.id)
            if self._keeper.is_closing:  # no turn is begun any more: it waits for the next owner
                arrival.tell(Receipt(say.id, self.id, ReceiptState.QUEUED))
            await arrival.outcome()
        finally:
            self._keeper.arrivals.remove(arrival)
            self._keeper.fanout.nudge()

    async def interrupt(self, interrupt: Interrupt, messages: Collection[str] = ()) -> Settled | None:
        """End the running turn, its cancel in this very tick; return when it has settled, or None when none ran.

        A message that is on its way in counts as running: it is accepted, and goes no further. An interrupt that names
        a turn or messages ends only these: the turn, and the turn that took a message.
        """
        turn = self._interrupt_here(interrupt, messages)
        is_named = bool(interrupt.turn or messages)
        met = self._keeper.arrivals.interrupt(interrupt, messages if is_named else None)
        if turn is not None:
            return await asyncio.shield(turn.settled)
        began = ""
        for arrival in met:
            receipt = await arrival.outcome()
            turn = self._keeper.session.turn if self._keeper.session else None
            began = (receipt.turn if receipt else "") or began
            if turn is not None and turn.id == began:
                return await asyncio.shield(turn.settled)
        if met and self._keeper.guest is None:
            return None
        async with self._used():
            return await self._interrupt_unknown(interrupt, messages, began)

    def _interrupt_here(self, interrupt: Interrupt, messages: Collection[str]) -> Turn | None:
        """Interrupt the turns that are meant, as far as this process runs them; return one of them."""
        session = self._keeper.session
        if session is None:
            return None
        names = {name: None for name in (interrupt.turn, *map(session.state.turn_of, messages)) if name}
        if not interrupt.turn and not messages:
            names[""] = None
        turns = [session.interrupt(structs.replace(interrupt, turn=name)) for name in names]
        return next((turn for turn in turns if turn is not None), None)

    async def change(self, command: Change) -> Refusal | None:
        """Change the queue, the route or what else can be; return why not, or None when it is durable."""
        async with self._used():
            try:
                if self._keeper.session is not None:
                    return await self._keeper.session.change(command)
                return await self._keeper.guest.change(command) if self._keeper.guest else self._refusal()
            except StoreError as error:
                return Refusal("store", str(error))

    async def answer(self, answer: Answer) -> Refusal | None:
        """Answer a question; return why not."""
        async with self._used():
            if self._keeper.session is not None:
                return self._keeper.session.answer(answer)
            return await self._keeper.guest.change(answer) if self._keeper.guest else self._refusal()

    async def idle(self) -> Outcome | None:
        """Return the last turn's outcome when nothing runs and nothing may run.

        Raises:
            StoreError: The session can't be saved at present, so it is not known what will run.
        """
        async with self._used():
            while not self._is_idle() and not self._keeper.is_over:
                if self._keeper.failure is not None:
                    raise self._keeper.failure
                await self._keeper.fanout.change()
            return self.state.last_end.outcome if self.state.last_end else None

    async def queue(self) -> list[QueueItem]:
        """Return what waits, in running order."""
        async with self._used():
            return queue_items(self.id, self.state)

    def notice(self, code: str, text: str) -> None:
        """Tell this session's readers something; it lasts no longer than they read."""
        self._keeper.fanout.emit(Notice, None, code, text)

    def wake(self) -> None:
        """Say that the inbox may have something new."""
        self._keeper.knock.set()

    def close(self, source: str = SHUTDOWN) -> None:
        """Settle the running turn, let the session go and end `run`."""
        self._keeper.close(source)

    def drain(self) -> None:
        """Let the running turn come to its end, then let the session go and end `run`."""
        self._keeper.drain()

    async def run(self) -> None:
        """Own the session or follow its owner, until `close`, or until nobody here needs a session of another."""
        await self._keeper.run()

    async def _interrupt_unknown(self, interrupt: Interrupt, messages: Collection[str], began: str) -> Settled | None:
        """Interrupt a session that was not loaded a moment ago, or that is another's; `began` took a message."""
        if self._keeper.session is not None:
            turn = self._interrupt_here(interrupt, messages)
            return await asyncio.shield(turn.settled) if turn else None
        guest = self._keeper.guest
        if guest is None:
            return None
        running = guest.state.turn.id if guest.state.turn else ""
        taken = [turn for message in messages if (turn := guest.state.turn_of(message))]
        took = [*taken, began][0] if messages else running
        if messages and not interrupt.turn and not took:
            return None
        return await guest.interrupt(structs.replace(interrupt, turn=interrupt.turn or took))

    def _refusal(self) -> Refusal:
        return Refusal("store", str(self._keeper.failure)) if self._keeper.failure else CLOSING

    def _is_idle(self) -> bool:
        if not self._keeper.arrivals.is_empty or (self._keeper.session is None and self._keeper.guest is None):
            return False
        if self._keeper.session is not None:
            return self._keeper.session.is_idle
        state = self.state
        return state.turn is None and (not state.queue or state.is_held)

    @asynccontextmanager
    async def _used(self) -> AsyncGenerator[None]:
        """Keep the door open while somebody waits at it, and wait until it is known who owns the session."""
        self._keeper.users += 1
        try:
            await self._keeper.is_known.wait()
            yield
        finally:
            self._keeper.users -= 1
