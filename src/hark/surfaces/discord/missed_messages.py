"""What was said in a chat while nobody told us."""

import asyncio
import logging

import discord

from hark.protocol.chat import ChatError
from hark.surfaces.chat.retry import retried
from hark.surfaces.discord.client import DiscordClient
from hark.surfaces.discord.errors import ERRORS, told
from hark.surfaces.discord.position import ChatPosition
from hark.timing.backoff import Backoff

AT_ONCE = 5  # chats
FIRST_PAUSE_SECONDS = 1.0
TRIES = 6
LOG = logging.getLogger(__name__)


class Missed:
    """Reads the history of chats, a few at once."""

    def __init__(self, client: DiscordClient, most: int) -> None:
        self._client = client
        self._most = most
        self._places = asyncio.Semaphore(AT_ONCE)

    async def since(self, chat: str, heard: ChatPosition) -> list[discord.Message]:
        """Return what was said in a chat since then; asks again when Discord can't tell now."""
        guild = int(heard.guild) if heard.guild else None
        channel = self._client.get_partial_messageable(int(chat), guild_id=guild)
        after = discord.Object(heard.message)

        async def read() -> list[discord.Message]:
            try:
                async with self._places:
                    history = channel.history(limit=self._most, after=after, oldest_first=True)
                    return [message async for message in history]
            except ERRORS as error:
                raise told(error) from error

        try:
            return await retried(read, Backoff(FIRST_PAUSE_SECONDS, 16.0), TRIES)
        except ChatError as error:
            LOG.warning("discord: what was said meanwhile in %s could not be read: %s", chat, error)
            return []
