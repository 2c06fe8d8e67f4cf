"""What was said in a chat while nobody told us."""

import asyncio
import logging

import discord

from hark.protocol.chat import ChatGone
from hark.surfaces.discord.client import DiscordClient
from hark.surfaces.discord.errors import ERRORS, told
from hark.surfaces.discord.position import ChatPosition

AT_ONCE = 5  # chats
PAUSES_SECONDS = (1.0, 2.0, 4.0, 8.0, 16.0)
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
        for pause in (*PAUSES_SECONDS, None):
            try:
                async with self._places:
                    history = channel.history(limit=self._most, after=after, oldest_first=True)
                    return [message async for message in history]
            except ERRORS as error:
                found = told(error)
                if pause is None or isinstance(found, ChatGone):
                    LOG.warning("discord: what was said meanwhile in %s could not be read: %s", chat, found)
                    break
                await asyncio.sleep(found.retry_after if found.retry_after is not None else pause)
        return []
