"""The webhook surface behind the real web server, a program that calls it, and a recorder of its deliveries."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hark.protocol.chat import Address, Deliver
from hark.surfaces.webhook.platform import HookSettings, WebhookSettings
from hark.surfaces.webhook.surface import WebhookSurface
from tests.fakes.webhook_program import SECRET, Json, WebhookProgram, program_server, signature_headers
from tests.surfaces.slack.slack_fixture import DeliveryRecorder
from tests.surfaces.web.web_fixture import WebFixture, run_web_server

CI = Address("webhook", "ci")


@dataclass
class RunningWebhook:
    """A running webhook surface with a fake program, a recorder and the web server."""

    surface: WebhookSurface
    program: WebhookProgram
    recorder: DeliveryRecorder
    web: WebFixture

    async def post(self, body: bytes, headers: dict[str, str], name: str = "ci") -> tuple[int, Json]:
        status, _, text = await self.web.fetch(f"/hooks/{name}", "POST", data=body, headers=headers)
        return status, json.loads(text)

    async def send_message(self, name: str = "ci", **body: Any) -> tuple[int, Json]:
        encoded = json.dumps({"id": f"m{next(self.program.numbers)}", **body}).encode()
        return await self.post(encoded, signature_headers(encoded), name)


def make_webhook_surface(hooks: dict[str, HookSettings], **settings: Any) -> WebhookSurface:
    return WebhookSurface(WebhookSettings(hooks=hooks, **settings), lambda text: text in ("halt", "/stop"))


@asynccontextmanager
async def running_webhook(
    home: Path, hooks: dict[str, Json] | None = None, deliver: Deliver | None = None, **settings: Any
) -> AsyncGenerator[RunningWebhook]:
    """Run a webhook surface. The hook `ci` posts replies to the program; `hooks` configures others."""
    async with program_server() as program, run_web_server(home, token="a token that programs don't have") as web:
        ci = HookSettings(secret=SECRET, url=program.url)
        other_hooks = {name: HookSettings(secret=SECRET, **options) for name, options in (hooks or {}).items()}
        surface, recorder = make_webhook_surface({"ci": ci, **other_hooks}, **settings), DeliveryRecorder()
        recorder.gate.set()
        web.context.hooks.register("webhook", *surface.make_hooks())
        running = asyncio.create_task(surface.run(deliver or recorder.deliver))
        await asyncio.sleep(0)
        try:
            yield RunningWebhook(surface, program, recorder, web)
        finally:
            running.cancel()
            await asyncio.wait([running])
