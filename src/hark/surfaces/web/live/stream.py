"""Streamed responses, which are cancelled when the client disconnects."""

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
    "X-Accel-Buffering": "no",  # stops reverse proxies from buffering the events
}


class SseResponse(Response):
    """A response that streams server-sent events. A disconnect or the program's exit closes the generator `chunks`."""

    def __init__(self, chunks: AsyncGenerator[bytes]) -> None:
        super().__init__(None, 200, EVENT_STREAM)
        del self.headers["content-length"]
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the chunks. A slow client delays only its own response."""
        async with aclosing(self._chunks) as pieces, anyio.create_task_group() as tasks:
            tasks.start_soon(cancel_on_disconnect, receive, tasks.cancel_scope)
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            tasks.cancel_scope.cancel()


async def cancel_on_disconnect(receive: Receive, scope: anyio.CancelScope) -> None:
    """Cancel the scope when the client disconnects. The request's body must already have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def respond_while_connected(request: Request, make_response: Callable[[], Awaitable[Response]]) -> Response:
    """Call `make_response` and return its response. Cancel the call if the client disconnects.

    Raises:
        ApiError: `make_response` raised it.
        StoreError: `make_response` raised it.
    """
    response = Response(status_code=499)  # for a client that has disconnected
    failed: ApiError | StoreError | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cancel_on_disconnect, request.receive, tasks.cancel_scope)
        try:
            response = await make_response()
        except (ApiError, StoreError) as error:  # raised below, so that the task group doesn't wrap it
            failed = error
        tasks.cancel_scope.cancel()
    if failed is not None:
        raise failed
    return response


def encode_sse(name: str, data: bytes, seq: int | None = None) -> bytes:
    """Return a server-sent event. Without `seq`, it has no id and doesn't change the client's Last-Event-ID."""
    number = b"" if seq is None else b"id: %d\n" % seq
    return b"%bevent: %b\ndata: %b\n\n" % (number, name.encode(), data)
