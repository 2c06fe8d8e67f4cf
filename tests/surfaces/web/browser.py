"""Runs the web page in a real Chromium against `hark serve` in a separate process with a fake model."""

import asyncio
import shutil
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from playwright.async_api import Browser, Page, async_playwright, expect

from tests.cli.command_line import Hark, RunningCommand, open_hark
from tests.fakes.models.behaviours import Behaviour

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
FLAGS = (
    "--no-sandbox",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
    "--autoplay-policy=no-user-gesture-required",
)
TIMEOUT_MS = 40_000  # below the time limit of a test
SERVE_SETTINGS = "[serve]\ndrain_seconds = 0\n"


class GatewaySite:
    """A running gateway, opened in browser tabs. `page_errors` collects the script errors from all tabs."""

    def __init__(self, browser: Browser, base: str, running: RunningCommand | None, hark: Hark | None) -> None:
        self.base = base
        self.running = running
        self.hark = hark
        self.page_errors: list[str] = []
        self._browser = browser
        self._context: Any = None

    async def open_page(self, session: str = "demo", **options: Any) -> Page:
        """Open a session in a new tab."""
        if self._context is None or options:
            self._context = await self._browser.new_context(**options)
            self._context.set_default_timeout(TIMEOUT_MS)
        page: Page = await self._context.new_page()
        page.on("pageerror", lambda error: self.page_errors.append(str(error)))
        page.on("console", lambda line: self.page_errors.append(line.text) if "Content Security" in line.text else None)
        await page.goto(f"{self.base}/#/s/{session}")
        return page

    async def wait_for_queued_message(self, text: str, session: str = "demo") -> None:
        """Wait until a message with this text is in the session's queue."""
        async with aiohttp.ClientSession(self.base) as http:
            while True:
                async with http.get(f"/api/sessions/{session}/queue") as response:
                    if text in [item["text"] for item in (await response.json())["queue"]]:
                        return
                await asyncio.sleep(0.02)


@asynccontextmanager
async def launch_browser(*flags: str) -> AsyncGenerator[Browser]:
    expect.set_options(timeout=TIMEOUT_MS)
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, *flags])
        try:
            yield chromium
        finally:
            await chromium.close()


@asynccontextmanager
async def run_gateway(hark: Hark, *arguments: str, port: int = 0) -> AsyncGenerator[tuple[str, RunningCommand]]:
    """Run `hark serve` in a separate process. Yields its base URL and the process."""
    running = await hark.start("serve", "--port", str(port), *arguments)
    try:
        yield (await running.wait_for_line("serving on")).rpartition(" ")[2].strip(), running
    finally:
        if running.process.returncode is None:
            running.process.kill()
        await running.wait_for_end()


@asynccontextmanager
async def open_site(
    chromium: Browser, tmp_path: Path, script: Sequence[Behaviour], *arguments: str, settings: str = ""
) -> AsyncGenerator[GatewaySite]:
    """Run a gateway with a scripted model, for use in a browser. Fails if a script on the page failed."""
    async with open_hark(tmp_path, script) as hark:
        hark.configure(SERVE_SETTINGS + settings)
        async with run_gateway(hark, *arguments) as (base, running):
            site = GatewaySite(chromium, base, running, hark)
            yield site
            assert not site.page_errors
