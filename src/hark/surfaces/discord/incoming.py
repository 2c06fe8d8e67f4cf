"""What comes from Discord, in the port's words."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from functools import partial
from typing import TYPE_CHECKING

import aiohttp
import discord

from hark.protocol.chat import Address, Author, ChatError, ChatGone, Incoming, Pressed, Removed, Rewritten, Written
from hark.protocol.messages import Attachment
from hark.surfaces.chat.download import CHUNK_BYTES, download, not_downloaded
from hark.surfaces.chat.recent_values import Recent
from hark.surfaces.chat.retry import retried
from hark.surfaces.discord.errors import ERRORS, told
from hark.surfaces.discord.markup import readable
from hark.surfaces.discord.position import ChatPosition
from hark.timing.backoff import Backoff

if TYPE_CHECKING:
    from hark.surfaces.discord.client import DiscordClient
    from hark.surfaces.discord.rest import Rest

SAID = (discord.MessageType.default, discord.MessageType.reply)
THREADS = (10, 11, 12)
HISTORIES_AT_ONCE = 5  # chats
HISTORY_TRIES = 6
FIRST_PAUSE_SECONDS = 1.0
LOG = logging.getLogger(__name__)


class Reader:
    """Reads messages, edits and presses. What is not a person's word is None."""

    def __init__(self, client: "DiscordClient", rest: "Rest", files: aiohttp.ClientSession, *, hears_all: bool) -> None:
        self._client = client
        self._rest = rest
        self._files = files
        self._hears_all = hears_all
        self._parents: Recent[str] = Recent()
        self._histories = asyncio.Semaphore(HISTORIES_AT_ONCE)

    def is_said(self, message: discord.Message) -> bool:
        """Tell whether a person said it: no bot, ourselves among them, and no notice of Discord's."""
        return not message.author.bot and message.webhook_id is None and message.type in SAID

    def is_ours(self, message: discord.Message) -> bool:
        """Tell whether it was said to us: alone with us, by naming us or our role, or as a reply to us."""
        if is_direct(message.channel):
            return True
        me = self._me
        named = any(user.id == me for user in message.mentions) or any(
            role.tags is not None and role.tags.bot_id == me for role in message.role_mentions
        )
        answered = _answered(message)
        return named or (answered is not None and answered.author.id == me)

    async def written(self, message: discord.Message) -> Incoming | None:
        """Read a message, with its files when it is for us."""
        is_ours = self.is_ours(message)
        text = self._text(message)
        files: list[Attachment] = []
        if is_ours or self._hears_all:
            files, failures = await self._fetch(message)
            text = "\n".join([*([text] if text else []), *failures])
        if not (text or files):
            return None
        voice = files.pop(0) if message.flags.voice and files else None
        answered = _answered(message)
        return Written(
            str(message.id),
            await self.address(message.channel),
            _author(message.author),
            text,
            tuple(files),
            voice,
            is_ours,
            quoted=self._text(answered) if answered is not None else "",
            at=message.created_at.timestamp(),
        )

    async def rewritten(self, message: discord.Message) -> Incoming | None:
        """Read an edit; one of a message that was not for us is none."""
        if message.edited_at is None or not (self._hears_all or self.is_ours(message)):
            return None  # Discord tells in the same way that it made a preview of a link
        address, at = await self.address(message.channel), message.edited_at.timestamp()
        return Rewritten(str(message.id), address, _author(message.author), self._text(message), at)

    async def removed(self, message: int, channel: int, guild: int | None) -> Incoming:
        """Read a deletion."""
        place = self._client.get_channel(channel)
        if not isinstance(place, discord.Thread | discord.TextChannel):
            place = self._client.get_partial_messageable(channel, guild_id=guild)
        return Removed(str(message), await self.address(place))

    async def missed(self, chat: str, heard: ChatPosition, most: int) -> list[discord.Message]:
        """Return what was said in a chat since a message, at most so much. Retries while Discord can't answer."""
        guild = int(heard.guild) if heard.guild else None
        channel = self._client.get_partial_messageable(int(chat), guild_id=guild)
        after = discord.Object(heard.message)

        async def read() -> list[discord.Message]:
            try:
                async with self._histories:
                    history = channel.history(limit=most, after=after, oldest_first=True)
                    return [message async for message in history]
            except ERRORS as error:
                raise told(error) from error

        try:
            return await retried(read, Backoff(FIRST_PAUSE_SECONDS, 16.0), HISTORY_TRIES)
        except ChatError as error:
            LOG.warning("discord: what was said meanwhile in %s could not be read: %s", chat, error)
            return []

    async def pressed(self, interaction: discord.Interaction, value: str) -> Incoming | None:
        """Read a press of a button."""
        channel = interaction.channel
        if channel is None and interaction.channel_id is not None:
            guild = interaction.guild_id
            channel = self._client.get_partial_messageable(interaction.channel_id, guild_id=guild)
        if channel is None:
            return None
        return Pressed(str(interaction.id), await self.address(channel), _author(interaction.user), value)

    async def address(self, channel: object) -> Address:
        """Return the address of a channel. A thread's is that of the channel around it; Discord is asked if need be."""
        assert isinstance(channel, discord.abc.Snowflake)
        if isinstance(channel, discord.Thread):
            return Address("discord", str(channel.parent_id), str(channel.id))
        if not isinstance(channel, discord.PartialMessageable) or channel.guild_id is None:
            return Address("discord", str(channel.id))
        name = str(channel.id)
        parent = self._parents.get(name)
        if parent is None:
            parent = await self._parent(channel.id)
            self._parents.put(name, parent)
        return Address("discord", parent, name) if parent else Address("discord", name)

    async def _parent(self, channel: int) -> str:
        """Return the channel around a thread, "" when it is none."""
        try:
            known = await self._rest.ask(self._client.http.get_channel(channel))
        except ChatError:
            return ""
        return str(known.get("parent_id", "")) if known["type"] in THREADS else ""

    async def _fetch(self, message: discord.Message) -> tuple[list[Attachment], list[str]]:
        files: list[Attachment] = []
        failures: list[str] = []
        forwarded = [file for snapshot in message.message_snapshots for file in snapshot.attachments]
        for file in (*message.attachments, *forwarded):
            content = partial(self._content, file.url)
            try:
                files.append(await download(content, file.filename, file.content_type or "", file.size))
            except ChatError as error:
                failures.append(not_downloaded(file.filename, error))
        return files, failures

    async def _content(self, url: str) -> AsyncGenerator[bytes]:
        async with self._files.get(url) as response:
            if 400 <= response.status < 500:
                raise ChatGone(f"Discord answered {response.status}")
            response.raise_for_status()
            async for chunk in response.content.iter_chunked(CHUNK_BYTES):
                yield chunk

    def _text(self, message: discord.Message) -> str:
        names = {str(user.id): user.display_name for user in message.mentions}
        names |= {str(role.id): role.name for role in message.role_mentions}
        names |= {str(channel.id): channel.name for channel in message.channel_mentions}
        text = readable(message.content, names, str(self._me))
        forwarded = [f"[Forwarded]\n{snapshot.content}" for snapshot in message.message_snapshots if snapshot.content]
        stickers = [f"[Sticker: {sticker.name}]" for sticker in message.stickers]
        return "\n".join([*([text] if text else []), *forwarded, *stickers])

    @property
    def _me(self) -> int:
        assert self._client.user is not None
        return self._client.user.id


def is_direct(channel: object) -> bool:
    """Tell whether only one person and we are there."""
    if isinstance(channel, discord.PartialMessageable):
        return channel.guild_id is None
    return isinstance(channel, discord.DMChannel)


def guild_of(channel: object) -> str:
    """Return the server of a channel, "" for a direct chat."""
    if isinstance(channel, discord.PartialMessageable):
        return str(channel.guild_id or "")
    return str(channel.guild.id) if isinstance(channel, discord.abc.GuildChannel | discord.Thread) else ""


def _answered(message: discord.Message) -> discord.Message | None:
    """Return the message to which this one replies, when Discord still has it."""
    if message.reference is None or message.type is not discord.MessageType.reply:
        return None
    return message.reference.resolved if isinstance(message.reference.resolved, discord.Message) else None


def _author(author: discord.User | discord.Member) -> Author:
    return Author(str(author.id), author.display_name)
