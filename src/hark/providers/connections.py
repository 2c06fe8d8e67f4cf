"""The HTTP connections to model servers: opened by the app, shared by all sessions, cut without lingering."""

import aiohttp

CONNECT_SECONDS = 30.0


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
        connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        response_class=CutResponse,
        trust_env=False,
    )
