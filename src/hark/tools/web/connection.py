"""Connections to web servers. Each IP address is checked when a socket is created for it."""

import socket
from collections.abc import Callable
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from hark.tools.web.abandonable_thread import run_abandonable
from hark.tools.web.address import AddressPolicy, WebAddress

Lookup = Callable[[str, int], list[tuple[Any, ...]]]
"""Returns the rows that `socket.getaddrinfo` would return, or raises OSError."""


class PageResponse(aiohttp.ClientResponse):
    """A response that drops the connection and all unread data immediately when it is closed."""

    def close(self) -> None:
        """Drop the connection."""
        connection = self.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        super().close()


class HostConnector:
    """Creates the sockets for one host. The host name is resolved only once, so the checked address is the one used."""

    def __init__(self, address: WebAddress, policy: AddressPolicy) -> None:
        self._address = address
        self._policy = policy
        self.refused: list[str] = []

    def make_socket(self, info: tuple[Any, ...]) -> socket.socket:
        """Create a socket for the address in `info`. The caller must not use the socket for another address.

        Raises:
            OSError: The address is private and not allowed. The address is added to `refused`.
        """
        family, kind, protocol, _, socket_address = info
        if not self._policy.allows(self._address.host, self._address.port, socket_address[0]):
            self.refused.append(socket_address[0])
            raise OSError(f"{socket_address[0]} is private")
        return socket.socket(family, kind, protocol)


class AbandonableResolver(AbstractResolver):
    """Resolves host names. A lookup that hangs delays neither a stop nor the exit."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of a host. Safe to cancel.

        Raises:
            OSError: The host has no address.
        """
        try:
            rows = await run_abandonable(lambda: self._lookup(host, port), f"lookup of {host}")
        except UnicodeError as error:
            raise OSError(f"not a valid host name: {error}") from error
        return [
            ResolveResult(
                hostname=host, host=place[0], port=port, family=family, proto=protocol, flags=socket.AI_NUMERICHOST
            )
            for family, _, protocol, _, place in rows
        ]

    async def close(self) -> None:
        """Do nothing, because the resolver holds no resources."""


def system_lookup(host: str, port: int) -> list[tuple[Any, ...]]:
    """Resolve a host name with the operating system."""
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


def open_session(host_connector: HostConnector | None = None, lookup: Lookup = system_lookup) -> aiohttp.ClientSession:
    """Return an HTTP session for one request. `host_connector` checks IP addresses; None allows every address.

    Bodies are not decompressed, and there are no time limits: the caller must limit both size and time.
    """
    connector = aiohttp.TCPConnector(
        resolver=AbandonableResolver(lookup),
        use_dns_cache=False,
        force_close=True,
        socket_factory=host_connector.make_socket if host_connector else None,
    )
    return aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=None),
        cookie_jar=aiohttp.DummyCookieJar(),
        response_class=PageResponse,
        auto_decompress=False,
        trust_env=False,
    )
