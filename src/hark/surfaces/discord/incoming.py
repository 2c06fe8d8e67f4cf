"""Read messages, edits, deletions and button presses from Discord."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from functools import partial
from typing import TYPE_CHECKING

import aiohttp
import discord

from hark.protocol.chat import (
    Address,
    Author,
    ButtonPressed,
    ChatError,
    ChatGone,
    IncomingEvent,
    IncomingMessage,
    MessageDeleted,
    MessageEdited,
)
from hark.protocol.messages import Attachment
from hark.surfaces.chat.download import CHUNK_BYTES, describe_failed_download, download
from hark.surfaces.chat.recent_values import RecentValues
from hark.surfaces.chat.retry import retry_call
from hark.surfaces.discord.errors import CLIENT_ERRORS, translate_error
from hark.surfaces.discord.markup import replace_mentions
from hark.surfaces.discord.position_tracker import ChatPosition
from hark.timing.backoff import Backoff

if TYPE_CHECKING:
    from hark.surfaces.discord.client import DiscordClient
    from hark.surfaces.discord.rest_writer import RestWriter

USER_MESSAGE_TYPES = (discord.MessageType.default, discord.MessageType.reply)
THREAD_TYPES = (10, 11, 12)
MAX_PARALLEL_HISTORIES = 5  # chats whose history is read at the same time
MAX_HISTORY_TRIES = 6
FIRST_RETRY_SECONDS = 1.0
LOG = logging.getLogger(__name__)


class DiscordReader:
    """Reads Discord's messages, edits and button presses. Returns None for events without content for the agent."""

    def __init__(
        self, client: "DiscordClient", rest: "RestWriter", files: aiohttp.ClientSession, *, listens_to_all: bool
    ) -> None:
        self._client = client
        self._rest = rest
        self._files = files
        self._listens_to_all = listens_to_all
        self._parents: RecentValues[str] = RecentValues()
        self._histories = asyncio.Semaphore(MAX_PARALLEL_HISTORIES)

    def is_from_user(self, message: discord.Message) -> bool:
        """Return whether a user wrote the message, not a bot, a webhook or Discord itself."""
        return not message.author.bot and message.webhook_id is None and message.type in USER_MESSAGE_TYPES

    def is_addressed(self, message: discord.Message) -> bool:
        """Return whether a message is for the bot: a direct message, a mention of the bot or its role, or a reply to
        it.
        """
        if is_direct(message.channel):
            return True
        bot_id = self._bot_id
        is_mentioned = any(user.id == bot_id for user in message.mentions) or any(
            role.tags is not None and role.tags.bot_id == bot_id for role in message.role_mentions
        )
        replied = _replied_message(message)
        return is_mentioned or (replied is not None and replied.author.id == bot_id)

    async def read_message(self, message: discord.Message) -> IncomingEvent | None:
        """Read a message. Download its files if it is addressed to the bot."""
        is_addressed = self.is_addressed(message)
        text = self._message_text(message)
        files: list[Attachment] = []
        if is_addressed or self._listens_to_all:
            files, failures = await self._download_files(message)
            text = "\n".join([*([text] if text else []), *failures])
        if not (text or files):
            return None
        voice = files.pop(0) if message.flags.voice and files else None
        replied = _replied_message(message)
        return IncomingMessage(
            str(message.id),
            await self.address_of(message.channel),
            _author(message.author),
            text,
            tuple(files),
            voice,
            is_addressed,
            quoted=self._message_text(replied) if replied is not None else "",
            at=message.created_at.timestamp(),
            replied_to=str(replied.id) if replied is not None else "",
            is_private=is_direct(message.channel),
        )

    async def read_edit(self, message: discord.Message) -> IncomingEvent | None:
        """Read an edit. Return None if the message was not addressed to the bot."""
        if message.edited_at is None or not (self._listens_to_all or self.is_addressed(message)):
            return None  # Discord sends the same event when it adds a link preview.
        address, at = await self.address_of(message.channel), message.edited_at.timestamp()
        return MessageEdited(str(message.id), address, _author(message.author), self._message_text(message), at)

    async def read_deletion(self, message: int, channel: int, guild: int | None) -> IncomingEvent:
        """Read the deletion of a message."""
        source = self._client.get_channel(channel)
        if not isinstance(source, discord.Thread | discord.TextChannel):
            source = self._client.get_partial_messageable(channel, guild_id=guild)
        return MessageDeleted(str(message), await self.address_of(source))

    async def fetch_missed(self, chat: str, last_position: ChatPosition, limit: int) -> list[discord.Message]:
        """Return up to `limit` messages written after the last position. Retries while Discord is unavailable."""
        guild = int(last_position.guild) if last_position.guild else None
        channel = self._client.get_partial_messageable(int(chat), guild_id=guild)
        after = discord.Object(last_position.message)

        async def read_history() -> list[discord.Message]:
            try:
                async with self._histories:
                    history = channel.history(limit=limit, after=after, oldest_first=True)
                    return [message async for message in history]
            except CLIENT_ERRORS as error:
                raise translate_error(error) from error

        try:
            return await retry_call(read_history, Backoff(FIRST_RETRY_SECONDS, 16.0), MAX_HISTORY_TRIES)
        except ChatError as error:
            LOG.warning("discord: the missed messages of chat %s could not be read: %s", chat, error)
            return []

    async def read_press(self, interaction: discord.Interaction, value: str) -> IncomingEvent | None:
        """Read a button press. Return None if its channel is unknown."""
        channel = interaction.channel
        if channel is None and interaction.channel_id is not None:
            guild = interaction.guild_id
            channel = self._client.get_partial_messageable(interaction.channel_id, guild_id=guild)
        if channel is None:
            return None
        return ButtonPressed(str(interaction.id), await self.address_of(channel), _author(interaction.user), value)

    async def address_of(self, channel: object) -> Address:
        """Return the address of a channel, or of a thread in its channel. Discord is queried if necessary."""
        assert isinstance(channel, discord.abc.Snowflake)
        if isinstance(channel, discord.Thread):
            return Address("discord", str(channel.parent_id), str(channel.id))
        if not isinstance(channel, discord.PartialMessageable) or channel.guild_id is None:
            return Address("discord", str(channel.id))
        channel_id = str(channel.id)
        parent = self._parents.get(channel_id)
        if parent is None:
            parent = await self._fetch_parent(channel.id)
            self._parents.put(channel_id, parent)
        return Address("discord", parent, channel_id) if parent else Address("discord", channel_id)

    async def _fetch_parent(self, channel: int) -> str:
        """Return the id of a thread's channel, or "" if the channel isn't a thread."""
        try:
            info = await self._rest.request(self._client.http.get_channel(channel))
        except ChatError:
            return ""
        return str(info.get("parent_id", "")) if info["type"] in THREAD_TYPES else ""

    async def _download_files(self, message: discord.Message) -> tuple[list[Attachment], list[str]]:
        files: list[Attachment] = []
        failures: list[str] = []
        forwarded = [file for snapshot in message.message_snapshots for file in snapshot.attachments]
        for file in (*message.attachments, *forwarded):
            content = partial(self._stream_file, file.url)
            try:
                files.append(await download(content, file.filename, file.content_type or "", file.size))
            except ChatError as error:
                failures.append(describe_failed_download(file.filename, error))
        return files, failures

    async def _stream_file(self, url: str) -> AsyncGenerator[bytes]:
        async with self._files.get(url) as response:
            if 400 <= response.status < 500:
                raise ChatGone(f"Discord answered {response.status}")
            response.raise_for_status()
            async for chunk in response.content.iter_chunked(CHUNK_BYTES):
                yield chunk

    def _message_text(self, message: discord.Message) -> str:
        names = {str(user.id): user.display_name for user in message.mentions}
        names |= {str(role.id): role.name for role in message.role_mentions}
        names |= {str(channel.id): channel.name for channel in message.channel_mentions}
        text = replace_mentions(message.content, names, str(self._bot_id))
        forwarded = [f"[Forwarded]\n{snapshot.content}" for snapshot in message.message_snapshots if snapshot.content]
        stickers = [f"[Sticker: {sticker.name}]" for sticker in message.stickers]
        return "\n".join([*([text] if text else []), *forwarded, *stickers])

    @property
    def _bot_id(self) -> int:
        assert self._client.user is not None
        return self._client.user.id


def is_direct(channel: object) -> bool:
    """Return whether a channel is a direct chat between one user and the bot."""
    if isinstance(channel, discord.PartialMessageable):
        return channel.guild_id is None
    return isinstance(channel, discord.DMChannel)


def guild_of(channel: object) -> str:
    """Return the id of a channel's server, or "" for a direct chat."""
    if isinstance(channel, discord.PartialMessageable):
        return str(channel.guild_id or "")
    return str(channel.guild.id) if isinstance(channel, discord.abc.GuildChannel | discord.Thread) else ""


def _replied_message(message: discord.Message) -> discord.Message | None:
    """Return the message that this one replies to, if Discord still has it."""
    if message.reference is None or message.type is not discord.MessageType.reply:
        return None
    return message.reference.resolved if isinstance(message.reference.resolved, discord.Message) else None


def _author(author: discord.User | discord.Member) -> Author:
    return Author(str(author.id), author.display_name)
