"""The session proxy: it accepts a session's commands, whichever process owns the session."""

import asyncio
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager

import anyio
from msgspec import structs

from hark.engine.services import EngineServices
from hark.engine.session.fanout import Subscription
from hark.engine.session.in_flight import InFlightMessage
from hark.engine.session.ownership import Ownership
from hark.engine.session.queue_rule import why_full
from hark.engine.session.receipts import queue_items
from hark.engine.session.side_question import CLOSE_SECONDS, SideQuestions, SideRequest
from hark.engine.session.state import SessionState
from hark.engine.turn.step import LiveTurn
from hark.engine.turn.turn import Turn
from hark.protocol.commands import SHUTDOWN, Answer, ChangeCommand, Interrupt, Say
from hark.protocol.events import Notice, QuestionAsked
from hark.protocol.outcomes import Outcome
from hark.protocol.receipts import QueueItem, Receipt, ReceiptState, Refusal, Settled
from hark.protocol.store import InboxEntry, StoreError
from hark.text.cleanup import replace_surrogates

CLOSING = Refusal("closing", "Hark is shutting down.")


class SessionProxy:
    """Sends commands to the session if this process owns it, or else to the owner. Callers need not know which."""

    def __init__(self, session: str, services: EngineServices) -> None:
        self.id = session
        self._services = services
        self._ownership = Ownership(session, services)
        self.side_questions = SideQuestions()

    @property
    def state(self) -> SessionState:
        """The known state of the session. Call `wait_until_loaded` first."""
        owner = self._ownership.session or self._ownership.follower
        return owner.state if owner else SessionState()

    @property
    def is_loaded(self) -> bool:
        """True when the state is known in this process; False before the session is loaded and while it is closing."""
        return self._ownership.session is not None or self._ownership.follower is not None

    @property
    def is_busy(self) -> bool:
        """True when a turn is running in this process or a message is in flight."""
        session = self._ownership.session
        return not self._ownership.in_flight.is_empty or (session is not None and not session.is_idle)

    @property
    def open_questions(self) -> list[str]:
        """The ids of unanswered questions from a turn in this process, oldest first."""
        return self._ownership.session.open_questions if self._ownership.session else []

    @property
    def open_question_events(self) -> list[QuestionAsked]:
        """The unanswered questions as events, for readers that join late."""
        return self._ownership.session.open_question_events if self._ownership.session else []

    @property
    def live(self) -> LiveTurn:
        """The parts of a turn in this process that are not in the journal yet."""
        turn = self._ownership.session.turn if self._ownership.session else None
        return turn.live if turn else LiveTurn()

    @property
    def is_unused(self) -> bool:
        """True when no local turn or background work is running, and no message, task or reader uses the session."""
        has_work = self._ownership.session is not None and bool(self.state.work)
        is_waited_for = bool(self._ownership.waiters) or self._ownership.fanout.has_readers
        return not self.is_busy and not has_work and not is_waited_for

    async def wait_until_loaded(self) -> None:
        """Wait until the session is loaded, by this process or by the process that owns it.

        A reader that subscribes directly afterwards receives all later events.
        """
        async with self._in_use():
            pass

    def subscribe(self) -> Subscription:
        """Return a subscription to the session's events from now on."""
        return self._ownership.fanout.subscribe()

    async def say(self, say: Say, stop: Interrupt | None = None) -> Receipt:
        """Accept a message and return its durable receipt.

        `stop` is an interrupt that arrived while the message was in flight: the message is accepted but starts no
        work.

        After a cancel it is unknown whether the message was accepted; the same id can be sent again.

        Raises:
            StoreError: The message could not be accepted.
        """
        say = structs.replace(say, text=replace_surrogates(say.text), author=replace_surrogates(say.author))
        if refused := self._refuse_if_full(say):
            return refused
        message = self._ownership.in_flight.add(say.id, stop)
        # In a separate task, so that a caller that stops waiting doesn't leave a stored message unprocessed.
        asyncio.create_task(self._accept(say, message)).add_done_callback(message.on_accept_done)
        return await message.wait_for_receipt()

    def _refuse_if_full(self, say: Say) -> Receipt | None:
        """Refuse a new message before it is stored, so that it can be sent again with the same id."""
        state, pending = self.state, self._ownership.in_flight.count
        is_queued = state.turn is not None or bool(state.queue)
        limits = self._services.rules.limits
        reason = why_full(state.queue, say.text, say.attachments, limits, pending) if is_queued else ""
        if not reason or state.find_queued(say.id) is not None or state.turn_of_message(say.id):
            return None
        return Receipt(say.id, self.id, ReceiptState.REFUSED, reason=reason)

    async def _accept(self, say: Say, message: InFlightMessage) -> None:
        try:
            accepted = await self._services.store.inbox.put(self.id, say)
            if not accepted.is_new:
                self.wake()  # the earlier message with this id may still be unprocessed
                is_refused = say.id in self.state.refused
                state = ReceiptState.REFUSED if is_refused else ReceiptState.DUPLICATE
                reason = "The queue was full. Send the message with a new id." if is_refused else None
                return message.send_receipt(Receipt(say.id, self.id, state, reason=reason))
            message.mark_accepted()
            session, entry = self._ownership.session, InboxEntry(accepted.seq, say)
            if session is None or not session.process_entry(entry):
                self.wake()
                await self._services.store.bus.wake(self.id)
            if self._ownership.is_closing:  # no new turn starts while closing, so the message waits for the next owner
                message.set_receipt(Receipt(say.id, self.id, ReceiptState.QUEUED))
            await message.wait_until_resolved()
        finally:
            self._ownership.in_flight.remove(message)
            self._ownership.fanout.notify_change()

    async def interrupt(self, interrupt: Interrupt, messages: Collection[str] = ()) -> Settled | None:
        """Cancel the running turn in the same event-loop tick, and wait until it has settled.

        Return None if no turn was running. An in-flight message counts as running; it is accepted but starts no work.
        If `interrupt` names a turn, or `messages` is given, only that turn and these messages' turns are interrupted.
        """
        running = self._interrupt_local(interrupt, messages)
        is_named = bool(interrupt.turn or messages)
        affected = self._ownership.in_flight.interrupt(interrupt, messages if is_named else None)
        if running is not None:
            return await asyncio.shield(running.settled)
        started_turn = ""
        for message in affected:
            receipt = await message.wait_until_resolved()
            running = self._ownership.session.turn if self._ownership.session else None
            started_turn = (receipt.turn if receipt else "") or started_turn
            if running is not None and running.id == started_turn:
                return await asyncio.shield(running.settled)
        if affected and self._ownership.follower is None:
            return None
        async with self._in_use():
            return await self._interrupt_when_ready(interrupt, messages, started_turn)

    def _interrupt_local(self, interrupt: Interrupt, messages: Collection[str]) -> Turn | None:
        """Interrupt the requested turns that run in this process. Return one of them, or None."""
        session = self._ownership.session
        if session is None:
            return None
        names = {name: None for name in (interrupt.turn, *map(session.state.turn_of_message, messages)) if name}
        if not interrupt.turn and not messages:
            names[""] = None
        turns = [session.interrupt(structs.replace(interrupt, turn=name)) for name in names]
        return next((turn for turn in turns if turn is not None), None)

    async def change(self, command: ChangeCommand) -> Refusal | None:
        """Change the queue, the route or another setting. Return a refusal, or None when the change is durable."""
        async with self._in_use():
            try:
                if self._ownership.session is not None:
                    return await self._ownership.session.change(command)
                return (
                    await self._ownership.follower.change(command) if self._ownership.follower else self._unavailable()
                )
            except StoreError as error:
                return Refusal("store", str(error))

    async def answer(self, answer: Answer) -> Refusal | None:
        """Answer a question. Return a refusal if that is not possible."""
        async with self._in_use():
            if self._ownership.session is not None:
                return self._ownership.session.answer(answer)
            return await self._ownership.follower.change(answer) if self._ownership.follower else self._unavailable()

    async def idle(self) -> Outcome | None:
        """Wait until no turn is running or about to run, and return the last turn's outcome.

        Raises:
            StoreError: The session can't be saved, so it is unknown which turns will run.
        """
        async with self._in_use():
            while not self._is_idle() and not self._ownership.is_over:
                if self._ownership.failure is not None:
                    raise self._ownership.failure
                await self._ownership.fanout.wait_for_change()
            return self.state.last_end.outcome if self.state.last_end else None

    async def queue(self) -> list[QueueItem]:
        """Return the queued messages, in running order."""
        async with self._in_use():
            return queue_items(self.id, self.state)

    async def ask_aside(self, question: str) -> str:
        """Ask the model a side question and return its answer, or why there is none. The session doesn't change."""
        return await self.side_questions.run(self._ask_aside(question))

    async def _ask_aside(self, question: str) -> str:
        async with self._in_use():
            if not self.is_loaded:
                return self._unavailable().message
            turn = self._ownership.session.turn if self._ownership.session else None
            services = turn.services if turn else self._services
            request = SideRequest(services, self.state, self.live)
            try:
                return await request.ask(replace_surrogates(question))
            finally:
                usage = request.usage_command(self._services.clock.new_id())
                if usage is not None:
                    with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                        await self.change(usage)

    def publish_notice(self, code: str, text: str) -> None:
        """Publish a notice to this session's readers without storing it."""
        self._ownership.fanout.emit(Notice, None, code, text)

    def start_next(self) -> None:
        """Start the next turn, if this process owns the session and a message may start one."""
        if self._ownership.session is not None:
            self._ownership.session.start_next()

    def wake(self) -> None:
        """Request another read of the inbox, because it may have new entries."""
        self._ownership.inbox_changed.set()

    def close(self, source: str = SHUTDOWN) -> None:
        """Stop the running turn and all side questions, release the session and end `run`."""
        self.side_questions.stop()
        self._ownership.close(source)

    def drain(self) -> None:
        """Let the running turn finish, then release the session and end `run`."""
        self._ownership.drain()

    async def run(self) -> None:
        """Own or follow the session until `close`. Following also ends when no task in this process needs it."""
        try:
            await self._ownership.run()
        finally:
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await self.side_questions.close()

    async def _interrupt_when_ready(
        self, interrupt: Interrupt, messages: Collection[str], started_turn: str
    ) -> Settled | None:
        """Interrupt once the owner is known. `started_turn` is the turn of an interrupted in-flight message, or ""."""
        if self._ownership.session is not None:
            turn = self._interrupt_local(interrupt, messages)
            return await asyncio.shield(turn.settled) if turn else None
        follower = self._ownership.follower
        if follower is None:
            return None
        running = follower.state.turn.id if follower.state.turn else ""
        turns = [turn for message in messages if (turn := follower.state.turn_of_message(message))]
        target = [*turns, started_turn][0] if messages else running
        if messages and not interrupt.turn and not target:
            return None
        return await follower.interrupt(structs.replace(interrupt, turn=interrupt.turn or target))

    def _unavailable(self) -> Refusal:
        return Refusal("store", str(self._ownership.failure)) if self._ownership.failure else CLOSING

    def _is_idle(self) -> bool:
        if not self._ownership.in_flight.is_empty or (
            self._ownership.session is None and self._ownership.follower is None
        ):
            return False
        if self._ownership.session is not None:
            return self._ownership.session.is_idle
        state = self.state
        return state.turn is None and (not state.queue or state.is_held or self._services.rules.is_paused)

    @asynccontextmanager
    async def _in_use(self) -> AsyncGenerator[None]:
        """Keep the session open while a task waits for it, and wait until its owner is known."""
        self._ownership.waiters += 1
        try:
            await self._ownership.ready.wait()
            yield
        finally:
            self._ownership.waiters -= 1
