"""One connection to Discord: its events are delivered in order, and resumed behind the last one that was kept."""

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

from hark.protocol.chat import ChatError, Deliver, Incoming
from hark.surfaces.discord.client import DiscordClient
from hark.surfaces.discord.errors import ERRORS, told
from hark.surfaces.discord.incoming import Reader, guild_of
from hark.surfaces.discord.platform import DiscordSettings
from hark.surfaces.discord.position import ChatPosition, Mark, Position
from hark.surfaces.discord.rest import Rest
from hark.timing.backoff import Backoff

LOGIN_SECONDS = 60.0
CONNECT_SECONDS = 30.0
STEADY_SECONDS = 10.0
LONGEST_PAUSE_SECONDS = 60.0
LEAVE_SECONDS = 0.9
MOST_KNOWN = 10_000
SPARE_SESSIONS = 10  # Discord takes the token away from who begins more than a thousand a day
CLOCKS_DIFFER = timedelta(seconds=10)  # ours and Discord's, at most
SESSION_ENDED = (4003, 4007, 4009)
FATAL = (discord.ConnectionClosed, discord.PrivilegedIntentsRequired)
UNREADABLE = (LookupError, TypeError, ValueError, AttributeError)
Read = Callable[[], Awaitable[Incoming | None]]
LOG = logging.getLogger(__name__)


