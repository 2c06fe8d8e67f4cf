"""HTTP connections to model servers. The app opens them, all sessions share them, and a cancel closes them at once."""

import asyncio
import socket

import aiohttp
from aiohttp.abc import ResolveResult

CONNECT_SECONDS = 30.0
NEGATIVE_CACHE_SECONDS = 1.0
REPEATED_LOOKUP_SECONDS = 1.0  # for a host whose last lookup failed
SLOW_LOOKUP_CACHE_SECONDS = 5.0  # a lookup can't be cancelled, so few may run at a time


class CachingResolver(aiohttp.ThreadedResolver):
    """Resolves host names through the system, and caches failures for a second.

    Without the cache, each message to a model whose host can't be resolved would wait seconds for the same failure.
    After a failure, a lookup that takes longer than a second fails with the same error.
    """

    def __init__(self, *, negative_cache_seconds: float = NEGATIVE_CACHE_SECONDS) -> None:
        super().__init__(asyncio.get_running_loop())
        self._negative_cache_seconds = negative_cache_seconds
        self._failures: dict[str, tuple[float, socket.gaierror]] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the host's addresses.

        Raises:
            OSError: The host has no address.
        """
        expires_at, failure = self._failures.get(host, (0.0, None))
        if failure is not None and self._loop.time() < expires_at:
            raise socket.gaierror(*failure.args)  # a new error, because a repeated `raise` would accumulate tracebacks
        try:
            async with asyncio.timeout(None if failure is None else REPEATED_LOOKUP_SECONDS):
                addresses = await super().resolve(host, port, family)
        except TimeoutError:
            assert failure is not None
            self._failures[host] = self._loop.time() + SLOW_LOOKUP_CACHE_SECONDS, failure
            raise socket.gaierror(*failure.args) from None
        except socket.gaierror as error:
            self._failures[host] = self._loop.time() + self._negative_cache_seconds, socket.gaierror(*error.args)
            raise
        self._failures.pop(host, None)
        return addresses


class AbortingResponse(aiohttp.ClientResponse):
    """A response that aborts its connection when closed.

    aiohttp would first send the unsent data, such as a long request to a busy server.
    """

    def close(self) -> None:
        """Abort the connection, unless the response was read completely and the connection is back in the pool."""
        connection = self.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        super().close()


def open_session() -> aiohttp.ClientSession:
    """Return an HTTP session for model streams. Call it in a running event loop; the caller closes the session.

    There is no time limit after connecting, because the engine limits the duration of replies.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300, resolver=CachingResolver()),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        response_class=AbortingResponse,
        trust_env=False,
    )
