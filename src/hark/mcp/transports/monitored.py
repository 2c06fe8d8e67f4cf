"""A stream of messages whose end can be seen from outside."""

from types import TracebackType
from typing import Self

import anyio
from mcp.client._transport import ReadStream
from mcp.shared.message import SessionMessage


class Watched:
    """Passes messages on to the SDK's session; `ended` is set when it stops reading, as nothing more comes."""

    def __init__(self, stream: ReadStream[SessionMessage | Exception], ended: anyio.Event) -> None:
        self._stream = stream
        self._ended = ended

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message."""
        return await self._stream.receive()

    async def aclose(self) -> None:
        """Close it."""
        await self._stream.aclose()
        self._ended.set()

    def __aiter__(self) -> ReadStream[SessionMessage | Exception]:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return await self._stream.__anext__()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()
