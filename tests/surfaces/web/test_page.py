"""The web page, as people use it: in a real browser, on a real gateway."""

import asyncio
import base64
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Route, expect

from hark.protocol.provider import EndChunk, TextChunk
from hark.protocol.speech import Audio, Utterance
from tests.cli.command_line import opened, shell_call
from tests.fakes.models.behaviours import Behaviour, Exchange, echo, hanging, reply, text
from tests.surfaces.web.browser import CHROMIUM, SERVE, Visit, gateway, visiting
from tests.surfaces.web.web_fixture import served

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="needs chromium (Debian package)")

ASK = '[approvals]\nmode = "ask"\n'
ALL = '[approvals]\nmode = "all"\n'


def paused(first: str, then: str, gate: asyncio.Event) -> Behaviour:
    """A reply that stops in its middle until the gate is open."""

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.say(TextChunk(first))
        await gate.wait()
        await exchange.say(TextChunk(then), EndChunk())
        await exchange.end()

    return play


async def say(page: Page, words: str, key: str = "Enter") -> None:
    await page.fill("#input", words)
    await page.press("#input", key)


async def test_a_chat_streams_markdown_and_shows_receipt_and_timeline(chromium: Browser, tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with visiting(chromium, tmp_path, [paused("Hello **wor", "ld** and\n\n- one\n- `two`\n", gate)]) as visit:
        page = await visit.page()
        await say(page, "hi there")
        await expect(page.locator(".said .words")).to_have_text("hi there")
        await expect(page.locator(".said .receipt")).to_contain_text("started")
        await expect(page.locator(".reply")).to_have_text("Hello **wor")
        gate.set()
        await expect(page.locator(".reply strong")).to_have_text("world")
        await expect(page.locator(".reply li")).to_have_count(2)
        await expect(page.locator(".ending")).to_contain_text("done")
        await expect(page.locator("#announcer")).to_contain_text("Hello **world**")
        await page.click(".timeline summary")
        await expect(page.locator(".bars li")).to_have_count(1)
        await expect(page.locator("#session-list a[aria-current]")).to_contain_text("hi there")


async def test_stop_names_its_turn_and_shows_the_latency(chromium: Browser, tmp_path: Path) -> None:
    async with visiting(chromium, tmp_path, [hanging(3), hanging(2)]) as visit:
        page = await visit.page()
        await say(page, "one")
        await expect(page.locator(".reply")).to_have_text("tok0 tok1 tok2")
        await expect(page.locator("#stop")).to_have_text("■ Stop t1")
        async with page.expect_request("**/interrupt") as sent:
            await page.click("#stop")
        assert (await sent.value).post_data_json == {"source": "user", "turn": "demo.t1"}
        await expect(page.locator(".ending")).to_contain_text("stopped by user in")
        await expect(page.locator("#stop")).to_be_hidden()
        await page.click(".timeline summary")
        await expect(page.locator(".cut")).to_contain_text("settled in")
        await say(page, "two")
        await expect(page.locator("#stop")).to_have_text("■ Stop t2")
        await page.press("#input", "Escape")
        await expect(page.locator(".ending").nth(1)).to_contain_text("stopped by user in")


async def test_enter_interrupts_and_the_new_message_is_answered(chromium: Browser, tmp_path: Path) -> None:
    async with visiting(chromium, tmp_path, [hanging(2), echo()]) as visit:
        page = await visit.page()
        await say(page, "a long task")
        await expect(page.locator(".reply")).to_have_text("tok0 tok1")
        await say(page, "no, this instead")
        await expect(page.locator(".turn")).to_have_count(2)
        await expect(page.locator(".turn").nth(0).locator(".ending")).to_contain_text("stopped by")
        await expect(page.locator(".turn").nth(1).locator(".reply")).to_have_text("no, this instead")
        await expect(page.locator("#queue")).to_be_hidden()


async def test_waiting_messages_are_edited_moved_and_withdrawn_in_all_tabs(chromium: Browser, tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with visiting(chromium, tmp_path, [paused("busy", ".", gate), echo(), echo()]) as visit:
        page = await visit.page()
        other = await visit.page()
        await say(page, "first")
        await expect(page.locator(".reply")).to_have_text("busy")
        for number, words in enumerate(("red", "green", "blue"), 1):
            await say(page, words, "Alt+Enter")
            await expect(page.locator("#queue li:not(.sending)")).to_have_count(number)
        await expect(other.locator("#queue .words")).to_have_text(["red", "green", "blue"])
        await page.click("#queue li:nth-child(2) [data-act=withdraw]")
        await other.click("#queue li:nth-child(2) [data-act=up]")
        await expect(page.locator("#queue .words")).to_have_text(["blue", "red"])
        await page.click("#queue li:nth-child(2) [data-act=edit]")
        await page.fill("#queue textarea", "crimson")
        await page.press("#queue textarea", "Enter")
        await expect(other.locator("#queue .words")).to_have_text(["blue", "crimson"])
        await expect(page.locator("#queue .receipt").nth(1)).to_contain_text("queued")
        gate.set()
        for tab in (page, other):
            await expect(tab.locator(".said .words")).to_have_text(["first", "blue", "crimson"])
            await expect(tab.locator(".reply")).to_have_text(["busy.", "blue", "crimson"])
            await expect(tab.locator("#queue")).to_be_hidden()


async def test_a_steered_message_stands_in_the_turn_that_took_it(chromium: Browser, tmp_path: Path) -> None:
    release = tmp_path / "release"
    waits = shell_call(f"until [ -e {release} ]; do sleep 0.05; done")
    async with visiting(chromium, tmp_path, [waits, echo()], settings=ALL) as visit:
        page = await visit.page()
        await say(page, "go")
        await expect(page.locator(".call.running")).to_be_visible()
        await say(page, "and be brief", "Control+Enter")
        await visit.until_waiting("and be brief")
        release.touch()
        await expect(page.locator(".turn .said .receipt")).to_contain_text(["started", "steered"])
        await expect(page.locator(".reply")).to_contain_text("and be brief")
        await expect(page.locator(".turn")).to_have_count(1)


async def test_a_call_shows_its_output_as_it_comes_and_a_diff_in_colours(chromium: Browser, tmp_path: Path) -> None:
    release = tmp_path / "release"
    diff = r"printf -- '--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n'"
    command = f"echo begun; while [ ! -e {release} ]; do sleep 0.05; done; {diff}"
    async with visiting(chromium, tmp_path, [shell_call(command), text(["done"])], settings=ALL) as visit:
        page = await visit.page()
        await say(page, "go")
        await expect(page.locator(".call .output")).to_have_text("begun\n")
        release.touch()
        await expect(page.locator(".output .added")).to_contain_text("+new")
        await expect(page.locator(".output .removed")).to_contain_text("-old")
        await expect(page.locator(".call .state")).to_have_text("done")


@pytest.mark.parametrize("way", ["button", "key"])
async def test_an_approval_is_given(chromium: Browser, tmp_path: Path, way: str) -> None:
    async with visiting(chromium, tmp_path, [shell_call("touch made.txt"), text(["done"])], settings=ASK) as visit:
        page = await visit.page()
        other = await visit.page()
        await say(page, "make it")
        question = page.locator(".question.approval")
        await expect(question).to_contain_text("touch made.txt")
        await expect(page.locator("#activity")).to_have_text("waits for you")
        if way == "button":
            await question.locator("[data-choice=yes]").click()
        else:
            await page.reload()  # an open question is there again
            await expect(question).to_contain_text("touch made.txt")
            await page.wait_for_timeout(600)  # a key answers only what has been on the screen for half a second
            await page.press("#input", "y")
        for tab in (page, other):
            await expect(tab.locator(".reply")).to_have_text("done")
        await expect(other.locator(".question .state")).to_contain_text("answered")


async def test_a_stop_withdraws_a_question_for_all_to_see(chromium: Browser, tmp_path: Path) -> None:
    async with visiting(chromium, tmp_path, [shell_call("touch made.txt")], settings=ASK) as visit:
        page = await visit.page()
        await say(page, "make it")
        await expect(page.locator(".question.approval")).to_be_visible()
        await page.click("#stop")
        await expect(page.locator(".question.withdrawn .state")).to_contain_text("withdrawn")
        await expect(page.locator(".question button").first).to_be_hidden()


async def test_a_reload_in_mid_stream_goes_on_with_nothing_lost_or_doubled(chromium: Browser, tmp_path: Path) -> None:
    words: list[str] = []
    is_enough = asyncio.Event()

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        while not is_enough.is_set():
            words.append(f"w{len(words)} ")
            await exchange.say(TextChunk(words[-1]))
            await asyncio.sleep(0.02)
        await exchange.say(EndChunk())
        await exchange.end()

    async with visiting(chromium, tmp_path, [play]) as visit:
        page = await visit.page()
        other = await visit.page()
        await say(page, "count")
        await expect(page.locator(".reply")).to_contain_text("w20 ")
        for _ in range(3):
            await page.reload()
            await expect(page.locator(".reply")).to_contain_text("w20 ")
            await expect(page.locator(".turn.running")).to_have_count(1)
            await expect(page.locator(".reply")).to_contain_text(f"w{len(words) + 10} ")
        is_enough.set()
        for tab in (page, other):
            await expect(tab.locator(".ending")).to_contain_text("done")
            await expect(tab.locator(".reply")).to_have_text("".join(words).strip())
            await expect(tab.locator(".said")).to_have_count(1)


async def test_a_lost_connection_is_told_and_mends_by_itself(chromium: Browser, tmp_path: Path) -> None:
    async with visiting(chromium, tmp_path, [hanging(2), echo()]) as visit:
        assert visit.running
        assert visit.hark
        page = await visit.page()
        await say(page, "one")
        await expect(page.locator(".reply")).to_have_text("tok0 tok1")
        visit.running.signal(signal.SIGKILL)
        await expect(page.locator("#connection")).to_contain_text("Connection lost, trying again")
        await say(page, "meanwhile")
        await expect(page.locator("#queue .problem")).to_contain_text("Not sent")
        async with gateway(visit.hark, port=int(visit.base.rpartition(":")[2])):
            await expect(page.locator("#connection")).to_be_hidden()
            await expect(page.locator(".reply").last).to_have_text("meanwhile")
            await expect(page.locator(".said .words")).to_have_text(["one", "meanwhile"])
            await expect(page.locator("#queue")).to_be_hidden()


ATTACKS = """<script>window.hit=1</script> <img src=x onerror="window.hit=1">

[click](javascript:window.hit=1) [data](data:text/html,<script>window.hit=1</script>) ![p](https://127.0.0.1:1/p.png)

<javascript:window.hit=1> [ok](https://example.org/a "t" ) [x](JaVaScRiPt:alert(1))
[y]( javascript:alert(1)) [v](vbscript:x)

| a <b onclick="window.hit=1">| `<i>` |
|---|---|
| <svg onload=window.hit=1> | [z](https://example.org/"onmouseover="window.hit=1) |

```html"><script>window.hit=1</script>
<script>window.hit=1</script>
```
"""


async def test_model_output_can_inject_nothing(chromium: Browser, tmp_path: Path) -> None:
    words = reply([TextChunk(ATTACKS), EndChunk()])
    call = shell_call("echo '<script>window.hit=1</script><img src=x onerror=window.hit=1>'")
    async with visiting(chromium, tmp_path, [call, words], settings=ALL) as visit:
        page = await visit.page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        await say(page, "<img src=x onerror=window.hit=1>")
        await expect(page.locator(".ending")).to_contain_text("done")
        inside = "#log :is(script, img, svg, iframe, object, style, [onclick], [onerror], [onload], [onmouseover])"
        await expect(page.locator(inside)).to_have_count(0)
        links = await page.locator(".reply a").evaluate_all("all => all.map(one => [one.protocol, one.rel])")
        assert {scheme for scheme, _ in links} == {"https:"}
        assert all("noopener" in relation for _, relation in links)
        for link in await page.locator(".reply .no-link").all():
            await link.click()
        assert await page.evaluate("window.hit") is None
        assert all(url.startswith((visit.base, "blob:")) for url in asked)
        await page.reload()
        await expect(page.locator(".reply")).to_contain_text("<script>window.hit=1</script>")
        assert await page.evaluate("window.hit") is None


class Ear:
    """Hears the same words in whatever is a recording of a browser."""

    def __init__(self) -> None:
        self.heard: list[Audio] = []

    def warm_up(self) -> None:
        pass

    async def transcribe(self, audio: Audio, progress: Callable[[str], None] = lambda _: None) -> Utterance:
        self.heard.append(audio)
        return Utterance("what time is it")

    async def close(self) -> None:
        pass


async def test_voice_is_recorded_and_becomes_a_message(chromium: Browser, tmp_path: Path) -> None:
    ear = Ear()
    async with served(tmp_path, [echo()], transcriber=ear) as world:
        page = await Visit(chromium, world.base, None, None).page(permissions=["microphone"])
        await page.click("#record")
        await expect(page.locator("#recording")).to_contain_text(re.compile(r"recording [1-9]"))
        await page.click("#record")
        await expect(page.locator(".notice")).to_contain_text('🎙️ "what time is it"')
        await expect(page.locator(".said .words")).to_have_text("what time is it")
        await expect(page.locator(".reply")).to_have_text("what time is it")
        await page.click("#record")
        await expect(page.locator("#recording")).to_contain_text("recording")
        await page.keyboard.press("Escape")
        await expect(page.locator("#recording")).to_have_text("")
        await page.close()
    assert [audio.data[:4] for audio in ear.heard] == [b"\x1aE\xdf\xa3"]  # WebM, and only the one that was sent


async def test_files_come_along(chromium: Browser, tmp_path: Path) -> None:
    pixel = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    async with visiting(chromium, tmp_path, [text(["seen"])]) as visit:
        assert visit.hark
        page = await visit.page()
        await page.set_input_files(
            "#file-input",
            [
                {"name": "dot.png", "mimeType": "image/png", "buffer": pixel},
                {"name": "a.txt", "mimeType": "text/plain", "buffer": b"words"},
            ],
        )
        await expect(page.locator("#files li")).to_have_count(2)
        await say(page, "look")
        await expect(page.locator(".reply")).to_have_text("seen")
        await expect(page.locator(".names li")).to_have_text(["dot.png", "a.txt"])
        assert base64.b64encode(pixel).decode() in str(visit.hark.server.requests[0].body)


async def test_sessions_are_listed_searched_and_made(chromium: Browser, tmp_path: Path) -> None:
    async with visiting(chromium, tmp_path, [echo(), echo()]) as visit:
        page = await visit.page("apples")
        await say(page, "tell me about apples")
        await expect(page.locator(".reply")).to_have_text("tell me about apples")
        await page.click("#new-session")
        await expect(page.locator(".greeting")).to_be_visible()
        await say(page, "and of pears")
        await expect(page.locator(".reply")).to_have_text("and of pears")
        await expect(page.locator("#session-list .rows").first.locator("li")).to_have_count(2)
        await page.fill("#search", "apples")
        await expect(page.locator("#session-list .hits li").first).to_contain_text("apples")
        await page.locator("#session-list .rows").first.locator("a").first.click()
        await expect(page.locator("#title")).to_contain_text("apples")
        await expect(page.locator(".said .words")).to_have_text("tell me about apples")


async def test_the_dashboard_tells_how_all_stands(chromium: Browser, tmp_path: Path) -> None:
    async with visiting(chromium, tmp_path, [hanging(1)]) as visit:
        page = await visit.page()
        await say(page, "one")
        await expect(page.locator(".reply")).to_have_text("tok0")
        await page.click("#dashboard-link")
        await expect(page.locator("#dashboard .panel").nth(1)).to_contain_text("demo")
        await page.go_back()
        await page.click("#stop")
        await expect(page.locator(".ending")).to_contain_text("stopped")
        await page.click("#dashboard-link")
        await expect(page.locator(".histogram")).to_be_visible()
        await expect(page.locator("#dashboard")).to_contain_text("1 interrupt,")
        await expect(page.locator(".health.well")).to_have_text("well")


async def test_a_token_is_asked_for_once(chromium: Browser, tmp_path: Path) -> None:
    async with visiting(chromium, tmp_path, [echo()], "--token", "a-long-token") as visit:
        page = await visit.page()
        await page.fill("#token", "wrong")
        await page.press("#token", "Enter")
        await expect(page.locator("#login-problem")).to_contain_text("not the token")
        await page.fill("#token", "a-long-token")
        await page.press("#token", "Enter")
        await expect(page.locator("#login")).to_be_hidden()
        await say(page, "hi")
        await expect(page.locator(".reply")).to_have_text("hi")
        other = await visit.page()
        await expect(other.locator(".reply")).to_have_text("hi")


async def test_a_phone_has_all_within_its_width(chromium: Browser, tmp_path: Path) -> None:
    long = (
        "word " * 60 + "x" * 300 + "\n\n```\n" + "y" * 300 + "\n```\n\n| a | b |\n|---|---|\n| " + "z" * 90 + " | c |\n"
    )
    async with visiting(chromium, tmp_path, [reply([TextChunk(long), EndChunk()])]) as visit:
        page = await visit.page(viewport={"width": 375, "height": 667}, has_touch=True, is_mobile=True)
        await say(page, "hi " + "q" * 200)
        await expect(page.locator(".ending")).to_contain_text("done")
        assert await page.evaluate("document.documentElement.scrollWidth") == 375
        await page.click("#open-drawer")
        await expect(page.locator("#session-list a")).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(page.locator("#drawer")).to_be_hidden()


async def test_what_a_command_takes_back_is_gone_in_all_tabs(chromium: Browser, tmp_path: Path) -> None:
    async with visiting(chromium, tmp_path, [echo(), echo()]) as visit:
        page = await visit.page()
        other = await visit.page()
        await say(page, "remember this")
        await expect(other.locator(".reply")).to_have_text("remember this")
        await say(page, "/reset")
        for tab in (page, other):
            await expect(tab.locator(".turn")).to_have_count(0)
            await expect(tab.locator(".notice")).to_have_count(1)
        await say(page, "anew")
        await expect(other.locator(".reply")).to_have_text("anew")


async def test_messages_arrive_in_the_order_in_which_they_were_sent(chromium: Browser, tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with visiting(chromium, tmp_path, [paused("busy", ".", gate), *(echo() for _ in range(8))]) as visit:
        page = await visit.page()
        await say(page, "first")
        await expect(page.locator(".reply")).to_have_text("busy")
        words = [f"number {number}" for number in range(8)]
        await page.evaluate(
            """words => { for (const one of words) {
                const field = document.getElementById("input");
                field.value = one;
                document.getElementById("queue-up").click();
            } }""",
            words,
        )
        await expect(page.locator("#queue li:not(.sending) .words")).to_have_text(words)
        gate.set()
        await expect(page.locator(".reply")).to_have_text(["busy.", *words])


async def test_every_control_has_a_name_and_is_reached_by_tab(chromium: Browser, tmp_path: Path) -> None:
    async with visiting(chromium, tmp_path, [shell_call("touch made.txt")], settings=ASK) as visit:
        page = await visit.page()
        await say(page, "make it")
        await expect(page.locator(".question.approval")).to_be_visible()
        await say(page, "later", "Alt+Enter")
        await expect(page.locator("#queue li:not(.sending)")).to_have_count(1)
        nameless = """() => [...document.querySelectorAll("button, input, textarea, a, summary")]
            .filter(one => one.checkVisibility() && !one.getAttribute("aria-label") && !one.textContent.trim())
            .map(one => one.outerHTML)"""
        assert await page.evaluate(nameless) == []
        await page.focus("#new-session")
        reached: set[str] = set()
        for _ in range(40):
            await page.keyboard.press("Tab")
            node = "document.activeElement"
            reached.add(await page.evaluate(f"{node}.id || {node}.dataset.choice || {node}.dataset.act || ''"))
        assert {
            "search",
            "stop",
            "log",
            "yes",
            "no",
            "withdraw",
            "edit",
            "input",
            "attach",
            "record",
            "send",
        } <= reached


async def test_a_turn_that_a_crash_cut_has_a_button_that_goes_on_with_it_once(
    chromium: Browser, tmp_path: Path
) -> None:
    async with opened(tmp_path, [hanging(2), text(["finished"])]) as hark:
        hark.configure(SERVE)
        async with gateway(hark) as (base, running):
            page = await Visit(chromium, base, running, hark).page()
            await say(page, "a long task")
            await hark.server.request(1)
            running.process.kill()
            await running.process.wait()
        async with gateway(hark) as (base, running):
            visit = Visit(chromium, base, running, hark)
            page, other = await visit.page(), await visit.page()
            button = page.get_by_role("button", name="Go on with turn t1")
            await expect(other.get_by_role("button", name="Go on with turn t1")).to_be_visible()
            assert len(hark.server.requests) == 1
            await button.click()
            await expect(page.locator(".reply").last).to_have_text("finished")
            await expect(button).to_have_count(0)
            await expect(other.get_by_role("button", name="Go on with turn t1")).to_have_count(0)
    assert len(hark.server.requests) == 2


async def test_escape_directly_after_enter_stops_a_message_that_is_still_on_its_way(
    chromium: Browser, tmp_path: Path
) -> None:
    async with visiting(chromium, tmp_path, [echo()]) as visit:
        page = await visit.page()
        gate = asyncio.Event()

        async def hold(route: Route) -> None:
            await gate.wait()
            await route.continue_()

        await page.route("**/messages", hold)
        async with page.expect_request("**/messages"):
            await say(page, "a long task")
        await expect(page.locator("#stop")).to_have_text("■ Stop sending")
        async with page.expect_response("**/interrupt"):
            await page.press("#input", "Escape")
        gate.set()
        await expect(page.locator(".ending")).to_contain_text("stopped by user in")
        await expect(page.locator("#stop")).to_be_hidden()
        await page.unroute("**/messages")
        await say(page, "next")
        await expect(page.locator(".ending").nth(1)).to_contain_text("done")
