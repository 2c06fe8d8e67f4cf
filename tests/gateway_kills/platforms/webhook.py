"""Programs that use a signed webhook, each with its own chat. They retry posts and accept each key once."""

import asyncio
import base64
import json
import random
from collections import defaultdict
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from tests.fakes.webhook_program import Json, WebhookFailure, WebhookProgram, signature_headers
from tests.gateway_kills.expectations import UserAction
from tests.gateway_kills.kill_points import SENT, KillPoint
from tests.gateway_kills.platforms.api import ApiClient
from tests.gateway_kills.platforms.platform import PlatformFeatures, VisibleMessage

HOOK = "ci"


class WebhookPrograms(WebhookProgram):
    """Fake programs behind the webhook. `received` holds their messages by session, with edits applied."""

    def __init__(self, seed: int, kill_point: KillPoint) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}
        self.is_calm = False
        self.received: dict[str, dict[str, VisibleMessage]] = defaultdict(dict)
        self._random = random.Random(seed)
        self._kill_point = kill_point
        self.may_answer.set()

    async def receive(self, request: web.Request) -> web.StreamResponse:
        if not self.is_calm and self._random.random() < 0.01:
            self.counts["answers lost"] = self.counts.get("answers lost", 0) + 1
            self.failures.append(WebhookFailure(is_done=True))
        answer = await super().receive(request)
        self.requests.clear()
        return answer

    async def _store(self, event: Json) -> None:
        if event["key"] in self.keys:
            return
        self.keys.add(event["key"])
        if event["type"] in ("message", "edit"):
            received = self.received[event["session"]]
            name = event.get("message") or event["key"]
            number = received[name].position if name in received else len(received) + 1.0
            received[name] = VisibleMessage(name, event["text"], tuple(one["text"] for one in event["choices"]), number)
            self._kill_point.reach(SENT)


class WebhookFixture:
    """A simulated webhook client. It retries POST requests that got no response."""

    author_id = ""
    features = PlatformFeatures(split_characters=90_000)

    def __init__(self, programs: WebhookPrograms, client: ApiClient, number: int) -> None:
        self.session = f"webhook:{HOOK}@{number}"
        self.author = f"Program {number}"
        self._programs = programs
        self._client = client
        self._chat = str(number)
        self._running_tasks: set[asyncio.Task[None]] = set()
        self._last = asyncio.create_task(asyncio.sleep(0))

    @property
    def is_idle(self) -> bool:
        return not self._running_tasks

    async def write(self, text: str, action: UserAction, token: str, *, is_aside: bool = False) -> str:
        return self._post(action, text=text)

    async def send_picture(self, text: str, action: UserAction, album: str) -> str:
        raise NotImplementedError

    async def send_recording(self, recording: bytes, action: UserAction, token: str) -> str:
        file = {"media_type": "audio/ogg", "name": "voice.ogg", "data": base64.b64encode(recording).decode()}
        return self._post(action, attachments=[file])

    async def edit(self, message: str, text: str, action: UserAction) -> None:
        self._post(action, id=message, type="edit", text=text, at=action.at)

    async def delete(self, message: str, action: UserAction) -> None:
        self._post(action, id=message, type="delete")

    async def press(self, label: str, action: UserAction) -> VisibleMessage | None:
        return None

    def visible_messages(self) -> list[VisibleMessage]:
        return list(self._programs.received[self.session].values())

    def _post(self, action: UserAction, **body: Any) -> str:
        message = {"id": f"p{next(self._programs.numbers)}", "chat": self._chat, "author": self.author, **body}
        self._last = self._start_task(self._post_in_order(json.dumps(message).encode(), action, self._last))
        return str(message["id"])

    def _start_task(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._running_tasks.add(task)
        task.add_done_callback(self._running_tasks.discard)
        return task

    async def _post_in_order(self, body: bytes, action: UserAction, before: "asyncio.Task[None]") -> None:
        await asyncio.wait([before])
        status, answer = await self._client.request(
            "POST", f"/hooks/{HOOK}", data=body, headers=signature_headers(body)
        )
        assert status == 202, answer
        action.mark_accepted()


@asynccontextmanager
async def run_programs(seed: int, kill_point: KillPoint) -> AsyncGenerator[WebhookPrograms]:
    """Serve the programs until the context ends."""
    programs = WebhookPrograms(seed, kill_point)
    app = web.Application(client_max_size=50_000_000)
    app.router.add_post("/hark", programs.receive)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    programs.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hark"
    try:
        yield programs
    finally:
        await runner.cleanup()
