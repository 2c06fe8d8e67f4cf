"""Slack's requests by HTTP: only those that Slack has signed, within the last minutes, and only once."""

import hashlib
import hmac
import time
from collections.abc import Callable

from slack_bolt.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest

from hark.protocol.hooks import Hook, HookAnswer, HookRequest, not_now

MOST_SECONDS = 300


class SlackSignatures:
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


def build_hook(path: str, signatures: SlackSignatures, running: Callable[[], AsyncApp | None]) -> Hook:
    """Return the hook for events and button presses. While nothing runs, Slack is asked to come again."""

    async def answer(request: HookRequest) -> HookAnswer:
        timestamp = request.headers.get("x-slack-request-timestamp", "")
        signature = request.headers.get("x-slack-signature", "")
        if not signatures.admit(timestamp, signature, request.body):
            return HookAnswer(401, "not signed by Slack, too old, or seen before")
        status = 503
        try:
            app = running()
            if app is None:
                return not_now("not ready")
            try:
                told = AsyncBoltRequest(body=request.body.decode(), headers=dict(request.headers))
            except ValueError:
                return HookAnswer(400, "not to be read")
            answered = await app.async_dispatch(told)
            status = answered.status
            return HookAnswer(status, answered.body, answered.first_headers_without_set_cookie())
        finally:
            if status >= 300:
                signatures.release(signature)

    return Hook(path, answer, summary="What Slack sends, signed: docs/slack.md")
