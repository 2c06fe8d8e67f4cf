"""Takes the pictures of the web page in docs/pictures: `python -m docs.make_web_pictures` (needs Chromium)."""

import asyncio
import json
import tempfile
from pathlib import Path

from playwright.async_api import Browser, Page, expect
from tests.cli.command_line import open_hark
from tests.fakes.models.behaviours import Behaviour, Exchange, reply
from tests.surfaces.web.browser import GatewaySite, launch_browser, run_gateway

from hark.protocol.outcomes import Usage
from hark.protocol.provider import CallChunk, EndChunk, TextChunk, UsageChunk

PICTURES = Path(__file__).parent / "pictures"
DESKTOP = {"width": 1280, "height": 860}
PHONE = {"width": 390, "height": 844}
ANSWER = """The parser drops the last line when a file has no newline at its end. I changed one line in `reader.py`:

1. `split("\\n")` became `splitlines()`, which also handles `\\r\\n`
2. the test for **empty files** now runs too

```python
def lines(text: str) -> list[str]:
    return text.splitlines()
```

| file | tests | result |
|---|---|---|
| `reader.py` | 14 | all pass |
| `writer.py` | 9 | all pass |
"""
PATCH = (
    r"""printf -- '--- a/reader.py\n+++ b/reader.py\n@@ -3,2 +3,2 @@\n def lines(text):\n"""
    r"""-    return text.split("\\n")\n+    return text.splitlines()\n'"""
)
UNFINISHED_REPLY = (
    "I will go through all modules, one by one, and note how each of them handles the end of a line. First the reader: "
)


def shell_call_reply(command: str, text: str = "") -> Behaviour:
    """Return a reply that calls the shell tool."""
    chunk = CallChunk(0, f"call_{abs(hash(command))}", "shell", json.dumps({"command": command}))
    return reply([*([TextChunk(text)] if text else []), chunk, UsageChunk(Usage(2_100, 40)), EndChunk("calls")])


def text_reply(text: str) -> Behaviour:
    """Return a complete text reply."""
    return reply([TextChunk(text), UsageChunk(Usage(2_400, 180)), EndChunk()])


async def endless_reply(exchange: Exchange) -> None:
    """Start a reply that never ends."""
    await exchange.begin()
    await exchange.send_chunks(TextChunk(UNFINISHED_REPLY))
    await asyncio.get_running_loop().create_future()


async def send(page: Page, text: str, key: str = "Enter") -> None:
    """Type a message and send it."""
    await page.fill("#input", text)
    await page.press("#input", key)


async def converse(page: Page) -> None:
    """Run a conversation with an answer, an interrupt, an approval and a queue."""
    await send(page, "Why does the reader lose the last line? Please fix it.")
    await expect(page.locator(".turn").nth(0).locator(".turn-status")).to_contain_text("done")
    await send(page, "Now check the other modules")
    await expect(page.locator(".reply").last).to_contain_text("First the reader")
    await page.wait_for_timeout(700)
    await send(page, "No, stop: publish the fix first")
    await expect(page.locator(".question")).to_be_visible()
    await page.locator(".turn").nth(1).locator(".timeline summary").click()
    await expect(page.locator(".interrupt-summary")).to_be_visible()
    await send(page, "Then write the changelog entry", "Alt+Enter")
    await expect(page.locator("#queue li:not(.sending)")).to_have_count(1)
    await send(page, "And list the affected versions", "Alt+Enter")
    await expect(page.locator("#queue li:not(.sending)")).to_have_count(2)


async def save_screenshot(page: Page, name: str) -> None:
    """Save a screenshot of the page after its animations have ended."""
    await page.wait_for_timeout(400)
    await page.screenshot(path=PICTURES / f"web-{name}.png")


async def take_pictures(chromium: Browser, base: str) -> None:
    """Take all pictures of the page."""
    visit = GatewaySite(chromium, base, None, None)
    page = await visit.open_page("reader-fix", viewport=DESKTOP, color_scheme="light")
    await converse(page)
    await save_screenshot(page, "light")
    dark = await visit.open_page("reader-fix", viewport=DESKTOP, color_scheme="dark")
    await expect(dark.locator(".question")).to_be_visible()
    await dark.locator("#log").evaluate("node => { node.scrollTop = 0; }")
    await save_screenshot(dark, "dark")
    phone = await visit.open_page("reader-fix", viewport=PHONE, device_scale_factor=2, is_mobile=True, has_touch=True)
    await expect(phone.locator(".question")).to_be_visible()
    await save_screenshot(phone, "phone")
    await page.locator(".question [data-choice=yes]").click()
    await expect(page.locator(".turn-status").last).to_contain_text("done")
    await page.goto(f"{base}/#/dashboard")
    await expect(page.locator(".histogram")).to_be_visible()
    await save_screenshot(page, "dashboard")


async def main() -> None:
    """Run a conversation and take pictures of it."""
    script = [
        shell_call_reply(PATCH, "I found it; here is the change."),
        text_reply(ANSWER),
        endless_reply,
        shell_call_reply("cp reader.py /srv/release/reader.py"),
    ]
    script += [text_reply("Published."), text_reply("Written."), text_reply("All since 1.2.")]
    with tempfile.TemporaryDirectory() as folder:
        async with open_hark(Path(folder), script) as hark:
            hark.configure('[approvals]\nmode = "auto"\n')
            async with run_gateway(hark) as (base, _), launch_browser() as chromium:
                await take_pictures(chromium, base)


if __name__ == "__main__":
    asyncio.run(main())
