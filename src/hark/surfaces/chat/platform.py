"""Runs one chat platform with supervision. Every message is stored before it is acknowledged to the platform."""

import logging

import anyio
from anyio.abc import TaskGroup
from msgspec import structs

from hark.protocol.chat import (
    Address,
    ChatError,
    ChatSurface,
    IncomingEvent,
    IncomingMessage,
    MessageDeleted,
    OutgoingMessage,
)
from hark.protocol.names import session_of_address, session_of_turn, surface_of_session
from hark.protocol.records import TurnStarted
from hark.surfaces.chat.chat_processor import ChatProcessor
from hark.surfaces.chat.chat_route import ChatRoute, ChatServices
from hark.surfaces.chat.outbox import Outbox
from hark.surfaces.chat.questions import QUESTION_KEY
from hark.surfaces.chat.sender_policy import SenderPolicy
from hark.surfaces.chat.settings import ChatSettings
from hark.timing.backoff import Backoff

MAX_RETRY_SECONDS = 60.0
LOG = logging.getLogger(__name__)


class Platform:
    """Runs one ChatSurface. A failure or delay of one platform or address does not affect the others."""

    def __init__(
        self, surface: ChatSurface, settings: ChatSettings, senders: SenderPolicy, services: ChatServices
    ) -> None:
        self._surface = surface
        self._settings = settings
        self._senders = senders
        self._services = services
        self._chats: dict[Address, ChatProcessor] = {}
        self._tasks: TaskGroup | None = None
        self._last_error = ""

    async def run(self) -> None:
        """Receive and answer messages until cancelled. A failed platform is retried with increasing delays."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            is_resumed = False
            backoff = Backoff(self._services.first_retry_seconds, MAX_RETRY_SECONDS)
            while True:
                began, retry_after = anyio.current_time(), 0.0
                try:
                    if not is_resumed:
                        await self._resume_chats()
                        is_resumed = True
                    await self._surface.run(self.deliver)
                except ChatError as error:
                    retry_after = error.retry_after or 0.0
                    self._log_failure(error, is_ours=False)
                except Exception as error:  # noqa: BLE001  # the surface loop: it fails alone
                    self._log_failure(error, is_ours=True)
                if anyio.current_time() - began > MAX_RETRY_SECONDS:
                    backoff.reset()
                    self._last_error = ""
                await anyio.sleep(max(backoff.next_delay(), retry_after))

    def _log_failure(self, error: Exception, *, is_ours: bool) -> None:
        """Log a failure. A repeated failure is logged at debug level."""
        previous_error, self._last_error = self._last_error, repr(error)
        level = logging.DEBUG if previous_error == self._last_error else logging.ERROR if is_ours else logging.WARNING
        text = "The surface failed." if is_ours else str(error)
        LOG.log(level, "%s: %s Retrying with increasing delays.", self._surface.name, text, exc_info=is_ours)

    async def deliver(self, incoming: IncomingEvent) -> None:
        """Accept, refuse or ignore an incoming item. An accepted item is durable when this returns.

        Raises:
            StoreError: The item could not be stored; the platform must deliver it again.
        """
        if isinstance(incoming, IncomingMessage) and not incoming.is_for_us and self._settings.listen == "mentions":
            return
        if not isinstance(incoming, MessageDeleted) and not await self._is_accepted(incoming):
            return
        if isinstance(incoming, IncomingMessage) and incoming.replied_to:
            incoming = await self._resolve_reply(incoming)
        pending = await self._services.ledger.accept(incoming)
        if pending is not None:
            self._chat_at(incoming.address).enqueue(pending)

    async def _resolve_reply(self, message: IncomingMessage) -> IncomingMessage:
        """Mark a reply to one of our questions, open or closed, as an answer.

        A reply that opens a thread under a question belongs to the chat of the question.
        """
        address = message.address
        for chat in (address, Address(address.surface, address.chat)):
            if await self._services.ledger.is_sent(chat, QUESTION_KEY, message.replied_to):
                return structs.replace(message, address=chat, is_answer=True)
        return message

    def on_turn_started(self, start: TurnStarted) -> None:
        """Open the chat of a session in which a turn starts, if the session belongs to this platform.

        Most turns are started by a message in the chat, others by a schedule, a program or another surface.
        """
        session = session_of_turn(start.turn)
        if self._tasks is not None and surface_of_session(session) == self._surface.name:
            self._tasks.start_soon(self._open_session_chat, session)

    async def _open_session_chat(self, session: str) -> None:
        binding = await self._services.ledger.binding_of_session(session)
        if binding is not None:
            self._chat_at(binding.address)

    async def _is_accepted(self, incoming: IncomingEvent) -> bool:
        assert not isinstance(incoming, MessageDeleted)
        author = incoming.author
        if not self._senders.is_allowed(author):
            is_code_due = isinstance(incoming, IncomingMessage) and self._senders.may_send_code(author)
            if is_code_due and (code := await self._senders.request_code(author)):
                text = f"I don't know you yet. Ask my owner to run: hark pair approve {code}"
                await self._send_refusal(incoming.address, text)
            return False
        if (
            not isinstance(incoming, IncomingMessage)
            or self._services.is_stop(incoming.text, self._surface.name)
            or not self._senders.is_rate_limited(author)
        ):
            return True
        if self._senders.should_warn(author):
            limit = self._settings.per_minute
            await self._send_refusal(
                incoming.address,
                f"You sent more than {limit} messages within a minute. This message and later ones are not accepted. "
                "Send it again in a minute. Stopping a turn always works.",
                incoming.id,
            )
        return False

    async def _send_refusal(self, address: Address, text: str, reply_to: str = "") -> None:
        """Explain to a sender why their message was not accepted."""
        try:
            await self._surface.send(address, OutgoingMessage(text, reply_to=reply_to))
        except (ChatError, OSError) as error:
            LOG.info("%s: the reason for a refused message could not be sent: %s", self._surface.name, error)

    async def _resume_chats(self) -> None:
        """Resume the work of an earlier process: unprocessed messages and undelivered replies."""
        summaries = {line.session: line.summary for line in await self._services.list_sessions()}
        for binding in await self._services.ledger.bindings(self._surface.name):
            summary = summaries.get(binding.session)
            turns = summary.turns if summary else 0
            if turns < binding.delivered:
                await self._services.ledger.reset_delivered(binding.address)
            is_busy = summary is not None and (summary.is_open or summary.is_waiting)
            if turns != binding.delivered or is_busy:
                self._chat_at(binding.address)
        for pending in await self._services.ledger.pending(self._surface.name):
            self._chat_at(pending.incoming.address).enqueue(pending)

    def _chat_at(self, address: Address) -> ChatProcessor:
        chat = self._chats.get(address)
        if chat is None:
            session = self._services.open_session(session_of_address(address))
            outbox = Outbox(self._surface, address, self._services.ledger)
            route = ChatRoute(self._surface, address, session, self._settings, self._services, outbox)
            chat = self._chats[address] = ChatProcessor(route)
            assert self._tasks is not None
            self._tasks.start_soon(self._run_chat, chat, address, name=f"chat {address.surface} {address.chat}")
        return chat

    async def _run_chat(self, chat: ChatProcessor, address: Address) -> None:
        """Run a chat until it is idle, then discard it. After a failure, reopen it with its unprocessed items."""
        backoff = Backoff(self._services.first_retry_seconds, MAX_RETRY_SECONDS)
        while True:
            try:
                await chat.run()
                if not chat.pending:
                    break
            except Exception:  # the surface loop: one address fails alone
                LOG.exception("%s: the chat %s failed and will be reopened", self._surface.name, address.chat)
                await anyio.sleep(backoff.next_delay())
        del self._chats[address]
