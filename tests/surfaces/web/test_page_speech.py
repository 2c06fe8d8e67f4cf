"""Speech on the page: real audio in a real browser, which stops when the user speaks or sends a message."""

import asyncio
import re
import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from playwright.async_api import Browser, Page, expect

from hark.protocol.provider import TextChunk
from tests.cli.command_line import open_hark
from tests.fakes.models.behaviours import Behaviour, Exchange, echo, hanging, text
from tests.surfaces.web.browser import CHROMIUM, SERVE_SETTINGS, GatewaySite, launch_browser, open_site, run_gateway
from tests.waiting import until

pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason="needs chromium (Debian package)"),
    pytest.mark.time_limit(120, reason="a busy machine loads the speech models slowly"),
]

FIRST = "This much was spoken. "
LONG = "And this sentence goes on " + "and on " * 40 + "to its end. "
LAST = "These words were never spoken. "
# Counts the played sounds, so that a test can wait for one.
COUNT_SOUNDS = """
window.sounds = 0;
const play = HTMLMediaElement.prototype.play;
HTMLMediaElement.prototype.play = function () { window.sounds++; window.sound = this; return play.call(this); };
"""


def unfinished_reply(*texts: str) -> Behaviour:
    """Return a reply that sends these text chunks and never ends."""

    async def send_reply(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.send_chunks(*map(TextChunk, texts))
        await asyncio.get_running_loop().create_future()

    return send_reply


@asynccontextmanager
async def open_speaking_page(
    chromium: Browser, tmp_path: Path, *script: Behaviour
) -> AsyncGenerator[tuple[GatewaySite, Page]]:
    """Open a page that speaks its replies. Yields in the middle of the second sentence of an unfinished reply."""
    async with open_site(chromium, tmp_path, [unfinished_reply(FIRST, LONG, LAST), *script]) as site:
        page = await site.open_page()
        await page.add_init_script(COUNT_SOUNDS)
        await page.reload()
        await page.click("#speak-replies")
        await page.fill("#input", "tell me")
        await page.press("#input", "Enter")
        await wait_for_condition(page, "window.sounds >= 2 && window.sound.currentTime > 1")
        yield site, page


async def wait_for_condition(page: Page, condition: str) -> None:
    """Wait until a JavaScript condition is true. The page's security policy blocks Playwright's own wait function."""
    await until(lambda: page.evaluate(condition), seconds=90, shows=lambda: condition)


async def read_messages(site: GatewaySite) -> list[dict[str, Any]]:
    async with aiohttp.ClientSession(site.base) as http, http.get("/api/sessions/demo/transcript") as answer:
        return (await answer.json())["messages"]


async def send_new_message(page: Page) -> None:
    await page.fill("#input", "something else")
    await page.press("#input", "Enter")


async def press_escape(page: Page) -> None:
    await page.keyboard.press("Escape")


@pytest.mark.parametrize("barge_in", [send_new_message, press_escape])
async def test_an_interrupted_reply_is_truncated_to_the_spoken_part(
    chromium: Browser, tmp_path: Path, barge_in: Callable[[Page], Awaitable[None]]
) -> None:
    async with open_speaking_page(chromium, tmp_path, echo(), echo()) as (site, page):
        assert site.hark
        await barge_in(page)
        await wait_for_condition(page, "window.sound.paused")
        await expect(page.locator(".turn.interrupted")).to_have_count(1)
        if barge_in is press_escape:
            await send_new_message(page)
        request = await site.hark.server.request(2)
        replies = [message for message in await read_messages(site) if message["role"] == "assistant"]
        spoken_text = replies[0]["text"]
        assert spoken_text.startswith("This much was spoken. And this sentence")
        assert len(FIRST) + 10 < len(spoken_text) < len(FIRST + LONG) - 20, "the text ends near the playback position"
        assert replies[0]["is_partial"]
        assert spoken_text in str(request.body)
        assert "to its end" not in str(request.body)
        assert "were never spoken" not in str(request.body)


async def test_the_model_sees_how_much_of_a_complete_reply_was_spoken(chromium: Browser, tmp_path: Path) -> None:
    async with open_site(chromium, tmp_path, [text([FIRST, LONG, LAST]), echo()]) as site:
        assert site.hark
        page = await site.open_page()
        await page.add_init_script(COUNT_SOUNDS)
        await page.reload()
        await page.click("#speak-replies")
        await page.fill("#input", "tell me")
        await page.press("#input", "Enter")
        await expect(page.locator(".turn-status")).to_contain_text("done")
        await wait_for_condition(page, "window.sounds >= 2 && window.sound.currentTime > 1")
        await expect(page.locator("#stop")).to_have_text("■ Stop speaking")
        await send_new_message(page)
        request = await site.hark.server.request(2)
        assert 'stopped listening after "This much was spoken. And this' in str(request.body)
        assert LAST.strip() in str(request.body), "the reply itself stays"


async def test_recording_stops_the_speech_and_the_speech_setting_is_remembered(
    chromium: Browser, tmp_path: Path
) -> None:
    async with open_speaking_page(chromium, tmp_path, echo()) as (_, page):
        await page.click("#record")
        await wait_for_condition(page, "window.sound.paused")
        await expect(page.locator("#recording")).to_contain_text("Recording")
        await page.keyboard.press("Escape")
        await page.reload()
        await expect(page.locator("#speak-replies")).to_have_attribute("aria-pressed", "true")
        await page.click("#speak-replies")
        await expect(page.locator("#speak-replies")).to_have_attribute("aria-pressed", "false")


async def test_a_streaming_text_is_split_into_complete_sentences(chromium: Browser, tmp_path: Path) -> None:
    async with open_site(chromium, tmp_path, []) as site:
        page = await site.open_page()
        sentences = await page.evaluate("""async () => {
            const { SentenceSplitter } = await import("/page/sentence_splitter.js");
            const splitter = new SentenceSplitter();
            const pieces = ["Hel", "lo. How a", "re you? Lo", "ok:\\n```py", "thon\\nx\\n`", "``\\nThere. T", "he end"];
            const results = [...pieces.map((piece) => splitter.add(piece)), splitter.end()];
            return results.map((result) => result.map(({ text, start, end }) => [text, start, end]));
        }""")
        assert sentences == [
            [],
            [["Hello. ", 0, 7]],
            [["How are you? ", 7, 20]],
            [["Look:\n", 20, 26]],
            [],
            [["```\n```", 26, 42], ["There. ", 42, 49]],
            [],
            [["The end", 49, 56]],
        ]


async def test_a_recording_from_the_microphone_is_transcribed_and_interrupts_the_turn(tmp_path: Path) -> None:
    speech = tmp_path / "said.wav"
    command = ["espeak-ng", "-v", "en-us", "-s", "145", "-w", str(speech), "Send an email to my brother."]
    await asyncio.to_thread(subprocess.run, command, check=True)
    async with open_hark(tmp_path, [hanging(3), echo()]) as hark:
        hark.configure(SERVE_SETTINGS)
        flag = f"--use-file-for-fake-audio-capture={speech}%noloop"
        async with run_gateway(hark) as (base, running), launch_browser(flag) as chromium:
            page = await GatewaySite(chromium, base, running, hark).open_page(permissions=["microphone"])
            await page.fill("#input", "write a story")
            await page.press("#input", "Enter")
            await hark.server.request(1)
            await page.click("#record")
            await expect(page.locator("#recording")).to_contain_text(re.compile(r"Recording ([4-9]|\d\d) s"))
            await page.click("#record")
            await expect(page.locator(".notice")).to_contain_text("🎙️", timeout=60_000)
            request = await hark.server.request(2)
            assert "to my brother" in str(request.body["messages"][-1])
            await expect(page.locator(".turn.interrupted")).to_have_count(1)
