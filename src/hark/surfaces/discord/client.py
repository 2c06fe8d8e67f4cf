"""A discord.py client that passes events on in order and sends its requests to the configured server."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import discord
from discord.gateway import KeepAliveHandler
from discord.http import Route

IDENTIFY_SECONDS = 5.0  # Discord accepts one identify in this time
MAX_RATE_LIMIT_SECONDS = 30.0
CLOSE_SECONDS = 0.6
RESUMABLE_CLOSE_CODE = 4000

EventCallback = Callable[[str, tuple[Any, ...]], None]


class DiscordClient(discord.Client):
    """A client that passes each event directly to `on_event` and caches only servers and their channels."""

    def __init__(self, api_base: str, on_event: EventCallback) -> None:
        discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False  # we make no voice calls
        intents = discord.Intents(guilds=True, guild_messages=True, dm_messages=True, message_content=True)
        super().__init__(
            intents=intents,
            max_messages=None,
            member_cache_flags=discord.MemberCacheFlags.none(),
            chunk_guilds_at_startup=False,
            guild_ready_timeout=0.0,
            max_ratelimit_timeout=MAX_RATE_LIMIT_SECONDS,
        )
        self._on_event = on_event
        self._identified_at = -IDENTIFY_SECONDS
        if api_base:
            self._redirect_requests(api_base.rstrip("/"))

    def dispatch(self, event: str, /, *args: Any, **kwargs: Any) -> None:
        """Pass an event to the callback."""
        self._on_event(event, args)

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Wait only as long as Discord requires between two identify requests."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(max(0.0, self._identified_at + IDENTIFY_SECONDS - loop.time()))
        self._identified_at = loop.time()

    async def close_resumable(self) -> None:
        """Close the connection within a second. Discord keeps the session, so that it can be resumed."""
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                if self.ws and self.ws.open:
                    await self.ws.close(code=RESUMABLE_CLOSE_CODE)
        except TimeoutError:
            pass  # Discord does not answer; the connection is closed below.
        heartbeats = self._heartbeat_threads()
        for heartbeat in heartbeats:
            heartbeat.stop()
        await self.close()
        while any(heartbeat.is_alive() for heartbeat in heartbeats):  # noqa: ASYNC110  # a thread sets no event of a loop
            await asyncio.sleep(0.01)

    def release_global_limit(self) -> None:
        """Release discord.py's global rate limit, which is never released if the waiting request is cancelled."""
        self.http._global_over.set()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    def _heartbeat_threads(self) -> list[KeepAliveHandler]:
        """Return discord.py's heartbeat threads for our connections, including those of failed connections."""
        threads = [thread for thread in threading.enumerate() if isinstance(thread, KeepAliveHandler)]
        mine = self._connection
        return [thread for thread in threads if thread.ws._connection is mine]  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    def _redirect_requests(self, api_base: str) -> None:
        request = self.http.request

        async def request_redirected(route: Route, **options: Any) -> Any:
            route.url = api_base + route.url.removeprefix(Route.BASE)
            return await request(route, **options)

        self.http.request = request_redirected
