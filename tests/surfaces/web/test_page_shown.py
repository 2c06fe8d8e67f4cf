"""What the page shows: texts as they are, whoever wrote them, and nothing that runs or deceives."""

from pathlib import Path

import aiohttp
import pytest
from playwright.async_api import Browser, expect

from hark.protocol.provider import EndChunk, TextChunk
from tests.cli.command_line import shell_call
from tests.fakes.models.behaviours import hanging, reply, text
from tests.surfaces.web.browser import CHROMIUM, visiting
from tests.surfaces.web.test_page import ASK, say

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="needs chromium (Debian package)")

TURNED = "\u202egpj.exe\u202c"
COLOURED = "\x1b[31mred\x1b[0m"
TAG = "<img src=x onerror='window.hit=1'>"
LEVELS = """[...document.querySelectorAll("#stage :is(h1, h2, h3, h4)")]
    .filter((node) => node.checkVisibility()).map((node) => node.tagName)"""
HELD = """kind => {
    const held = new DataTransfer();
    held.items.add(new File(["words"], `${kind}.txt`, { type: "text/plain" }));
    const event = kind === "paste"
        ? new ClipboardEvent("paste", { clipboardData: held, bubbles: true, cancelable: true })
        : new DragEvent("drop", { dataTransfer: held, bubbles: true, cancelable: true });
    document.getElementById("input").dispatchEvent(event);
}"""


async def test_what_turns_letters_round_or_paints_is_left_out(chromium: Browser, tmp_path: Path) -> None:
    words = f"see https://example.org/{TURNED} and {COLOURED}\n\n```\n{TURNED} {COLOURED}\n```\n"
    script = [reply([TextChunk(words), EndChunk()]), shell_call(f"printf '{COLOURED} {TURNED}'"), text(["done"])]
    async with visiting(chromium, tmp_path, script, settings=ASK) as visit:
        page = await visit.page()
        await say(page, f"look at {TURNED}")
        await expect(page.locator(".reply a")).to_have_text("https://example.org/gpj.exe")
        await expect(page.locator(".reply p")).to_contain_text("and red")
        await expect(page.locator(".reply pre")).to_have_text("gpj.exe red")
        await expect(page.locator("#title")).to_have_text("look at gpj.exe")
        await say(page, "run it")
        question = page.locator(".question.approval")
        await expect(question.locator("h3")).to_have_text("May Hark run shell?")
        await expect(question.locator(".argument pre")).to_have_text("printf 'red gpj.exe'")
        await question.locator("[data-choice=yes]").click()
        await expect(page.locator(".reply").last).to_have_text("done")
        await page.locator(".call summary").click()
        await expect(page.locator(".call .output")).to_contain_text("red gpj.exe")


async def test_names_and_outputs_are_never_html(chromium: Browser, tmp_path: Path) -> None:
    async with visiting(chromium, tmp_path, [shell_call(f'printf "{TAG}"'), text([TAG])], settings=ASK) as visit:
        page = await visit.page()
        await expect(page.locator(".greeting")).to_be_visible()
        body = {
            "text": f"{TAG} **bold**",
            "author": TAG,
            "attachments": [{"media_type": "text/plain", "name": "<b>x<br>.txt", "data": "aGk="}],
        }
        async with (
            aiohttp.ClientSession(visit.base, trust_env=False) as client,
            client.post("/api/sessions/demo/messages", json=body) as answer,
        ):
            assert answer.status == 202
        await page.locator("[data-choice=yes]").click()
        await expect(page.locator(".reply")).to_have_text(TAG)
        await expect(page.locator(".author")).to_have_text(TAG)
        await expect(page.locator(".said strong")).to_have_text("bold")
        await expect(page.locator(".call .output")).to_contain_text(TAG)
        await expect(page.locator("#session-list .title")).to_contain_text(TAG)
        await page.reload()
        await expect(page.locator(".names li")).to_have_text("<b>x<br>.txt")
        await page.click(".timeline summary")
        await expect(page.locator(".bars .name").first).to_contain_text("<img")
        assert await page.locator("#stage img, #drawer li img").count() == 0
        assert await page.evaluate("window.hit") is None


async def test_files_are_pasted_and_dropped(chromium: Browser, tmp_path: Path) -> None:
    async with visiting(chromium, tmp_path, [text(["seen"])]) as visit:
        page = await visit.page()
        await page.evaluate(HELD, "paste")
        await expect(page.locator("#files li")).to_have_count(1)
        await page.evaluate(HELD, "drop")
        await expect(page.locator("#files li span")).to_have_text(["paste.txt · 1 KB", "drop.txt · 1 KB"])
        await page.click("#files li:nth-child(1) button")
        await page.press("#input", "Enter")
        await expect(page.locator(".names li")).to_have_text(["drop.txt"])


async def test_escape_in_the_search_stops_nothing(chromium: Browser, tmp_path: Path) -> None:
    async with visiting(chromium, tmp_path, [hanging(2)]) as visit:
        page = await visit.page()
        await say(page, "one")
        await expect(page.locator(".reply")).to_have_text("tok0 tok1")
        await page.fill("#search", "words")
        await page.press("#search", "Escape")
        await expect(page.locator("#search")).to_have_value("")
        await expect(page.locator("#stop")).to_be_enabled()
        await page.press("#input", "Escape")
        await expect(page.locator(".ending")).to_contain_text("stopped by user")


async def test_a_screen_reader_finds_its_way(chromium: Browser, tmp_path: Path) -> None:
    async with visiting(
        chromium, tmp_path, [text(["# Heading\n\nwords"]), shell_call("touch x")], settings=ASK
    ) as visit:
        page = await visit.page()
        await say(page, "one")
        await expect(page.locator(".reply h3")).to_be_visible()
        await say(page, "two")
        await expect(page.locator("#alarm")).to_contain_text("May Hark run shell?")
        assert await page.evaluate(LEVELS) == ["H1", "H2", "H3", "H2", "H3"]
        for role, name in (("navigation", "Sessions"), ("log", "Conversation"), ("textbox", "Message"), ("main", "")):
            await expect(page.get_by_role(role, name=name)).to_have_count(1)  # type: ignore[arg-type]
        await expect(page.get_by_role("button", name="Stop t2")).to_be_visible()
        await page.goto(f"{visit.base}/#/dashboard")
        await expect(page.get_by_role("heading", name="Interrupts")).to_be_visible()
        await page.set_viewport_size({"width": 375, "height": 667})
        assert await page.evaluate("document.documentElement.scrollWidth") == 375