class GatewayConnection:
    """Logged in while it is entered; leaving it closes all, and leaves neither task nor thread."""

    def __init__(self, settings: DiscordSettings, token: str, position: Position) -> None:
        self._settings = settings
        self._token = token
        self._position = position
        self._client = DiscordClient(settings.api_base, self._take)
        self._files = aiohttp.ClientSession()
        self.rest = Rest(self._client)
        self._reader = Reader(self._client, self.rest, self._files, hears_all=settings.listen == "all")
        self._tasks = asyncio.TaskGroup()
        self._deliver: Deliver | None = None
        self._lanes: dict[int, asyncio.Task[None]] = {}
        self._is_astray = False
        self._complaint = ""
        self._began = datetime.now(UTC)
        self._known: deque[int] = deque(maxlen=MOST_KNOWN)  # messages in servers that were for us

    async def __aenter__(self) -> Self:
        try:
            async with asyncio.timeout(LOGIN_SECONDS):
                await self._client.login(self._token)
        except ERRORS as error:
            await self._leave()
            raise told(error) from error
        except UNREADABLE as error:
            await self._leave()
            raise ChatError("What answers at the address of Discord's API is not Discord. Check api_base.") from error
        except BaseException:
            await self._leave()
            raise
        assert self._client.user is not None
        self._position.load(str(self._client.user.id))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._position.save()
        await self._leave()

    async def receive(self, deliver: Deliver) -> None:
        """Deliver what comes, until cancelled.

        Raises:
            ChatError: Discord refuses us.
            Exception: What `deliver` raised, or discord.py of words without sense; what was not taken comes again.
        """
        self._deliver = deliver
        try:
            async with self._tasks:
                await self._stay_connected()
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None

    async def _leave(self) -> None:
        with anyio.move_on_after(LEAVE_SECONDS, shield=True):
            await self._files.close()
            await self._client.leave()

    # The connection.

    async def _stay_connected(self) -> None:
        backoff, is_calm = Backoff(1.0, LONGEST_PAUSE_SECONDS), True
        client, loop = self._client, asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                await self._poll()
            except ReconnectWebSocket as again:
                if not again.resume or (client.ws and client.ws.socket.close_code in SESSION_ENDED):
                    self._position.forget()
            except FATAL as error:
                raise told(error) from error
            except ERRORS as error:
                self._complain(str(told(error)))
                self._is_astray = True
            if loop.time() - began > STEADY_SECONDS:
                backoff.reset()
                is_calm, self._complaint = True, ""
            if self._is_astray or not is_calm:  # the first new connection is made at once
                await asyncio.sleep(backoff.next_delay())
            is_calm = False

    def _complain(self, text: str) -> None:
        """Say what is wrong, once for as long as it is the same."""
        LOG.log(logging.DEBUG if text == self._complaint else logging.WARNING, "discord: %s It is tried again.", text)
        self._complaint = text

    async def _poll(self) -> None:
        """Connect, resume what can be, and take events until the connection ends; that it does so is raised."""
        client = self._client
        place = self._position.newest  # what came before is in our hands
        gateway = place.gateway
        if self._is_astray or not place.session:  # the address to resume at may be gone: there is another
            _, gateway, starts = await client.http.get_bot_gateway()
            if not place.session and starts["remaining"] < SPARE_SESSIONS:
                raise ChatError("Discord allows no more sessions for now.", retry_after=starts["reset_after"] / 1000)
        connecting = DiscordWebSocket.from_client(
            client,
            gateway=yarl.URL(gateway),
            session=place.session or None,
            sequence=place.sequence if place.session else None,
            resume=bool(place.session),
        )
        client.ws = await asyncio.wait_for(connecting, CONNECT_SECONDS)
        self._is_astray = False
        while True:
            seen = client.ws.sequence
            try:
                await client.ws.poll_event()
            except UNREADABLE as error:  # not what discord.py or we know: the next one may be
                if client.ws.sequence == seen:
                    raise
                LOG.warning("discord: an event could not be read: %s", type(error).__name__)
            if client.ws.sequence is not None and client.ws.session_id:
                self._position.reach(client.ws.sequence)

    # The events.

    def _take(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Begin to deal with an event of discord.py's; waits for nothing."""
        match event, arguments:
            case "connect", _:
                self._begin()
            case "message", (discord.Message() as message,) if self._reader.is_said(message):
                self._know(message)
                self._put(message.channel.id, lambda: self._reader.written(message), message)
            case "raw_message_edit", (discord.RawMessageUpdateEvent(message=message),) if self._reader.is_said(message):
                self._edit(message)
            case "raw_message_delete", (discord.RawMessageDeleteEvent() as gone,):
                self._remove([gone.message_id], gone.channel_id, gone.guild_id)
            case "raw_bulk_message_delete", (discord.RawBulkMessageDeleteEvent() as gone,):
                self._remove(sorted(gone.message_ids), gone.channel_id, gone.guild_id)
            case "interaction", (discord.Interaction() as interaction,):
                self._press(interaction)
            case _:
                pass

    def _begin(self) -> None:
        """A new session has begun: what was said between it and the last one is asked for."""
        socket = self._client.ws
        self._position.begin(socket.session_id or "", str(socket.gateway), socket.sequence or 0)
        if self._settings.catch_up > 0:
            for chat, heard in self._position.place.heard.items():
                self._position.behind.add(chat)
                self._enter(int(chat), self._catch_up(chat, heard, self._lanes.get(int(chat))))

    def _edit(self, message: discord.Message) -> None:
        """Take an edit. One that names us in a message that was written to others is heard for the first time."""
        is_news = message.created_at > self._began + CLOCKS_DIFFER and message.id not in self._known
        if guild_of(message.channel) and is_news and message.edited_at and self._reader.is_ours(message):
            self._know(message)
            self._put(message.channel.id, lambda: self._reader.written(message), message)
        else:
            self._put(message.channel.id, lambda: self._reader.rewritten(message))

    def _know(self, message: discord.Message) -> None:
        """Remember that a message in a server is for us: so are its edits, and its deletion."""
        if guild_of(message.channel) and self._is_ours(message):
            self._known.append(message.id)

    def _is_ours(self, message: discord.Message) -> bool:
        return self._settings.listen == "all" or self._reader.is_ours(message)

    def _remove(self, messages: list[int], channel: int, guild: int | None) -> None:
        for message in messages:
            if guild is None or message in self._known or self._may_be_ours(message, channel):
                self._put(channel, partial(self._reader.removed, message, channel, guild))

    def _may_be_ours(self, message: int, channel: int) -> bool:
        """Tell whether a message in a server may have been for us, before we began; others' are no business of ours."""
        is_older = discord.utils.snowflake_time(message) < self._began
        return is_older and str(channel) in self._position.newest.heard

    def _press(self, interaction: discord.Interaction) -> None:
        if interaction.type is not discord.InteractionType.component or interaction.data is None:
            return
        value = self.rest.button_values.of(str(interaction.data.get("custom_id", "")))
        self._tasks.create_task(self._acknowledge(interaction, is_known=bool(value)))
        if value:  # it waits for no message before it: it may be a stop
            mark = self._position.open(self._client.ws.sequence or 0)
            self._tasks.create_task(self._deal(mark, None, lambda: self._reader.pressed(interaction, value)))

    async def _acknowledge(self, interaction: discord.Interaction, *, is_known: bool) -> None:
        try:
            await self.rest.acknowledge(interaction.id, interaction.token, is_known=is_known)
        except ChatError as error:
            LOG.info("discord: a press could not be acknowledged: %s", error)

    # Dealing with them: in each channel one after the other, though their files are fetched at once.

    def _put(self, lane: int, read: Read, message: discord.Message | None = None) -> None:
        mark = self._position.open(self._client.ws.sequence or 0)
        self._enter(lane, self._deal(mark, self._lanes.get(lane), read, message))

    def _enter(self, lane: int, work: Coroutine[Any, Any, None]) -> None:
        task = self._lanes[lane] = self._tasks.create_task(work)
        task.add_done_callback(lambda _: self._lanes.pop(lane, None) if self._lanes.get(lane) is task else None)

    async def _deal(
        self,
        mark: Mark | None,
        before: asyncio.Task[None] | None,
        read: Read,
        message: discord.Message | None = None,
    ) -> None:
        incoming = await read()
        if before is not None:
            await asyncio.wait([before])
        assert self._deliver is not None
        if incoming is not None:
            await self._deliver(incoming)
        if message is not None:
            heard = ChatPosition(message.id, guild_of(message.channel))
            self._position.hear(str(message.channel.id), heard, is_ours=self._is_ours(message))
        if mark is not None:
            self._position.done(mark)

    async def _catch_up(self, chat: str, heard: ChatPosition, before: asyncio.Task[None] | None) -> None:
        missed = await self._reader.missed(chat, heard, self._settings.catch_up)
        if before is not None:
            await asyncio.wait([before])
        for message in missed:
            if self._reader.is_said(message):
                self._know(message)
                await self._deal(None, None, partial(self._reader.written, message), message)
        self._position.behind.discard(chat)
