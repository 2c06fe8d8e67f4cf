"""A handle to one session: the Python API for a conversation. All surfaces use it too."""

import asyncio
from collections.abc import Collection, Sequence
from functools import partial
from typing import Unpack

from anyio import to_thread

from hark.app.services import Services
from hark.app.sessions.attachments import store_attachment
from hark.app.sessions.rewind import rewind_points, rewind_with_files
from hark.app.sessions.unheard_reply import note_unheard_reply
from hark.app.slash.command_table import COMMANDS, receipt_text
from hark.app.slash.meaning import meaning_of
from hark.engine.services import EngineServices
from hark.engine.session.proxy import SessionProxy
from hark.engine.session.router import PAUSED, SessionRouter
from hark.engine.session.state import SessionState
from hark.protocol.commands import (
    Answer,
    ChooseMode,
    ChooseRoute,
    Delivery,
    Edit,
    Interrupt,
    Move,
    QueueCommand,
    Rewind,
    Say,
    Withdraw,
)
from hark.protocol.events import QuestionAsked
from hark.protocol.meaning import AnswerRule, CommandMeaning, Meaning, MessageMeaning, StopMeaning, not_an_answer
from hark.protocol.messages import AssistantMessage, Attachment, Call, Message
from hark.protocol.names import check_session_name, is_descendant, short_turn_name, turn_number
from hark.protocol.outcomes import Outcome
from hark.protocol.receipts import QueueItem, Receipt, ReceiptState, Refusal, Settled
from hark.protocol.records import Replied, TurnEnded
from hark.protocol.rules import ApprovalMode
from hark.protocol.session import EventReader, MessageDetails, RunningTurn, SessionHistory, SessionStatus
from hark.text.cleanup import replace_surrogates
from hark.text.status_text import format_count

_NOT_QUEUED = Refusal("not_waiting", "That message is not in the queue.")
_NOT_ASKED = Refusal("not_asked", "That question is no longer open.")
API = "api"
HTTP_SURFACES = (API, "page", "v1")  # all of them use the delivery of the API
_BUSY = "A turn is running. Stop it or wait until it ends, then rewind."


