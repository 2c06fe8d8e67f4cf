"""The way to a server: opened for one connection, whatever it is made of."""

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Protocol, Self

import anyio
from anyio.abc import ObjectReceiveStream
from mcp.shared.message import SessionMessage

MESSAGE_BYTES = 32 * 1024 * 1024


class MessageReader(Protocol):
    """Where the server's messages come from."""

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message."""
        ...

    async def aclose(self) -> None:
        """Close it."""
        ...


class MessageWriter(Protocol):
    """Where messages to the server go."""

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message."""
        ...

    async def aclose(self) -> None:
        """Close it."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> bool | None: ...


Streams = tuple[MessageReader, MessageWriter]


class McpTransport(ABC):
    """A way to a server.

    `is_expired`: the server has forgotten us; what it refused because of that, it never began with. `is_doubtful`: the
    last message was refused in a way that may mean this; another message would tell.
    """

    is_expired = False
    is_doubtful = False

    @property
    def pid(self) -> int | None:
        """The server's process, if it is one of ours."""
        return None

    @abstractmethod
    def opened(self) -> AbstractAsyncContextManager[Streams]:
        """Open it; when left, nothing of it remains. Errors may come out of it as a group.

        Raises:
            ServerFailure, OSError: It can't be opened.
        """
        ...

    @abstractmethod
    def why(self) -> str:
        """Say what is known of why it ended, or else ""."""
        ...


class MonitoredReader(ObjectReceiveStream[SessionMessage | Exception]):
    """Passes messages on to the SDK's session; `ended` is set when it stops reading, as nothing more comes."""

    def __init__(self, reader: MessageReader, ended: anyio.Event) -> None:
        self._reader = reader
        self._ended = ended

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message."""
        return await self._reader.receive()

    async def aclose(self) -> None:
        """Close it."""
        await self._reader.aclose()
        self._ended.set()
