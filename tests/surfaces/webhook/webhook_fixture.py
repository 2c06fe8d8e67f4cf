"""The webhook surface behind the real web server, a program that calls it, and an ear for what it delivers."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hark.protocol.chat import Address, Deliver
from hark.surfaces.webhook.platform import HookSettings, WebhookSettings
from hark.surfaces.webhook.surface import Webhook
from tests.fakes.webhook_program import SECRET, Json, Program, program_server, signed
from tests.surfaces.slack.slack_fixture import Ear
from tests.surfaces.web.web_fixture import World, served

CI = Address("webhook", "ci")


@dataclass
class Hooked:
    """All of it."""

    surface: Webhook
    program: Program
    ear: Ear
    web: World

    async def post(self, body: bytes, headers: dict[str, str], name: str = "ci") -> tuple[int, Json]:
        status, _, text = await self.web.fetch(f"/hooks/{name}", "POST", data=body, headers=headers)
        return status, json.loads(text)

    async def say(self, name: str = "ci", **body: Any) -> tuple[int, Json]:
        encoded = json.dumps({"id": f"m{next(self.program.numbers)}", **body}).encode()
        return await self.post(encoded, signed(encoded), name)


def webhook(hooks: dict[str, HookSettings], **settings: Any) -> Webhook:
    return Webhook(WebhookSettings(hooks=hooks, **settings), lambda text: text in ("halt", "/stop"))


@asynccontextmanager
async def hooked(
    home: Path, hooks: dict[str, Json] | None = None, deliver: Deliver | None = None, **settings: Any
) -> AsyncGenerator[Hooked]:
    """A surface that runs. `ci` posts what is said to the program; others are as they are given."""
    async with program_server() as program, served(home, token="a token that programs don't have") as web:
        ci = HookSettings(secret=SECRET, url=program.url)
        others = {name: HookSettings(secret=SECRET, **given) for name, given in (hooks or {}).items()}
        surface, ear = webhook({"ci": ci, **others}, **settings), Ear()
        ear.gate.set()
        web.place.hooks.bring("webhook", *surface.hooks())
        running = asyncio.create_task(surface.run(deliver or ear.deliver))
        await asyncio.sleep(0)
        try:
            yield Hooked(surface, program, ear, web)
        finally:
            running.cancel()
            await asyncio.wait([running])
