"""An answer that comes in pieces, and ends at once when its reader leaves."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from hark.protocol.store import StoreError
from hark.surfaces.web.api.errors import ApiError

EVENT_STREAM = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # a proxy before us would hold the events back
}


class SseResponse(Response):
    """Server-sent events. A reader that leaves, or an end of the program, closes `pieces`."""

    def __init__(self, pieces: AsyncGenerator[bytes]) -> None:
        super().__init__(None, 200, EVENT_STREAM)
        del self.headers["content-length"]
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send piece after piece. A slow reader is waited for here, and nowhere else."""
        async with aclosing(self._pieces) as pieces, anyio.create_task_group() as tasks:
            tasks.start_soon(cancel_when_gone, receive, tasks.cancel_scope)
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            tasks.cancel_scope.cancel()


async def cancel_when_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    """Cancel the scope when the client has left; its body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def while_connected(request: Request, make: Callable[[], Awaitable[Response]]) -> Response:
    """Return the response that `make` returns. A client that disconnects cancels it.

    Raises:
        ApiError: `make` raised it.
        StoreError: `make` raised it.
    """
    response = Response(status_code=499)  # for a client that has gone
    failed: ApiError | StoreError | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cancel_when_gone, request.receive, tasks.cancel_scope)
        try:
            response = await make()
        except (ApiError, StoreError) as error:  # raised below, where the group can't wrap it
            failed = error
        tasks.cancel_scope.cancel()
    if failed is not None:
        raise failed
    return response


def sse(name: str, data: bytes, seq: int | None = None) -> bytes:
    """Return an event on the wire. One without a number leaves the reader's place as it was."""
    number = b"" if seq is None else b"id: %d\n" % seq
    return b"%bevent: %b\ndata: %b\n\n" % (number, name.encode(), data)
