"""A fake program at the other end of a webhook. It sends signed requests and accepts each signed event once."""

import asyncio
import hashlib
import hmac
import itertools
import json
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.waiting import until

Json = dict[str, Any]
SECRET = "a secret between two programs"


@dataclass
class WebhookFailure:
    """An injected failure for a request. With `is_done`, the request takes effect first. Without a status, the
    connection is closed.
    """

    status: int = 0
    retry_after: str = ""
    is_done: bool = False


@dataclass
class WebhookProgram:
    """A fake program that receives the gateway's events. Tests inspect the events and control its responses."""

    secret: str = SECRET
    url: str = ""
    events: list[Json] = field(default_factory=list[Json])
    requests: list[web.Request] = field(default_factory=list[web.Request])
    bodies: list[bytes] = field(default_factory=list[bytes])
    confirmed: list[bytes] = field(default_factory=list[bytes])
    failures: list[WebhookFailure] = field(default_factory=list[WebhookFailure])
    keys: set[str] = field(default_factory=set[str])
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    async def receive(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        async with self.changed:
            self.requests.append(request)
            self.bodies.append(body)
            self.changed.notify_all()
        stamp, given = request.headers["X-Hark-Timestamp"], request.headers["X-Hark-Signature"]
        if given != signature(self.secret, stamp, body) or abs(time.time() - int(stamp)) > 300:
            return web.Response(status=401)
        await self.may_answer.wait()
        trouble = self.failures.pop(0) if self.failures else None
        if trouble is None or trouble.is_done:
            await self._store(json.loads(body))
        async with self.changed:
            self.confirmed += [body] if trouble is None else []
            self.changed.notify_all()
        if trouble is None:
            return web.Response(status=204)
        if not trouble.status:
            assert request.transport is not None
            request.transport.abort()
        headers = {"Retry-After": trouble.retry_after} if trouble.retry_after else {}
        return web.Response(status=trouble.status or 500, headers=headers)

    async def _store(self, event: Json) -> None:
        if event["key"] not in self.keys:
            self.keys.add(event["key"])
            self.events.append(event)

    @property
    def texts(self) -> list[str]:
        """The visible messages, with their edits applied."""
        shown: dict[str, str] = {}
        for event in self.events:
            if event["type"] in ("message", "edit"):
                shown[event.get("message") or event["key"]] = event["text"]
        return list(shown.values())

    async def until(self, is_true: Callable[[], bool]) -> None:
        await until(is_true, changed=self.changed, shows=lambda: self.events)


def signature(secret: str, stamp: str, body: bytes) -> str:
    """Compute the signature as documented."""
    return "v1=" + hmac.new(secret.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def signature_headers(body: bytes, secret: str = SECRET, at: float | None = None) -> dict[str, str]:
    """Return the signature headers for a request."""
    stamp = str(int(time.time() if at is None else at))
    return {"X-Hark-Timestamp": stamp, "X-Hark-Signature": signature(secret, stamp, body)}


def github_headers(body: bytes, delivery: str, secret: str = SECRET, event: str = "issues") -> dict[str, str]:
    """Return the headers that GitHub adds to a request."""
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"X-Hub-Signature-256": f"sha256={digest}", "X-GitHub-Delivery": delivery, "X-GitHub-Event": event}


@asynccontextmanager
async def program_server() -> AsyncGenerator[WebhookProgram]:
    program = WebhookProgram()
    program.may_answer.set()
    app = web.Application(client_max_size=50_000_000)
    app.router.add_post("/hark", program.receive)
    server = TestServer(app)
    await server.start_server(access_log=None)
    program.url = str(server.make_url("/hark"))
    try:
        yield program
    finally:
        program.may_answer.set()
        await server.close()
