"""The page in a real Chromium, before a `hark serve` in a process of its own, on a fake model."""

import asyncio
import shutil
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from playwright.async_api import Browser, Page, async_playwright, expect

from tests.cli.command_line import Hark, Running, opened
from tests.fakes.models.behaviours import Behaviour

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
FLAGS = (
    "--no-sandbox",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
    "--autoplay-policy=no-user-gesture-required",
)
PATIENCE_MS = 60_000
SERVE = "[serve]\ndrain_seconds = 0\n"


class Visit:
    """A browser at the gateway: its first tab, and what went wrong in any."""

    def __init__(self, browser: Browser, base: str, running: Running | None, hark: Hark | None) -> None:
        self.base = base
        self.running = running
        self.hark = hark
        self.complaints: list[str] = []
        self._browser = browser
        self._context: Any = None

    async def page(self, session: str = "demo", **options: Any) -> Page:
        """Open a tab at a session."""
        if self._context is None or options:
            self._context = await self._browser.new_context(**options)
            self._context.set_default_timeout(PATIENCE_MS)
        page: Page = await self._context.new_page()
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda line: self.complaints.append(line.text) if "Content Security" in line.text else None)
        await page.goto(f"{self.base}/#/s/{session}")
        return page

    async def until_waiting(self, words: str, session: str = "demo") -> None:
        """Return when a message with these words waits at a session."""
        async with aiohttp.ClientSession(self.base) as http:
            while True:
                async with http.get(f"/api/sessions/{session}/queue") as answer:
                    if words in [item["text"] for item in (await answer.json())["queue"]]:
                        return
                await asyncio.sleep(0.02)


@asynccontextmanager
async def browser(*flags: str) -> AsyncGenerator[Browser]:
    expect.set_options(timeout=PATIENCE_MS)
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, *flags])
        try:
            yield chromium
        finally:
            await chromium.close()


@asynccontextmanager
async def gateway(hark: Hark, *words: str, port: int = 0) -> AsyncGenerator[tuple[str, Running]]:
    """`hark serve` in a process of its own; its address, and the process."""
    running = await hark.start("serve", "--port", str(port), *words)
    try:
        yield (await running.until("serving on")).rpartition(" ")[2].strip(), running
    finally:
        if running.process.returncode is None:
            running.process.kill()
        await running.end()


@asynccontextmanager
async def visiting(
    chromium: Browser, tmp_path: Path, script: Sequence[Behaviour], *words: str, settings: str = ""
) -> AsyncGenerator[Visit]:
    """A browser before a gateway whose model behaves like this; fails when a script of the page did."""
    async with opened(tmp_path, script) as hark:
        hark.configure(SERVE + settings)
        async with gateway(hark, *words) as (base, running):
            visit = Visit(chromium, base, running, hark)
            yield visit
            assert not visit.complaints
