"""The page that speaks and listens: real sound in a real browser, cut when the person wants to be heard."""

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
from tests.cli.command_line import opened
from tests.fakes.models.behaviours import Behaviour, Exchange, echo, hanging, text
from tests.surfaces.web.browser import CHROMIUM, SERVE, Visit, browser, gateway, visiting
from tests.waiting import until

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="needs chromium (Debian package)")

FIRST = "This much was heard. "
LONG = "And this sentence goes on " + "and on " * 40 + "to its end. "
LAST = "Nobody ever heard these words. "
# Notes each sound that is played, so that a test can wait for it.
SOUNDS = """
window.sounds = 0;
const play = HTMLMediaElement.prototype.play;
HTMLMediaElement.prototype.play = function () { window.sounds++; window.sound = this; return play.call(this); };
"""


def saying(*pieces: str) -> Behaviour:
    """A reply that goes on and on after these words."""

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.say(*map(TextChunk, pieces))
        await asyncio.get_running_loop().create_future()

    return play


@asynccontextmanager
async def listening(chromium: Browser, tmp_path: Path, *script: Behaviour) -> AsyncGenerator[tuple[Visit, Page]]:
    """A page that speaks its replies, in the middle of the second sentence of a reply that is not at its end."""
    async with visiting(chromium, tmp_path, [saying(FIRST, LONG, LAST), *script]) as visit:
        page = await visit.page()
        await page.add_init_script(SOUNDS)
        await page.reload()
        await page.click("#speak")
        await page.fill("#input", "tell me")
        await page.press("#input", "Enter")
        await page_shows(page, "window.sounds >= 2 && window.sound.currentTime > 1")
        yield visit, page


async def page_shows(page: Page, truth: str) -> None:
    """Return when it is true; the page's policy forbids the browser's own way to wait for that."""
    await until(lambda: page.evaluate(truth), seconds=120, shows=lambda: truth)


async def messages(visit: Visit) -> list[dict[str, Any]]:
    async with aiohttp.ClientSession(visit.base) as http, http.get("/api/sessions/demo/transcript") as answer:
        return (await answer.json())["messages"]


async def send(page: Page) -> None:
    await page.fill("#input", "something else")
    await page.press("#input", "Enter")


async def press_escape(page: Page) -> None:
    await page.keyboard.press("Escape")


@pytest.mark.parametrize("barge_in", [send, press_escape])
async def test_the_reply_is_cut_to_what_was_heard(
    chromium: Browser, tmp_path: Path, barge_in: Callable[[Page], Awaitable[None]]
) -> None:
    async with listening(chromium, tmp_path, echo(), echo()) as (visit, page):
        assert visit.hark
        await barge_in(page)
        await page_shows(page, "window.sound.paused")
        await expect(page.locator(".turn.interrupted")).to_have_count(1)
        if barge_in is press_escape:
            await send(page)
        request = await visit.hark.server.request(2)
        replies = [message for message in await messages(visit) if message["role"] == "assistant"]
        heard = replies[0]["text"]
        assert heard.startswith("This much was heard. And this sentence")
        assert len(FIRST) + 10 < len(heard) < len(FIRST + LONG) - 20, "to about where the sound was"
        assert replies[0]["is_partial"]
        assert heard in str(request.body)
        assert "to its end" not in str(request.body)
        assert "Nobody ever heard" not in str(request.body)


async def test_the_model_is_told_how_far_a_reply_was_heard_that_was_all_there(
    chromium: Browser, tmp_path: Path
) -> None:
    async with visiting(chromium, tmp_path, [text([FIRST, LONG, LAST]), echo()]) as visit:
        assert visit.hark
        page = await visit.page()
        await page.add_init_script(SOUNDS)
        await page.reload()
        await page.click("#speak")
        await page.fill("#input", "tell me")
        await page.press("#input", "Enter")
        await expect(page.locator(".ending")).to_contain_text("done")
        await page_shows(page, "window.sounds >= 2 && window.sound.currentTime > 1")
        await expect(page.locator("#stop")).to_have_text("■ Stop speaking")
        await send(page)
        request = await visit.hark.server.request(2)
        assert 'stopped listening after the words "This much was heard. And this' in str(request.body)
        assert LAST.strip() in str(request.body), "the reply itself stays"


async def test_recording_silences_the_reply_and_the_toggle_is_remembered(chromium: Browser, tmp_path: Path) -> None:
    async with listening(chromium, tmp_path, echo()) as (_, page):
        await page.click("#record")
        await page_shows(page, "window.sound.paused")
        await expect(page.locator("#recording")).to_contain_text("recording")
        await page.keyboard.press("Escape")
        await page.reload()
        await expect(page.locator("#speak")).to_have_attribute("aria-pressed", "true")
        await page.click("#speak")
        await expect(page.locator("#speak")).to_have_attribute("aria-pressed", "false")


async def test_sentences_are_spoken_as_soon_as_they_are_whole(chromium: Browser, tmp_path: Path) -> None:
    async with visiting(chromium, tmp_path, []) as visit:
        page = await visit.page()
        told = await page.evaluate("""async () => {
            const { Sentences } = await import("/page/sentence_splitter.js");
            const one = new Sentences();
            const pieces = ["Hel", "lo. How a", "re you? Lo", "ok:\\n```py", "thon\\nx\\n`", "``\\nThere. T", "he end"];
            const told = [...pieces.map((piece) => one.add(piece)), one.end()];
            return told.map((all) => all.map(({ text, start, end }) => [text, start, end]));
        }""")
        assert told == [
            [],
            [["Hello. ", 0, 7]],
            [["How are you? ", 7, 20]],
            [["Look:\n", 20, 26]],
            [],
            [["```\n```", 26, 42], ["There. ", 42, 49]],
            [],
            [["The end", 49, 56]],
        ]


async def test_what_is_said_into_the_microphone_interrupts_with_its_words(tmp_path: Path) -> None:
    speech = tmp_path / "said.wav"
    words = ["espeak-ng", "-v", "en-us", "-s", "145", "-w", str(speech), "Send an email to my brother."]
    await asyncio.to_thread(subprocess.run, words, check=True)
    async with opened(tmp_path, [hanging(3), echo()]) as hark:
        hark.configure(SERVE)
        flag = f"--use-file-for-fake-audio-capture={speech}%noloop"
        async with gateway(hark) as (base, running), browser(flag) as chromium:
            page = await Visit(chromium, base, running, hark).page(permissions=["microphone"])
            await page.fill("#input", "write a story")
            await page.press("#input", "Enter")
            await hark.server.request(1)
            await page.click("#record")
            await expect(page.locator("#recording")).to_contain_text(re.compile(r"recording ([4-9]|\d\d) s"))
            await page.click("#record")
            await expect(page.locator(".notice")).to_contain_text("🎙️", timeout=60_000)
            request = await hark.server.request(2)
            assert "to my brother" in str(request.body["messages"][-1])
            await expect(page.locator(".turn.interrupted")).to_have_count(1)
