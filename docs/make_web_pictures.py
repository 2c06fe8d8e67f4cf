"""Makes the pictures of the web page in docs/pictures: `python -m docs.make_web_pictures` (needs chromium)."""

import asyncio
import json
import tempfile
from pathlib import Path

from playwright.async_api import Browser, Page, expect
from tests.cli.command_line import opened
from tests.fakes.models.behaviours import Behaviour, Exchange, reply
from tests.surfaces.web.browser import Visit, browser, gateway

from hark.protocol.outcomes import Usage
from hark.protocol.provider import CallChunk, EndChunk, TextChunk, UsageChunk

PICTURES = Path(__file__).parent / "pictures"
DESKTOP = {"width": 1280, "height": 860}
PHONE = {"width": 390, "height": 844}
ANSWER = """The parser drops the last line when a file has no newline at its end. I changed one line in `reader.py`:

1. `split("\\n")` became `splitlines()`, which also knows `\\r\\n`
2. the test for **empty files** now runs, too

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
STORY = (
    "Let me go through all modules, one by one, and note what each of them does with the end of a line. "
    "First the reader: "
)


def called(command: str, words: str = "") -> Behaviour:
    """A reply that asks for a shell command."""
    chunk = CallChunk(0, f"call_{abs(hash(command))}", "shell", json.dumps({"command": command}))
    return reply([*([TextChunk(words)] if words else []), chunk, UsageChunk(Usage(2_100, 40)), EndChunk("calls")])


def told(words: str) -> Behaviour:
    """A whole reply."""
    return reply([TextChunk(words), UsageChunk(Usage(2_400, 180)), EndChunk()])


async def begun(exchange: Exchange) -> None:
    """A reply that begins and goes on for ever."""
    await exchange.begin()
    await exchange.say(TextChunk(STORY))
    await asyncio.get_running_loop().create_future()


async def say(page: Page, words: str, key: str = "Enter") -> None:
    """Type a message and send it."""
    await page.fill("#input", words)
    await page.press("#input", key)


async def converse(page: Page) -> None:
    """Have a conversation: an answer, an interrupt, an approval, and a queue."""
    await say(page, "Why does the reader lose the last line? Please mend it.")
    await expect(page.locator(".turn").nth(0).locator(".ending")).to_contain_text("done")
    await say(page, "Now look at the other modules")
    await expect(page.locator(".reply").last).to_contain_text("First the reader")
    await page.wait_for_timeout(700)
    await say(page, "No, stop: publish the fix first")
    await expect(page.locator(".question")).to_be_visible()
    await page.locator(".turn").nth(1).locator(".timeline summary").click()
    await expect(page.locator(".cut")).to_be_visible()
    await say(page, "Then write the changelog entry", "Alt+Enter")
    await expect(page.locator("#queue li:not(.sending)")).to_have_count(1)
    await say(page, "And tell me which versions were affected", "Alt+Enter")
    await expect(page.locator("#queue li:not(.sending)")).to_have_count(2)


async def picture(page: Page, name: str) -> None:
    """Keep what is on the screen, once it has come to rest."""
    await page.wait_for_timeout(400)
    await page.screenshot(path=PICTURES / f"web-{name}.png")


async def look(chromium: Browser, base: str) -> None:
    """Take all the pictures."""
    visit = Visit(chromium, base, None, None)
    page = await visit.page("reader-fix", viewport=DESKTOP, color_scheme="light")
    await converse(page)
    await picture(page, "light")
    dark = await visit.page("reader-fix", viewport=DESKTOP, color_scheme="dark")
    await expect(dark.locator(".question")).to_be_visible()
    await dark.locator("#log").evaluate("node => { node.scrollTop = 0; }")
    await picture(dark, "dark")
    phone = await visit.page("reader-fix", viewport=PHONE, device_scale_factor=2, is_mobile=True, has_touch=True)
    await expect(phone.locator(".question")).to_be_visible()
    await picture(phone, "phone")
    await page.locator(".question [data-choice=yes]").click()
    await expect(page.locator(".ending").last).to_contain_text("done")
    await page.goto(f"{base}/#/dashboard")
    await expect(page.locator(".histogram")).to_be_visible()
    await picture(page, "dashboard")


async def main() -> None:
    """Have a conversation, and take pictures of it."""
    script = [
        called(PATCH, "I found it; here is the change."),
        told(ANSWER),
        begun,
        called("cp reader.py /srv/release/reader.py"),
    ]
    script += [told("Published."), told("Written."), told("All since 1.2.")]
    with tempfile.TemporaryDirectory() as folder:
        async with opened(Path(folder), script) as hark:
            hark.configure('[approvals]\nmode = "auto"\n')
            async with gateway(hark) as (base, _), browser() as chromium:
                await look(chromium, base)


if __name__ == "__main__":
    asyncio.run(main())
