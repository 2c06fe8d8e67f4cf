"""The way to a server: opened for one connection, whatever it is made of."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from mcp.client._transport import TransportStreams as Streams

MESSAGE_BYTES = 32 * 1024 * 1024


class McpTransport(Protocol):
    """A way to a server."""

    @property
    def pid(self) -> int | None:
        """The server's process, if it is one of ours."""
        ...

    @property
    def is_expired(self) -> bool:
        """True when the server has forgotten us: what it refused because of that, it never began with."""
        ...

    @property
    def is_doubtful(self) -> bool:
        """True when the last message was refused in a way that may mean this; another message would tell."""
        ...

    def opened(self) -> AbstractAsyncContextManager[Streams]:
        """Open it; when left, nothing of it remains. Errors may come out of it as a group.

        Raises:
            ServerFailure, OSError: It can't be opened.
        """
        ...

    def why(self) -> str:
        """Say what is known of why it ended, or else ""."""
        ...
