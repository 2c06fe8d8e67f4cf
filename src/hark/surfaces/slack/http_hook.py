"""Receive Slack's HTTP requests. Each must be signed by Slack, be recent, and not have been seen before."""

import hashlib
import hmac
import time
from collections.abc import Callable

from slack_bolt.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest

from hark.protocol.hooks import Hook, HookRequest, HookResponse, retry_later

MAX_AGE_SECONDS = 300


class SignatureVerifier:
    """Verifies the signatures of Slack's requests. Each signature is accepted once."""

    def __init__(self, secret: str, clock: Callable[[], float] = time.time) -> None:
        self._secret = secret.encode()
        self._clock = clock
        self._seen: dict[str, float] = {}

    def accept(self, timestamp: str, signature: str, body: bytes) -> bool:
        """Return whether a request is signed by Slack, recent and new. An accepted signature is remembered."""
        now = self._clock()
        if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) < 16):
            return False
        if abs(now - int(timestamp)) > MAX_AGE_SECONDS:
            return False
        expected = hmac.new(self._secret, b"v0:" + timestamp.encode() + b":" + body, hashlib.sha256).hexdigest()
        if not self._secret or not hmac.compare_digest(f"v0={expected}".encode(), signature.encode()):
            return False
        self._drop_expired(now)
        if signature in self._seen:
            return False
        self._seen[signature] = now
        return True

    def release(self, signature: str) -> None:
        """Forget a signature whose request failed, so that Slack can send it again."""
        self._seen.pop(signature, None)

    def _drop_expired(self, now: float) -> None:
        # Twice the age limit, because a clock behind Slack's may have accepted a request early.
        while self._seen and now - next(iter(self._seen.values())) > 2 * MAX_AGE_SECONDS:
            del self._seen[next(iter(self._seen))]


def build_hook(path: str, verifier: SignatureVerifier, get_app: Callable[[], AsyncApp | None]) -> Hook:
    """Return the HTTP hook for events and button presses. While no app is running, the hook asks Slack to retry."""

    async def handle_request(request: HookRequest) -> HookResponse:
        timestamp = request.headers.get("x-slack-request-timestamp", "")
        signature = request.headers.get("x-slack-signature", "")
        if not verifier.accept(timestamp, signature, request.body):
            return HookResponse(401, "The request is not signed by Slack, is too old, or was seen before.")
        status = 503
        try:
            app = get_app()
            if app is None:
                return retry_later("The Slack surface is not running yet.")
            try:
                bolt_request = AsyncBoltRequest(body=request.body.decode(), headers=dict(request.headers))
            except ValueError:
                return HookResponse(400, "The request body is not valid UTF-8.")
            response = await app.async_dispatch(bolt_request)
            status = response.status
            return HookResponse(status, response.body, response.first_headers_without_set_cookie())
        finally:
            if status >= 300:
                verifier.release(signature)

    return Hook(path, handle_request, summary="Receive Slack's signed events; see docs/slack.md")
