"""Connections to the web: every address is judged at the moment a socket is made for it."""

import socket
from collections.abc import Callable
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from hark.tools.web.abandonable_thread import aside
from hark.tools.web.address import Reach, WebAddress

Lookup = Callable[[str, int], list[tuple[Any, ...]]]
"""Returns what `socket.getaddrinfo` would, or raises OSError."""


class PageResponse(aiohttp.ClientResponse):
    """A response whose close ends the connection now, with all that waits in it."""

    def close(self) -> None:
        """Drop the connection."""
        connection = self.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        super().close()


class HostConnector:
    """Makes the sockets for one host. Names are looked up once, and what was judged is what is connected to."""

    def __init__(self, address: WebAddress, reach: Reach) -> None:
        self._address = address
        self._reach = reach
        self.refused: list[str] = []

    def make_socket(self, info: tuple[Any, ...]) -> socket.socket:
        """Return a socket for this address; it is connected to that and nothing else.

        Raises:
            OSError: It is private and may not be reached; `refused` has it then.
        """
        family, kind, protocol, _, place = info
        if not self._reach.allows(self._address.host, self._address.port, place[0]):
            self.refused.append(place[0])
            raise OSError(f"{place[0]} is private")
        return socket.socket(family, kind, protocol)


class PublicResolver(AbstractResolver):
    """Looks names up; a lookup that hangs holds neither a stop nor the exit."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of a host. Safe to cancel.

        Raises:
            OSError: There are none.
        """
        try:
            rows = await aside(lambda: self._lookup(host, port), f"lookup of {host}")
        except UnicodeError as error:
            raise OSError(f"it can't be a name: {error}") from error
        return [
            ResolveResult(
                hostname=host, host=place[0], port=port, family=family, proto=protocol, flags=socket.AI_NUMERICHOST
            )
            for family, _, protocol, _, place in rows
        ]

    async def close(self) -> None:
        """Nothing is held."""


def system_lookup(host: str, port: int) -> list[tuple[Any, ...]]:
    """Ask the system."""
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


def open_session(door: HostConnector | None = None, lookup: Lookup = system_lookup) -> aiohttp.ClientSession:
    """Return a session for one exchange, through this door or, for the owner's own servers, without one.

    Compressed bodies come as they are: how large they become is the reader's business. So are time limits.
    """
    connector = aiohttp.TCPConnector(
        resolver=PublicResolver(lookup),
        use_dns_cache=False,
        force_close=True,
        socket_factory=door.make_socket if door else None,
    )
    return aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=None),
        cookie_jar=aiohttp.DummyCookieJar(),
        response_class=PageResponse,
        auto_decompress=False,
        trust_env=False,
    )
