"""discord.py's client, with its events handed over in their order and its requests sent where the settings say."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import discord
from discord.gateway import KeepAliveHandler
from discord.http import Route

IDENTIFY_SECONDS = 5.0  # Discord takes one identify in that time
LONGEST_LIMIT_SECONDS = 30.0
CLOSE_SECONDS = 0.6
RESUMABLE = 4000

Take = Callable[[str, tuple[Any, ...]], None]


class DiscordClient(discord.Client):
    """It starts no tasks for events: `take` gets each, at once. Nothing is cached but servers and their channels."""

    def __init__(self, api_base: str, take: Take) -> None:
        discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False  # we make no calls
        intents = discord.Intents(guilds=True, guild_messages=True, dm_messages=True, message_content=True)
        super().__init__(
            intents=intents,
            max_messages=None,
            member_cache_flags=discord.MemberCacheFlags.none(),
            chunk_guilds_at_startup=False,
            guild_ready_timeout=0.0,
            max_ratelimit_timeout=LONGEST_LIMIT_SECONDS,
        )
        self._take = take
        self._identified_at = -IDENTIFY_SECONDS
        if api_base:
            self._send_requests_to(api_base.rstrip("/"))

    def dispatch(self, event: str, /, *args: Any, **kwargs: Any) -> None:
        """Hand an event over."""
        self._take(event, args)

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Wait no longer than Discord wants between two sessions."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(max(0.0, self._identified_at + IDENTIFY_SECONDS - loop.time()))
        self._identified_at = loop.time()

    async def leave(self) -> None:
        """Close everything, within a second; the session stays open at Discord's end, to be resumed."""
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                if self.ws and self.ws.open:
                    await self.ws.close(code=RESUMABLE)
        except TimeoutError:
            pass  # its end does not answer: the connection is cut below
        beats = self._heartbeats()
        for beat in beats:
            beat.stop()
        await self.close()
        while any(beat.is_alive() for beat in beats):  # noqa: ASYNC110  # a thread sets no event of a loop
            await asyncio.sleep(0.01)

    def open_gate(self) -> None:
        """Let requests go on. discord.py holds all for good when one is cancelled while it waits for a global limit."""
        self.http._global_over.set()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    def _heartbeats(self) -> list[KeepAliveHandler]:
        """Return the threads that discord.py runs for our connections, of those that failed half-way too."""
        threads = [thread for thread in threading.enumerate() if isinstance(thread, KeepAliveHandler)]
        mine = self._connection
        return [thread for thread in threads if thread.ws._connection is mine]  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    def _send_requests_to(self, api_base: str) -> None:
        request = self.http.request

        async def elsewhere(route: Route, **options: Any) -> Any:
            route.url = api_base + route.url.removeprefix(Route.BASE)
            return await request(route, **options)

        self.http.request = elsewhere
