"""The HTTP connections to model servers: opened by the app, shared by all sessions, cut without lingering."""

import asyncio
import socket

import aiohttp
from aiohttp.abc import ResolveResult

CONNECT_SECONDS = 30.0
UNKNOWN_SECONDS = 1.0


class Resolver(aiohttp.ThreadedResolver):
    """Finds hosts by the system, and believes it for a second that there is none of that name.

    A chat whose model's host is not there asks again with each message, and the system may take seconds to say so.
    """

    def __init__(self, *, unknown_seconds: float = UNKNOWN_SECONDS) -> None:
        super().__init__(asyncio.get_running_loop())
        self._unknown_seconds = unknown_seconds
        self._unknown: dict[str, tuple[float, socket.gaierror]] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the host's addresses.

        Raises:
            OSError: There are none.
        """
        until, why = self._unknown.get(host, (0.0, None))
        if why is not None and self._loop.time() < until:
            raise socket.gaierror(*why.args)  # a new one: an error that is raised again holds all who raised it
        try:
            found = await super().resolve(host, port, family)
        except socket.gaierror as error:
            self._unknown[host] = self._loop.time() + self._unknown_seconds, socket.gaierror(*error.args)
            raise
        self._unknown.pop(host, None)
        return found


class CutResponse(aiohttp.ClientResponse):
    """A response whose close ends the connection now.

    aiohttp closes politely: what is still unsent, such as a long request to a busy server, is sent first.
    """

    def close(self) -> None:
        """Drop the connection and all that waits in it; one that was read to its end has gone back to the pool."""
        connection = self.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        super().close()


def open_session() -> aiohttp.ClientSession:
    """Return a session for model streams, to be closed by its owner. Must be called in a running loop.

    How long a reply may take is the engine's business, so there is no time limit behind the connect.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300, resolver=Resolver()),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        response_class=CutResponse,
        trust_env=False,
    )
