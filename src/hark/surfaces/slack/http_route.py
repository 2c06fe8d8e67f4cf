"""Slack's requests by HTTP: only those that Slack has signed, within the last minutes, and only once."""

import hashlib
import hmac
import time
from collections.abc import Callable

from slack_bolt.adapter.starlette.async_handler import to_starlette_response
from slack_bolt.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

MOST_SECONDS = 300
MOST_BYTES = 1_000_000


class Signatures:
    """Tells which requests are Slack's. A signature counts once."""

    def __init__(self, secret: str, clock: Callable[[], float] = time.time) -> None:
        self._secret = secret.encode()
        self._clock = clock
        self._seen: dict[str, float] = {}

    def admit(self, timestamp: str, signature: str, body: bytes) -> bool:
        """Tell whether a request is from Slack, of now, and here for the first time."""
        now = self._clock()
        if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) < 16):
            return False
        if abs(now - int(timestamp)) > MOST_SECONDS:
            return False
        wanted = hmac.new(self._secret, b"v0:" + timestamp.encode() + b":" + body, hashlib.sha256).hexdigest()
        if not self._secret or not hmac.compare_digest(f"v0={wanted}".encode(), signature.encode()):
            return False
        self._forget(now)
        if signature in self._seen:
            return False
        self._seen[signature] = now
        return True

    def release(self, signature: str) -> None:
        """The request was not dealt with: it may come again as it is."""
        self._seen.pop(signature, None)

    def _forget(self, now: float) -> None:
        # Twice the span: a clock that is behind Slack's may have taken a request before its time.
        while self._seen and now - next(iter(self._seen.values())) > 2 * MOST_SECONDS:
            del self._seen[next(iter(self._seen))]


def build_route(path: str, signatures: Signatures, running: Callable[[], AsyncApp | None]) -> Route:
    """Return the route for events and button presses. While nothing runs, Slack is asked to come again."""

    async def endpoint(request: Request) -> Response:
        body = await _body(request)
        if body is None:
            return Response("too large", 413)
        timestamp = request.headers.get("x-slack-request-timestamp", "")
        signature = request.headers.get("x-slack-signature", "")
        if not signatures.admit(timestamp, signature, body):
            return Response("not signed by Slack, too old, or seen before", 401)
        status = 503
        try:
            app = running()
            if app is None:
                return Response("not ready", status, {"Retry-After": "5"})
            try:
                told = AsyncBoltRequest(body=body.decode(), headers=dict(request.headers.items()))
            except ValueError:
                return Response("not to be read", 400)
            answer = await app.async_dispatch(told)
            status = answer.status
            return to_starlette_response(answer)
        finally:
            if status >= 300:
                signatures.release(signature)

    return Route(path, endpoint, methods=["POST"], name="slack")


async def _body(request: Request) -> bytes | None:
    """Return the body; None when it is too large."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_BYTES:
            return None
    return bytes(body)
