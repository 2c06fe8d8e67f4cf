"""Programs behind a signed hook, each with its own chat: they post until they are answered, and take each key once."""

import asyncio
import base64
import json
import random
from collections import defaultdict
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from tests.fakes.webhook_program import Json, Program, Trouble, signed
from tests.gateway_kills.expectations import Deed
from tests.gateway_kills.kill_points import SENT, KillPoint
from tests.gateway_kills.platforms.api import ApiClient
from tests.gateway_kills.platforms.platform import Habits, Shown

HOOK = "ci"


class Programs(Program):
    """What they were told, by session: messages as they are after their edits."""

    def __init__(self, seed: int, kill_point: KillPoint) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}
        self.is_calm = False
        self.told: dict[str, dict[str, Shown]] = defaultdict(dict)
        self._random = random.Random(seed)
        self._kill_point = kill_point
        self.gate.set()

    async def take(self, request: web.Request) -> web.StreamResponse:
        if not self.is_calm and self._random.random() < 0.01:
            self.counts["answers lost"] = self.counts.get("answers lost", 0) + 1
            self.troubles.append(Trouble(is_done=True))
        answer = await super().take(request)
        self.requests.clear()
        return answer

    async def _keep(self, event: Json) -> None:
        if event["key"] in self.keys:
            return
        self.keys.add(event["key"])
        if event["type"] in ("message", "edit"):
            told = self.told[event["session"]]
            name = event.get("message") or event["key"]
            number = told[name].place if name in told else len(told) + 1.0
            told[name] = Shown(name, event["text"], tuple(one["text"] for one in event["choices"]), number)
            self._kill_point.at(SENT)


class WebhookFixture:
    """One program. What it was not answered it posts again."""

    author_id = ""
    habits = Habits(full_characters=90_000)

    def __init__(self, programs: Programs, client: ApiClient, number: int) -> None:
        self.session = f"webhook:{HOOK}@{number}"
        self.author = f"Program {number}"
        self._programs = programs
        self._client = client
        self._chat = str(number)
        self._doing: set[asyncio.Task[None]] = set()
        self._last = asyncio.create_task(asyncio.sleep(0))

    @property
    def is_at_rest(self) -> bool:
        return not self._doing

    async def write(self, text: str, deed: Deed, token: str, *, is_aside: bool = False) -> str:
        return self._post(deed, text=text)

    async def picture(self, text: str, deed: Deed, album: str) -> str:
        raise NotImplementedError

    async def speak(self, recording: bytes, deed: Deed, token: str) -> str:
        file = {"media_type": "audio/ogg", "name": "voice.ogg", "data": base64.b64encode(recording).decode()}
        return self._post(deed, attachments=[file])

    async def rewrite(self, message: str, text: str, deed: Deed) -> None:
        self._post(deed, id=message, type="edit", text=text, at=deed.at)

    async def delete(self, message: str, deed: Deed) -> None:
        self._post(deed, id=message, type="delete")

    async def press(self, label: str, deed: Deed) -> Shown | None:
        return None

    def shown(self) -> list[Shown]:
        return list(self._programs.told[self.session].values())

    def _post(self, deed: Deed, **body: Any) -> str:
        told = {"id": f"p{next(self._programs.numbers)}", "chat": self._chat, "author": self.author, **body}
        self._last = self._begin(self._posting(json.dumps(told).encode(), deed, self._last))
        return str(told["id"])

    def _begin(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._doing.add(task)
        task.add_done_callback(self._doing.discard)
        return task

    async def _posting(self, body: bytes, deed: Deed, before: "asyncio.Task[None]") -> None:
        await asyncio.wait([before])
        status, answer = await self._client.ask("POST", f"/hooks/{HOOK}", data=body, headers=signed(body))
        assert status == 202, answer
        deed.take()


@asynccontextmanager
async def running_programs(seed: int, kill_point: KillPoint) -> AsyncGenerator[Programs]:
    """Serve until the end."""
    programs = Programs(seed, kill_point)
    app = web.Application(client_max_size=50_000_000)
    app.router.add_post("/hark", programs.take)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    programs.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hark"
    try:
        yield programs
    finally:
        await runner.cleanup()
