"""The interface of a transport to a server, which is opened for one connection."""

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Protocol, Self

import anyio
from anyio.abc import ObjectReceiveStream
from mcp.shared.message import SessionMessage

MAX_MESSAGE_BYTES = 32 * 1024 * 1024


class MessageStream(Protocol):
    """The stream of messages from the server."""

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message."""
        ...

    async def aclose(self) -> None:
        """Close the stream."""
        ...


class MessageWriter(Protocol):
    """The stream of messages to the server."""

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message."""
        ...

    async def aclose(self) -> None:
        """Close the stream."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> bool | None: ...


MessageStreams = tuple[MessageStream, MessageWriter]


class McpTransport(ABC):
    """A transport to a server.

    `is_expired` means that the server no longer knows the session, and never started the requests that it refused for
    this reason. `may_be_expired` means that the last refusal may have this reason; another message would confirm it.
    """

    is_expired = False
    may_be_expired = False

    @property
    def pid(self) -> int | None:
        """The process id of the server if Hark started it, otherwise None."""
        return None

    @abstractmethod
    def open(self) -> AbstractAsyncContextManager[MessageStreams]:
        """Open the transport, and clean up completely on exit. Errors may be raised as an exception group.

        Raises:
            ServerFailure, OSError: The transport can't be opened.
        """
        ...

    @abstractmethod
    def end_reason(self) -> str:
        """Return why the transport ended, or "" if unknown."""
        ...


class MonitoredReader(ObjectReceiveStream[SessionMessage | Exception]):
    """Passes messages to the SDK's session. Sets `ended` when the session stops reading."""

    def __init__(self, reader: MessageStream, ended: anyio.Event) -> None:
        self._reader = reader
        self._ended = ended

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message."""
        return await self._reader.receive()

    async def aclose(self) -> None:
        """Close the stream and set `ended`."""
        await self._reader.aclose()
        self._ended.set()
