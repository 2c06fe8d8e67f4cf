"""The page displays text literally and safely: no HTML, no scripts, no hidden or reordered characters."""

from pathlib import Path

import aiohttp
import pytest
from playwright.async_api import Browser, expect

from hark.protocol.provider import EndChunk, TextChunk
from tests.cli.command_line import shell_call
from tests.fakes.models.behaviours import hanging, reply, text
from tests.surfaces.web.browser import CHROMIUM, open_site
from tests.surfaces.web.test_page import ASK, send_message

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="needs chromium (Debian package)")

REORDERED = "\u202egpj.exe\u202c"
COLOURED = "\x1b[31mred\x1b[0m"
TAG = "<img src=x onerror='window.hit=1'>"
HEADING_LEVELS = """[...document.querySelectorAll("#content :is(h1, h2, h3, h4)")]
    .filter((node) => node.checkVisibility()).map((node) => node.tagName)"""
DISPATCH_FILE = """kind => {
    const transfer = new DataTransfer();
    transfer.items.add(new File(["words"], `${kind}.txt`, { type: "text/plain" }));
    const event = kind === "paste"
        ? new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true, cancelable: true })
        : new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true });
    document.getElementById("input").dispatchEvent(event);
}"""


async def test_direction_overrides_and_colour_codes_are_removed_from_all_displayed_text(
    chromium: Browser, tmp_path: Path
) -> None:
    reply_text = f"see https://example.org/{REORDERED} and {COLOURED}\n\n```\n{REORDERED} {COLOURED}\n```\n"
    script = [
        reply([TextChunk(reply_text), EndChunk()]),
        shell_call(f"printf '{COLOURED} {REORDERED}'"),
        text(["done"]),
    ]
    async with open_site(chromium, tmp_path, script, settings=ASK) as site:
        page = await site.open_page()
        await send_message(page, f"look at {REORDERED}")
        await expect(page.locator(".reply a")).to_have_text("https://example.org/gpj.exe")
        await expect(page.locator(".reply p")).to_contain_text("and red")
        await expect(page.locator(".reply pre")).to_have_text("gpj.exe red")
        await expect(page.locator("#title")).to_have_text("look at gpj.exe")
        await send_message(page, "run it")
        question = page.locator(".question.approval")
        await expect(question.locator("h3")).to_have_text("Allow this command?")
        await expect(question.locator(".argument pre")).to_have_text("printf 'red gpj.exe'")
        await question.locator("[data-choice=yes]").click()
        await expect(page.locator(".reply").last).to_have_text("done")
        await page.locator(".call summary").click()
        await expect(page.locator(".call .output")).to_contain_text("red gpj.exe")


async def test_names_and_outputs_are_shown_as_text_and_never_as_html(chromium: Browser, tmp_path: Path) -> None:
    async with open_site(chromium, tmp_path, [shell_call(f'printf "{TAG}"'), text([TAG])], settings=ASK) as site:
        page = await site.open_page()
        await expect(page.locator(".greeting")).to_be_visible()
        body = {
            "text": f"{TAG} **bold**",
            "author": TAG,
            "attachments": [{"media_type": "text/plain", "name": "<b>x<br>.txt", "data": "aGk="}],
        }
        async with (
            aiohttp.ClientSession(site.base, trust_env=False) as client,
            client.post("/api/sessions/demo/messages", json=body) as response,
        ):
            assert response.status == 202
        await page.locator("[data-choice=yes]").click()
        await expect(page.locator(".reply")).to_have_text(TAG)
        await expect(page.locator(".author")).to_have_text(TAG)
        await expect(page.locator(".user-message strong")).to_have_text("bold")
        await expect(page.locator(".call .output")).to_contain_text(TAG)
        await expect(page.locator("#session-list .title")).to_contain_text(TAG)
        await page.reload()
        await expect(page.locator(".file-names li")).to_have_text("<b>x<br>.txt")
        await page.click(".timeline summary")
        await expect(page.locator(".bars .name").first).to_contain_text("<img")
        assert await page.locator("#content img, #drawer li img").count() == 0
        assert await page.evaluate("window.hit") is None


async def test_files_are_attached_by_paste_and_drop(chromium: Browser, tmp_path: Path) -> None:
    async with open_site(chromium, tmp_path, [text(["seen"])]) as site:
        page = await site.open_page()
        await page.evaluate(DISPATCH_FILE, "paste")
        await expect(page.locator("#files li")).to_have_count(1)
        await page.evaluate(DISPATCH_FILE, "drop")
        await expect(page.locator("#files li span")).to_have_text(["paste.txt · 1 KB", "drop.txt · 1 KB"])
        await page.click("#files li:nth-child(1) button")
        await page.press("#input", "Enter")
        await expect(page.locator(".file-names li")).to_have_text(["drop.txt"])


async def test_escape_in_the_search_field_does_not_stop_the_turn(chromium: Browser, tmp_path: Path) -> None:
    async with open_site(chromium, tmp_path, [hanging(2)]) as site:
        page = await site.open_page()
        await send_message(page, "one")
        await expect(page.locator(".reply")).to_have_text("tok0 tok1")
        await page.fill("#search", "query")
        await page.press("#search", "Escape")
        await expect(page.locator("#search")).to_have_value("")
        await expect(page.locator("#stop")).to_be_enabled()
        await page.press("#input", "Escape")
        await expect(page.locator(".turn-status")).to_contain_text("stopped by user")


async def test_headings_landmarks_and_announcements_support_screen_readers(chromium: Browser, tmp_path: Path) -> None:
    async with open_site(
        chromium, tmp_path, [text(["# Heading\n\nwords"]), shell_call("touch x")], settings=ASK
    ) as site:
        page = await site.open_page()
        await send_message(page, "one")
        await expect(page.locator(".reply h3")).to_be_visible()
        await send_message(page, "two")
        await expect(page.locator("#urgent-announcer")).to_contain_text("Allow this command?")
        assert await page.evaluate(HEADING_LEVELS) == ["H1", "H2", "H3", "H2", "H3"]
        for role, name in (("navigation", "Sessions"), ("log", "Conversation"), ("textbox", "Message"), ("main", "")):
            await expect(page.get_by_role(role, name=name)).to_have_count(1)  # type: ignore[arg-type]
        await expect(page.get_by_role("button", name="Stop t2")).to_be_visible()
        await page.goto(f"{site.base}/#/dashboard")
        await expect(page.get_by_role("heading", name="Interrupts")).to_be_visible()
        await page.set_viewport_size({"width": 375, "height": 667})
        assert await page.evaluate("document.documentElement.scrollWidth") == 375