class SessionHandle:
    """A handle to one session. Call its methods from any task of the loop, and `interrupt_soon` from any thread."""

    def __init__(
        self, session: str, router: SessionRouter, engine_services: EngineServices, services: Services, surface: str
    ) -> None:
        self._id = check_session_name(session)
        self._router = router
        self.engine = engine_services
        self.services = services
        self._surface = surface
        self._loop = asyncio.get_running_loop()

    @property
    def id(self) -> str:
        """The session's name."""
        return self._id

    @property
    def proxy(self) -> SessionProxy:
        """The proxy that receives the session's commands. Accessing it opens the session."""
        return self._router.proxy_for(self._id)

    @property
    def delivery(self) -> Delivery:
        """The default delivery for messages on this surface."""
        defaults = self.services.settings.delivery
        surface = API if self._surface in HTTP_SURFACES else self._surface
        return self.services.deliveries.get(self._id) or defaults.surfaces.get(surface, defaults.default)

    def choose_delivery(self, delivery: Delivery) -> None:
        """Set the default delivery for this session, on every surface, until the program ends."""
        self.services.deliveries[self._id] = delivery

    def children(self) -> "list[SessionHandle]":
        """Return this session's descendants that are open in this process."""
        return [self.other_session(proxy.id) for proxy in self._router.proxies if is_descendant(proxy.id, self._id)]

    def other_session(self, name: str) -> "SessionHandle":
        """Return another session of the same agent.

        Raises:
            ValueError: The name is not a valid session name.
        """
        return SessionHandle(name, self._router, self.engine, self.services, "")

    def new_id(self) -> str:
        """Return a new unique id."""
        return self.engine.clock.new_id()

    async def wait_until_loaded(self) -> None:
        """Wait until the session is loaded, here or by its owner. Readers receive every event from then on."""
        await self.proxy.wait_until_loaded()

    @property
    def is_busy_here(self) -> bool:
        """Whether a turn of the session is running in this process, or a message is in flight."""
        return self.proxy.is_busy

    def events(self) -> EventReader:
        """Return a reader that receives all later events until the session closes."""
        return self.proxy.subscribe()

    # Commands.

    async def say(
        self, text: str, delivery: Delivery | str | None = None, **details: Unpack[MessageDetails]
    ) -> Receipt:
        """Durably accept a message and return its receipt. `MessageDetails` lists the optional arguments.

        A slash command is executed instead, and its reply is published as a notice.

        Raises:
            ValueError: There is no such delivery.
            StoreError: The message was not accepted.
        """
        requested_delivery = self.delivery if delivery is None else Delivery(delivery)
        message_id, shown = details.get("id") or self.new_id(), details.get("shown")
        attachments = details.get("attachments", ())
        # A message with attachments is never a stop word.
        meaning = meaning_of(text) if attachments else self.interpret(text)
        if isinstance(meaning, CommandMeaning | StopMeaning):
            return await self._run_command_once(meaning, message_id)
        if shown is not None:
            await note_unheard_reply(self.proxy, shown, self.new_id())
        stored_attachments = await self._store_attachments(message_id, attachments)
        assert isinstance(meaning, MessageMeaning)  # no answer rule was given
        prefix = meaning.delivery
        message = Say(
            message_id, meaning.text, prefix or requested_delivery, details.get("author", ""), stored_attachments, shown
        )
        is_stopped = details.get("is_stopped") or self.services.stopped_messages.remove(self._id, message_id)
        receipt = await self.proxy.say(message, Interrupt(self.new_id(), "user") if is_stopped else None)
        if receipt.state is ReceiptState.REFUSED and self._surface not in HTTP_SURFACES:
            self.publish_notice("queue_full", f"Not accepted: {receipt.reason}")
        elif self.engine.rules.is_paused and receipt.state is not ReceiptState.DUPLICATE:
            self.publish_notice("pause", PAUSED)
        if prefix and receipt.state is not ReceiptState.DUPLICATE:
            self.publish_notice(prefix, receipt_text(receipt))
        return receipt

    def interpret(self, text: str, answer: AnswerRule = not_an_answer) -> Meaning:
        """Interpret `text` as input on this surface. `answer` is the surface's rule for answers to questions."""
        meaning = meaning_of(text, partial(self.services.is_stop_word, surface=self._surface), answer)
        is_status_question = isinstance(meaning, MessageMeaning) and self.services.is_status_question(
            text, self._surface
        )
        return CommandMeaning("status", "") if is_status_question and self.running_turn() else meaning

    async def run_command(self, command: CommandMeaning | StopMeaning) -> str:
        """Run a slash command and return its reply."""
        name, arguments = (command.name, command.arguments) if isinstance(command, CommandMeaning) else ("stop", "")
        return await COMMANDS[name].run(self, arguments)

    async def interrupt(
        self, source: str = "user", turn: str = "", shown: int | None = None, messages: Collection[str] = ()
    ) -> Settled | None:
        """Stop everything that is running and wait until it has settled. Return None if nothing was running.

        With `turn` or `messages`, stop only that turn and the turns of these messages. If one of these messages
        arrives later, it is accepted but starts no turn. `shown` is the number of characters of the partial reply
        that the user had seen; the rest is dropped.
        """
        for message in messages:
            self.services.stopped_messages.add(self._id, message)
        if not turn and not messages:
            self.stop_side_questions()
        proxy = await self._router.find_owned(self._id)
        return await proxy.interrupt(Interrupt(self.new_id(), source, turn, shown), messages) if proxy else None

    def stop_side_questions(self) -> bool:
        """Stop the side questions that were asked in this process. Return False if none was open."""
        proxy = self._router.find_open(self._id)
        return proxy is not None and proxy.side_questions.stop()

    def interrupt_soon(self, source: str = "user") -> None:
        """Interrupt the session from any thread, without waiting."""
        asyncio.run_coroutine_threadsafe(self.interrupt(source), self._loop)

    async def answer(self, question: str, text: str) -> Refusal | None:
        """Answer a question from the running turn. Return a refusal if that is not possible."""
        proxy = await self._router.find_owned(self._id)
        return await proxy.answer(Answer(self.new_id(), question, text)) if proxy else _NOT_ASKED

    async def edit(self, message: str, text: str) -> Refusal | None:
        """Change the text of a queued message, ignoring a `/queue` prefix. Return a refusal if that is not possible."""
        meaning = meaning_of(text)
        new_text = meaning.text if isinstance(meaning, MessageMeaning) else text
        return await self._change_queue(Edit(self.new_id(), message, replace_surrogates(new_text)))

    async def move(self, message: str, position: int) -> Refusal | None:
        """Move a queued message to another position, counted from 1. Return a refusal if that is not possible."""
        return await self._change_queue(Move(self.new_id(), message, position))

    async def withdraw(self, message: str) -> Refusal | None:
        """Remove a message from the queue. Return a refusal if that is not possible."""
        return await self._change_queue(Withdraw(self.new_id(), message))

    async def choose_mode(self, mode: ApprovalMode) -> Refusal | None:
        """Set the session's approval mode. Return a refusal if that is not possible."""
        return await self.proxy.change(ChooseMode(self.new_id(), mode))

    async def choose_route(self, route: str) -> Refusal | None:
        """Set the route that later turns try first; "" restores the configured order. May return a refusal."""
        return await self.proxy.change(ChooseRoute(self.new_id(), route))

    async def rewind(self, turn: str, *, with_files: bool) -> str:
        """Rewind to before a turn. `with_files` also undoes file changes since then. Return the reply for the user."""
        if self.running_turn():
            return _BUSY
        if with_files:
            return await rewind_with_files(self.proxy, turn, self.engine.snapshots, self.engine.clock)
        refusal = await self.proxy.change(Rewind(self.new_id(), turn))
        return refusal.message if refusal else f"Rewound to before {turn}."

    def publish_notice(self, code: str, text: str) -> None:
        """Publish a notice to the session's readers."""
        self.proxy.publish_notice(code, text)

    def release(self) -> None:
        """Close the session in this process as soon as no turn is running."""
        if proxy := self._router.find_open(self._id):
            proxy.drain()

    # State.

    async def idle(self) -> Outcome | None:
        """Wait until no turn is running or pending. Return the last turn's outcome."""
        return await self.proxy.idle()

    async def queue(self) -> list[QueueItem]:
        """Return the queued messages, in running order."""
        return await self._router.read_queue(self._id)

    async def has_message(self, message: str) -> bool:
        """Return whether a message with this id was ever accepted in the session."""
        entries = await self.engine.store.inbox.entries_after(self._id, 0)
        return any(isinstance(entry.command, Say) and entry.command.id == message for entry in entries)

    def running_turn(self) -> RunningTurn | None:
        """Return the running turn as known to this process; None if no turn is running or the session is not loaded."""
        proxy = self._router.find_open(self._id)
        turn = proxy.state.turn if proxy else None
        return RunningTurn(turn.id, turn.progress, tuple(proxy.open_question_events)) if proxy and turn else None

    def open_questions(self) -> list[QuestionAsked]:
        """Return the open questions of the session's turns and children in this process, oldest first."""
        proxy = self._router.find_open(self._id)
        return proxy.open_question_events if proxy else []

    def find_call(self, call: str) -> Call | None:
        """Return the call with this id from the running turn's last reply, or None if there is none."""
        turn = self.proxy.state.turn
        return turn.calls.get(call) if turn else None

    def describe_work(self) -> list[str]:
        """Return the running turn, background work and queued messages known to this process, for the user."""
        proxy = self._router.find_open(self._id)
        state = proxy.state if proxy else SessionState()
        work = [short_turn_name(state.turn.id)] if state.turn else []
        work.extend(self.services.work.describe_running(self._id))
        return [*work, format_count(len(state.queue), "queued message")] if state.queue else work

    async def status(self) -> SessionStatus:
        """Load the session. Return its title, approval mode, routes and folder."""
        await self.wait_until_loaded()
        state, engine = self.proxy.state, self.engine
        names = tuple(engine.routes.names)
        route = state.chosen_route if state.chosen_route in names else names[0]
        mode = state.mode or engine.rules.approvals.mode
        return SessionStatus(state.title, mode, route, names, str(engine.workspace))

    async def transcript(self) -> list[Message]:
        """Return the messages that the model would see."""
        proxy = self.proxy
        await proxy.wait_until_loaded()
        return list(proxy.state.transcript.messages)

    async def history(self) -> SessionHistory:
        """Return the conversation so far, with its rewind points and interrupted turns."""
        state = await self._router.read_state(self._id)
        transcript = state.transcript
        resumable = tuple(turn for turn in state.resumable_turns if transcript.has_full_turn(turn))
        cut = tuple(turn for turn in state.cut_turns if turn in resumable)
        points = tuple(rewind_points(state))
        return SessionHistory(tuple(transcript.messages), tuple(transcript.turns), points, cut, resumable)

    async def ended_turns(self, after: int) -> list[tuple[str, Outcome]]:
        """Return the turns that ended after the turn with this number, oldest first."""
        if self.proxy.state.turns <= after:
            return []
        records = await self.engine.store.journal.read(self.id)
        ends = [record for record in records if isinstance(record, TurnEnded)]
        return [(end.turn, end.outcome) for end in ends if turn_number(end.turn) > after]

    async def reply_of(self, turn: str) -> str:
        """Return the text of all replies in a turn. Replies missing from the transcript are read from the journal."""
        messages = self.proxy.state.transcript.messages_of_turn(turn)
        if messages is None:
            records = await self.engine.store.journal.read(self.id)
            messages = [record.message for record in records if isinstance(record, Replied) and record.turn == turn]
        texts = [message.text for message in messages if isinstance(message, AssistantMessage)]
        return "\n\n".join(text.strip() for text in texts if text.strip())

    async def _run_command_once(self, command: CommandMeaning | StopMeaning, command_id: str) -> Receipt:
        if not self.services.executed_commands.add(self._id, command_id):
            return Receipt(command_id, self._id, ReceiptState.DUPLICATE)
        code = "stop"
        if isinstance(command, CommandMeaning):
            code = command.name
            await self.wait_until_loaded()  # so that the notice follows all earlier events; a stop does not wait
            if COMMANDS[code].is_aside:
                self.proxy.side_questions.start(self._publish_reply(code, command))
                return Receipt(command_id, self._id, ReceiptState.STARTED)
        await self._publish_reply(code, command)
        return Receipt(command_id, self._id, ReceiptState.STARTED)

    async def _publish_reply(self, code: str, command: CommandMeaning | StopMeaning) -> None:
        self.publish_notice(code, await self.run_command(command))

    async def _change_queue(self, command: QueueCommand) -> Refusal | None:
        """Change the queue. A session that is not open is loaded only if the message is in its queue."""
        is_open = self._router.find_open(self._id) is not None
        if not is_open and all(item.id != command.message for item in await self.queue()):
            return _NOT_QUEUED
        return await self.proxy.change(command)

    async def _store_attachments(self, message: str, attachments: Sequence[Attachment]) -> tuple[Attachment, ...]:
        """Store attached files that arrived over HTTP. Return the message's attachments."""
        if not attachments or self._surface not in HTTP_SURFACES:
            return tuple(attachments)
        home = self.services.paths.home

        def store() -> tuple[Attachment, ...]:
            return tuple(store_attachment(home, self._id, message, attachment) for attachment in attachments)

        return await to_thread.run_sync(store)
