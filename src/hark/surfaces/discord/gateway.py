"""One connection to Discord's gateway. Delivers events in order, and resumes after the last stored event."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime, timedelta
from functools import partial
from types import TracebackType
from typing import Any, Self

import aiohttp
import anyio
import discord
import yarl
from discord.gateway import DiscordWebSocket, ReconnectWebSocket

from hark.protocol.chat import ChatError, Deliver, IncomingEvent
from hark.surfaces.discord.client import DiscordClient
from hark.surfaces.discord.errors import CLIENT_ERRORS, translate_error
from hark.surfaces.discord.incoming import DiscordReader, guild_of
from hark.surfaces.discord.platform import DiscordSettings
from hark.surfaces.discord.position_tracker import ChatPosition, OpenEvent, PositionTracker
from hark.surfaces.discord.rest_writer import RestWriter
from hark.timing.backoff import Backoff

LOGIN_SECONDS = 60.0
CONNECT_SECONDS = 30.0
STABLE_SECONDS = 10.0
MAX_RETRY_SECONDS = 60.0
SHUTDOWN_SECONDS = 0.9
MAX_REMEMBERED_MESSAGES = 10_000
RESERVED_SESSIONS = 10  # Discord resets the token of a bot that starts more than a thousand sessions a day.
MAX_CLOCK_SKEW = timedelta(seconds=10)  # between our clock and Discord's
SESSION_ENDED = (4003, 4007, 4009)
FATAL = (discord.ConnectionClosed, discord.PrivilegedIntentsRequired)
PARSE_ERRORS = (LookupError, TypeError, ValueError, AttributeError)
ReadIncoming = Callable[[], Awaitable[IncomingEvent | None]]
LOG = logging.getLogger(__name__)


class GatewayConnection:
    """A logged-in connection to Discord, as a context manager. Leaving it closes every connection, task and thread."""

    def __init__(self, settings: DiscordSettings, token: str, position: PositionTracker) -> None:
        self._settings = settings
        self._token = token
        self._position = position
        self._client = DiscordClient(settings.api_base, self._on_event)
        self._files = aiohttp.ClientSession()
        self.rest = RestWriter(self._client)
        self._reader = DiscordReader(self._client, self.rest, self._files, listens_to_all=settings.listen == "all")
        self._tasks = asyncio.TaskGroup()
        self._deliver: Deliver | None = None
        self._last_task: dict[int, asyncio.Task[None]] = {}
        self._needs_new_gateway = False
        self._last_error = ""
        self._started_at = datetime.now(UTC)
        self._addressed: deque[int] = deque(maxlen=MAX_REMEMBERED_MESSAGES)  # ids of server messages for the bot

    async def __aenter__(self) -> Self:
        try:
            async with asyncio.timeout(LOGIN_SECONDS):
                await self._client.login(self._token)
        except CLIENT_ERRORS as error:
            await self._close()
            raise translate_error(error) from error
        except PARSE_ERRORS as error:
            await self._close()
            raise ChatError("The server at Discord's API URL is not Discord. Check api_base.") from error
        except BaseException:
            await self._close()
            raise
        assert self._client.user is not None
        self._position.load(str(self._client.user.id))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.move_on_after(SHUTDOWN_SECONDS, shield=True):
            await self._position.save()
        await self._close()

    async def receive(self, deliver: Deliver) -> None:
        """Deliver incoming events until cancelled.

        Raises:
            ChatError: Discord refused the connection.
            Exception: Raised by `deliver`, or by discord.py for malformed data. Undelivered events arrive again.
        """
        self._deliver = deliver
        try:
            async with self._tasks:
                await self._stay_connected()
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None

    async def _close(self) -> None:
        with anyio.move_on_after(SHUTDOWN_SECONDS, shield=True):
            await self._files.close()
            await self._client.close_resumable()

    # The connection.

    async def _stay_connected(self) -> None:
        backoff, is_first_retry = Backoff(1.0, MAX_RETRY_SECONDS), True
        client, loop = self._client, asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                await self._connect_and_poll()
            except ReconnectWebSocket as reconnect:
                if not reconnect.resume or (client.ws and client.ws.socket.close_code in SESSION_ENDED):
                    self._position.forget_session()
            except FATAL as error:
                raise translate_error(error) from error
            except CLIENT_ERRORS as error:
                self._log_failure(str(translate_error(error)))
                self._needs_new_gateway = True
            if loop.time() - began > STABLE_SECONDS:
                backoff.reset()
                is_first_retry, self._last_error = True, ""
            if self._needs_new_gateway or not is_first_retry:  # The first reconnection is made at once.
                await asyncio.sleep(backoff.next_delay())
            is_first_retry = False

    def _log_failure(self, text: str) -> None:
        """Log a failure. A repeated failure is logged at debug level."""
        LOG.log(logging.DEBUG if text == self._last_error else logging.WARNING, "discord: %s Retrying.", text)
        self._last_error = text

    async def _connect_and_poll(self) -> None:
        """Connect, resume the session if possible, and process events until the connection ends with an error."""
        client = self._client
        position = self._position.latest  # Events before this position were already received.
        gateway = position.gateway
        if self._needs_new_gateway or not position.session:  # The gateway to resume at may be gone, so ask for another.
            _, gateway, starts = await client.http.get_bot_gateway()
            if not position.session and starts["remaining"] < RESERVED_SESSIONS:
                raise ChatError("Discord's session limit is almost reached.", retry_after=starts["reset_after"] / 1000)
        connecting = DiscordWebSocket.from_client(
            client,
            gateway=yarl.URL(gateway),
            session=position.session or None,
            sequence=position.sequence if position.session else None,
            resume=bool(position.session),
        )
        client.ws = await asyncio.wait_for(connecting, CONNECT_SECONDS)
        self._needs_new_gateway = False
        while True:
            sequence = client.ws.sequence
            try:
                await client.ws.poll_event()
            except PARSE_ERRORS as error:  # The event is malformed or unknown; the next one may be readable.
                if client.ws.sequence == sequence:
                    raise
                LOG.warning("discord: an event could not be read: %s", type(error).__name__)
            if client.ws.sequence is not None and client.ws.session_id:
                self._position.advance(client.ws.sequence)

    # The events.

    def _on_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Start to process an event from discord.py. Never waits."""
        match event, arguments:
            case "connect", _:
                self._begin_session()
            case "message", (discord.Message() as message,) if self._reader.is_from_user(message):
                self._remember_addressed(message)
                self._enqueue(message.channel.id, lambda: self._reader.read_message(message), message)
            case "raw_message_edit", (discord.RawMessageUpdateEvent(message=message),) if self._reader.is_from_user(
                message
            ):
                self._on_edit(message)
            case "raw_message_delete", (discord.RawMessageDeleteEvent() as deletion,):
                self._on_deletion([deletion.message_id], deletion.channel_id, deletion.guild_id)
            case "raw_bulk_message_delete", (discord.RawBulkMessageDeleteEvent() as deletion,):
                self._on_deletion(sorted(deletion.message_ids), deletion.channel_id, deletion.guild_id)
            case "interaction", (discord.Interaction() as interaction,):
                self._on_press(interaction)
            case _:
                pass

    def _begin_session(self) -> None:
        """Handle a new session: fetch the messages that were missed since the previous session."""
        socket = self._client.ws
        self._position.begin_session(socket.session_id or "", str(socket.gateway), socket.sequence or 0)
        self._tasks.create_task(self._position.save())
        if self._settings.catch_up > 0:
            for chat, last_position in self._position.resume_position.heard.items():
                self._position.chats_to_catch_up.add(chat)
                self._append_task(int(chat), self._catch_up(chat, last_position, self._last_task.get(int(chat))))

    def _on_edit(self, message: discord.Message) -> None:
        """Process an edit. If the edit first addresses the message to the bot, the message is treated as new."""
        is_first_seen = message.created_at > self._started_at + MAX_CLOCK_SKEW and message.id not in self._addressed
        if guild_of(message.channel) and is_first_seen and message.edited_at and self._reader.is_addressed(message):
            self._remember_addressed(message)
            self._enqueue(message.channel.id, lambda: self._reader.read_message(message), message)
        else:
            self._enqueue(message.channel.id, lambda: self._reader.read_edit(message))

    def _remember_addressed(self, message: discord.Message) -> None:
        """Remember that a server message is addressed to the bot, so that its edits and deletion are processed too."""
        if guild_of(message.channel) and self._is_accepted(message):
            self._addressed.append(message.id)

    def _is_accepted(self, message: discord.Message) -> bool:
        return self._settings.listen == "all" or self._reader.is_addressed(message)

    def _on_deletion(self, messages: list[int], channel: int, guild: int | None) -> None:
        for message in messages:
            if guild is None or message in self._addressed or self._may_be_addressed(message, channel):
                self._enqueue(channel, partial(self._reader.read_deletion, message, channel, guild))

    def _may_be_addressed(self, message: int, channel: int) -> bool:
        """Return whether a server message from before this connection may have been addressed to the bot."""
        is_older = discord.utils.snowflake_time(message) < self._started_at
        return is_older and str(channel) in self._position.latest.heard

    def _on_press(self, interaction: discord.Interaction) -> None:
        if interaction.type is not discord.InteractionType.component or interaction.data is None:
            return
        value = self.rest.button_values.restore(str(interaction.data.get("custom_id", "")))
        self._tasks.create_task(self._acknowledge(interaction, is_known=bool(value)))
        if value:  # A press may be a stop, so it doesn't wait for the messages before it.
            open_event = self._position.open_event(self._client.ws.sequence or 0)
            self._tasks.create_task(
                self._deliver_in_order(open_event, None, lambda: self._reader.read_press(interaction, value))
            )

    async def _acknowledge(self, interaction: discord.Interaction, *, is_known: bool) -> None:
        try:
            await self.rest.acknowledge(interaction.id, interaction.token, is_known=is_known)
        except ChatError as error:
            LOG.info("discord: a button press could not be acknowledged: %s", error)

    # Delivery: in order within each channel, while files are downloaded in parallel.

    def _enqueue(self, channel: int, read: ReadIncoming, message: discord.Message | None = None) -> None:
        open_event = self._position.open_event(self._client.ws.sequence or 0)
        self._append_task(channel, self._deliver_in_order(open_event, self._last_task.get(channel), read, message))

    def _append_task(self, channel: int, work: Coroutine[Any, Any, None]) -> None:
        task = self._last_task[channel] = self._tasks.create_task(work)
        task.add_done_callback(
            lambda _: self._last_task.pop(channel, None) if self._last_task.get(channel) is task else None
        )

    async def _deliver_in_order(
        self,
        open_event: OpenEvent | None,
        previous: asyncio.Task[None] | None,
        read: ReadIncoming,
        message: discord.Message | None = None,
    ) -> None:
        incoming = await read()
        if previous is not None:
            await asyncio.wait([previous])
        assert self._deliver is not None
        if incoming is not None:
            await self._deliver(incoming)
        if message is not None:
            position = ChatPosition(message.id, guild_of(message.channel))
            self._position.record_message(str(message.channel.id), position, is_addressed=self._is_accepted(message))
        if open_event is not None:
            await self._position.close_event(open_event)

    async def _catch_up(self, chat: str, last_position: ChatPosition, previous: asyncio.Task[None] | None) -> None:
        missed = await self._reader.fetch_missed(chat, last_position, self._settings.catch_up)
        if previous is not None:
            await asyncio.wait([previous])
        for message in missed:
            if self._reader.is_from_user(message):
                self._remember_addressed(message)
                await self._deliver_in_order(None, None, partial(self._reader.read_message, message), message)
        self._position.chats_to_catch_up.discard(chat)
