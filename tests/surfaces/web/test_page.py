"""The web page in a real browser, with a real gateway."""

import asyncio
import base64
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Route, expect

from hark.protocol.provider import CallChunk, EndChunk, TextChunk
from hark.protocol.speech import Audio, Utterance
from tests.cli.command_line import open_hark, shell_call
from tests.fakes.models.behaviours import Behaviour, Exchange, echo, hanging, reply, text
from tests.surfaces.web.browser import CHROMIUM, SERVE_SETTINGS, GatewaySite, open_site, run_gateway
from tests.surfaces.web.web_fixture import run_web_server

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="needs chromium (Debian package)")

ASK = '[approvals]\nmode = "ask"\n'
ALL = '[approvals]\nmode = "all"\n'


def reply_with_pause(first: str, second: str, gate: asyncio.Event) -> Behaviour:
    """Return a reply that pauses in the middle until the gate is set."""

    async def send_reply(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.send_chunks(TextChunk(first))
        await gate.wait()
        await exchange.send_chunks(TextChunk(second), EndChunk())
        await exchange.end()

    return send_reply


async def send_message(page: Page, text: str, key: str = "Enter") -> None:
    await page.fill("#input", text)
    await page.press("#input", key)


async def test_a_chat_streams_markdown_and_shows_receipt_and_timeline(chromium: Browser, tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with open_site(
        chromium, tmp_path, [reply_with_pause("Hello **wor", "ld** and\n\n- one\n- `two`\n", gate)]
    ) as site:
        page = await site.open_page()
        await send_message(page, "hi there")
        await expect(page.locator(".user-message .text")).to_have_text("hi there")
        await expect(page.locator(".user-message .receipt")).to_contain_text("Started")
        await expect(page.locator(".reply")).to_have_text("Hello **wor")
        gate.set()
        await expect(page.locator(".reply strong")).to_have_text("world")
        await expect(page.locator(".reply li")).to_have_count(2)
        await expect(page.locator(".turn-status")).to_contain_text("done")
        await expect(page.locator("#announcer")).to_contain_text("Hello **world**")
        await page.click(".timeline summary")
        await expect(page.locator(".bars li")).to_have_count(1)
        await expect(page.locator("#session-list a[aria-current]")).to_contain_text("hi there")


async def test_the_stop_button_shows_its_turn_and_a_stopped_turn_shows_its_stop_time(
    chromium: Browser, tmp_path: Path
) -> None:
    async with open_site(chromium, tmp_path, [hanging(3), hanging(2)]) as site:
        page = await site.open_page()
        await send_message(page, "one")
        await expect(page.locator(".reply")).to_have_text("tok0 tok1 tok2")
        await expect(page.locator("#stop")).to_have_text("■ Stop t1")
        async with page.expect_request("**/interrupt") as request_info:
            await page.click("#stop")
        assert (await request_info.value).post_data_json == {"source": "user", "turn": "demo.t1"}
        await expect(page.locator(".turn-status")).to_contain_text("stopped by user in")
        await expect(page.locator("#stop")).to_be_hidden()
        await page.click(".timeline summary")
        await expect(page.locator(".interrupt-summary")).to_contain_text(", ended")
        await send_message(page, "two")
        await expect(page.locator("#stop")).to_have_text("■ Stop t2")
        await page.press("#input", "Escape")
        await expect(page.locator(".turn-status").nth(1)).to_contain_text("stopped by user in")


async def test_enter_interrupts_and_the_new_message_is_answered(chromium: Browser, tmp_path: Path) -> None:
    async with open_site(chromium, tmp_path, [hanging(2), echo()]) as site:
        page = await site.open_page()
        await send_message(page, "a long task")
        await expect(page.locator(".reply")).to_have_text("tok0 tok1")
        await send_message(page, "no, this instead")
        await expect(page.locator(".turn")).to_have_count(2)
        await expect(page.locator(".turn").nth(0).locator(".turn-status")).to_contain_text("stopped by")
        await expect(page.locator(".turn").nth(1).locator(".reply")).to_have_text("no, this instead")
        await expect(page.locator("#queue")).to_be_hidden()


async def test_queued_messages_are_edited_moved_and_deleted_in_all_tabs(chromium: Browser, tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with open_site(chromium, tmp_path, [reply_with_pause("busy", ".", gate), echo(), echo()]) as site:
        page = await site.open_page()
        other = await site.open_page()
        await send_message(page, "first")
        await expect(page.locator(".reply")).to_have_text("busy")
        for number, color in enumerate(("red", "green", "blue"), 1):
            await send_message(page, color, "Alt+Enter")
            await expect(page.locator("#queue li:not(.sending)")).to_have_count(number)
        await expect(other.locator("#queue .text")).to_have_text(["red", "green", "blue"])
        await page.click("#queue li:nth-child(2) [data-action=delete]")
        await expect(other.locator("#queue .text")).to_have_text(["red", "blue"])
        await other.click("#queue li:nth-child(2) [data-action=up]")
        await expect(page.locator("#queue .text")).to_have_text(["blue", "red"])
        await page.click("#queue li:nth-child(2) [data-action=edit]")
        await page.fill("#queue textarea", "crimson")
        await page.press("#queue textarea", "Enter")
        await expect(other.locator("#queue .text")).to_have_text(["blue", "crimson"])
        await expect(page.locator("#queue .receipt").nth(1)).to_contain_text("Queued")
        gate.set()
        for tab in (page, other):
            await expect(tab.locator(".user-message .text")).to_have_text(["first", "blue", "crimson"])
            await expect(tab.locator(".reply")).to_have_text(["busy.", "blue", "crimson"])
            await expect(tab.locator("#queue")).to_be_hidden()


async def test_a_late_response_to_a_change_does_not_replace_a_newer_queue(chromium: Browser, tmp_path: Path) -> None:
    gate, responses = asyncio.Event(), asyncio.Event()
    async with open_site(chromium, tmp_path, [reply_with_pause("busy", ".", gate), echo(), echo()]) as site:
        page = await site.open_page()
        other = await site.open_page()
        await send_message(page, "first")
        await expect(page.locator(".reply")).to_have_text("busy")
        for number, color in enumerate(("red", "green", "blue"), 1):
            await send_message(page, color, "Alt+Enter")
            await expect(page.locator("#queue li:not(.sending)")).to_have_count(number)

        async def delay_response(route: Route) -> None:
            response = await route.fetch()
            await responses.wait()
            await route.fulfill(response=response)

        await page.route("**/queue/*", delay_response)
        await page.click("#queue li:nth-child(2) [data-action=delete]")
        await expect(other.locator("#queue .text")).to_have_text(["red", "blue"])
        await other.click("#queue li:nth-child(2) [data-action=up]")
        await expect(page.locator("#queue .text")).to_have_text(["blue", "red"])
        responses.set()
        await expect(page.locator("#announcer p").last).to_have_text("Waiting message deleted.")
        await expect(page.locator("#queue .text")).to_have_text(["blue", "red"])
        gate.set()
        await expect(page.locator(".reply")).to_have_text(["busy.", "blue", "red"])


async def test_a_receipt_that_arrives_after_the_reply_is_not_announced(chromium: Browser, tmp_path: Path) -> None:
    response_gate = asyncio.Event()
    async with open_site(chromium, tmp_path, [echo()]) as site:
        page = await site.open_page()

        async def delay_response(route: Route) -> None:
            response = await route.fetch()
            await response_gate.wait()
            await route.fulfill(response=response)

        await page.route("**/messages", delay_response)
        await send_message(page, "ping")
        await expect(page.locator("#announcer p")).to_have_text(["Hark: ping"])
        await expect(page.locator("#queue .sending")).to_have_count(1)
        response_gate.set()
        await expect(page.locator("#queue .sending")).to_have_count(0)
        await expect(page.locator("#announcer p")).to_have_text(["Hark: ping"])


async def test_a_steered_message_is_shown_in_the_turn_that_it_joined(chromium: Browser, tmp_path: Path) -> None:
    release = tmp_path / "release"
    waiting_call = shell_call(f"until [ -e {release} ]; do sleep 0.05; done")
    async with open_site(chromium, tmp_path, [waiting_call, echo()], settings=ALL) as site:
        page = await site.open_page()
        await send_message(page, "go")
        await expect(page.locator(".call.running")).to_be_visible()
        await send_message(page, "and be brief", "Control+Enter")
        await site.wait_for_queued_message("and be brief")
        release.touch()
        await expect(page.locator(".turn .user-message .receipt")).to_contain_text(["Started", "Added to this turn"])
        await expect(page.locator(".reply")).to_contain_text("and be brief")
        await expect(page.locator(".turn")).to_have_count(1)


async def test_a_tool_call_shows_its_live_output_and_a_coloured_diff(chromium: Browser, tmp_path: Path) -> None:
    release = tmp_path / "release"
    diff = r"printf -- '--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n'"
    command = f"echo started; while [ ! -e {release} ]; do sleep 0.05; done; {diff}"
    async with open_site(chromium, tmp_path, [shell_call(command), text(["done"])], settings=ALL) as site:
        page = await site.open_page()
        await send_message(page, "go")
        await expect(page.locator(".call .output")).to_have_text("started\n")
        release.touch()
        await expect(page.locator(".output .added")).to_contain_text("+new")
        await expect(page.locator(".output .removed")).to_contain_text("-old")
        await expect(page.locator(".call .state")).to_have_text("done")


@pytest.mark.parametrize("method", ["button", "text"])
async def test_an_approval_is_given_by_button_or_text(chromium: Browser, tmp_path: Path, method: str) -> None:
    async with open_site(chromium, tmp_path, [shell_call("touch made.txt"), text(["done"])], settings=ASK) as site:
        page = await site.open_page()
        other = await site.open_page()
        await send_message(page, "make it")
        question = page.locator(".question.approval")
        await expect(question).to_contain_text("touch made.txt")
        await expect(page.locator("#activity")).to_have_text("Waiting for your answer")
        if method == "button":
            await question.locator("[data-choice=yes]").click()
        else:
            await page.reload()  # an open question is shown again
            await expect(question).to_contain_text("touch made.txt")
            await page.wait_for_timeout(600)  # text answers only a question that has been shown for half a second
            await page.press("#input", "y")
            await expect(page.locator("#input")).to_have_value("y")  # nothing is answered without Enter
            await page.press("#input", "Enter")
        for tab in (page, other):
            await expect(tab.locator(".reply")).to_have_text("done")
        await expect(other.locator(".question .state")).to_contain_text("Answered")


async def test_a_stop_withdraws_an_open_question_in_all_tabs(chromium: Browser, tmp_path: Path) -> None:
    async with open_site(chromium, tmp_path, [shell_call("touch made.txt")], settings=ASK) as site:
        page = await site.open_page()
        other = await site.open_page()
        await send_message(page, "make it")
        for tab in (page, other):
            await expect(tab.locator(".question.approval")).to_be_visible()
        await page.click("#stop")
        for tab in (page, other):
            await expect(tab.locator(".question.withdrawn .state")).to_contain_text("Withdrawn")
            await expect(tab.locator(".question button").first).to_be_hidden()


async def test_reloading_during_a_stream_neither_loses_nor_repeats_text(chromium: Browser, tmp_path: Path) -> None:
    words: list[str] = []
    is_enough = asyncio.Event()

    async def stream_words(exchange: Exchange) -> None:
        await exchange.begin()
        while not is_enough.is_set():
            words.append(f"w{len(words)} ")
            await exchange.send_chunks(TextChunk(words[-1]))
            await asyncio.sleep(0.02)
        await exchange.send_chunks(EndChunk())
        await exchange.end()

    async with open_site(chromium, tmp_path, [stream_words]) as site:
        page = await site.open_page()
        other = await site.open_page()
        await send_message(page, "count")
        await expect(page.locator(".reply")).to_contain_text("w20 ")
        for _ in range(3):
            await page.reload()
            await expect(page.locator(".reply")).to_contain_text("w20 ")
            await expect(page.locator(".turn.running")).to_have_count(1)
            await expect(page.locator(".reply")).to_contain_text(f"w{len(words) + 10} ")
        is_enough.set()
        for tab in (page, other):
            await expect(tab.locator(".turn-status")).to_contain_text("done")
            await expect(tab.locator(".reply")).to_have_text("".join(words).strip())
            await expect(tab.locator(".user-message")).to_have_count(1)


async def test_a_lost_connection_is_shown_and_messages_are_sent_after_reconnecting(
    chromium: Browser, tmp_path: Path
) -> None:
    async with open_site(chromium, tmp_path, [hanging(2), echo()]) as site:
        assert site.running
        assert site.hark
        page = await site.open_page()
        await send_message(page, "one")
        await expect(page.locator(".reply")).to_have_text("tok0 tok1")
        site.running.signal(signal.SIGKILL)
        await expect(page.locator("#connection")).to_contain_text("Connection lost. Trying again")
        await send_message(page, "meanwhile")
        await expect(page.locator("#queue .problem")).to_contain_text("Not sent yet")
        async with run_gateway(site.hark, port=int(site.base.rpartition(":")[2])):
            await expect(page.locator("#connection")).to_be_hidden()
            await expect(page.locator(".reply").last).to_have_text("meanwhile")
            await expect(page.locator(".user-message .text")).to_have_text(["one", "meanwhile"])
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


async def test_model_output_cannot_inject_html_or_scripts(chromium: Browser, tmp_path: Path) -> None:
    attack_reply = reply([TextChunk(ATTACKS), EndChunk()])
    call = shell_call("echo '<script>window.hit=1</script><img src=x onerror=window.hit=1>'")
    async with open_site(chromium, tmp_path, [call, attack_reply], settings=ALL) as site:
        page = await site.open_page()
        requested_urls: list[str] = []
        page.on("request", lambda request: requested_urls.append(request.url))
        await send_message(page, "<img src=x onerror=window.hit=1>")
        await expect(page.locator(".turn-status")).to_contain_text("done")
        injected = "#log :is(script, img, svg, iframe, object, style, [onclick], [onerror], [onload], [onmouseover])"
        await expect(page.locator(injected)).to_have_count(0)
        links = await page.locator(".reply a").evaluate_all("links => links.map(link => [link.protocol, link.rel])")
        assert {scheme for scheme, _ in links} == {"https:"}
        assert all("noopener" in relation for _, relation in links)
        for link in await page.locator(".reply .unsafe-link").all():
            await link.click()
        assert await page.evaluate("window.hit") is None
        assert all(url.startswith((site.base, "blob:")) for url in requested_urls)
        await page.reload()
        await expect(page.locator(".reply")).to_contain_text("<script>window.hit=1</script>")
        assert await page.evaluate("window.hit") is None


class ConstantTranscriber:
    """A fake transcriber that returns the same transcript for every recording."""

    def __init__(self, transcript: str = "what time is it") -> None:
        self.recordings: list[Audio] = []
        self._transcript = transcript

    def warm_up(self) -> None:
        pass

    async def transcribe(self, audio: Audio, progress: Callable[[str], None] = lambda _: None) -> Utterance:
        self.recordings.append(audio)
        return Utterance(self._transcript)

    async def close(self) -> None:
        pass


async def test_a_recording_becomes_a_message_and_a_discarded_recording_is_not_sent(
    chromium: Browser, tmp_path: Path
) -> None:
    transcriber = ConstantTranscriber()
    async with run_web_server(tmp_path, [echo()], transcriber=transcriber) as web:
        page = await GatewaySite(chromium, web.base, None, None).open_page(permissions=["microphone"])
        await page.click("#record")
        await expect(page.locator("#recording")).to_contain_text(re.compile(r"Recording [1-9]"))
        await page.click("#record")
        await expect(page.locator(".notice")).to_contain_text('🎙️ "what time is it"')
        await expect(page.locator(".user-message .text")).to_have_text("what time is it")
        await expect(page.locator(".reply")).to_have_text("what time is it")
        await page.click("#record")
        await expect(page.locator("#recording")).to_contain_text("Recording")
        await page.keyboard.press("Escape")
        await expect(page.locator("#recording")).to_have_text("")
        await page.close()
    assert [audio.data[:4] for audio in transcriber.recordings] == [
        b"\x1aE\xdf\xa3"
    ]  # WebM, and only the recording that was sent


async def test_attached_files_are_shown_and_reach_the_model(chromium: Browser, tmp_path: Path) -> None:
    pixel = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    async with open_site(chromium, tmp_path, [text(["seen"])]) as site:
        assert site.hark
        page = await site.open_page()
        await page.set_input_files(
            "#file-input",
            [
                {"name": "dot.png", "mimeType": "image/png", "buffer": pixel},
                {"name": "a.txt", "mimeType": "text/plain", "buffer": b"words"},
            ],
        )
        await expect(page.locator("#files li")).to_have_count(2)
        await send_message(page, "look")
        await expect(page.locator(".reply")).to_have_text("seen")
        await expect(page.locator(".file-names li")).to_have_text(["dot.png", "a.txt"])
        assert base64.b64encode(pixel).decode() in str(site.hark.server.requests[0].body)


async def test_sessions_are_listed_searched_and_created(chromium: Browser, tmp_path: Path) -> None:
    async with open_site(chromium, tmp_path, [echo(), echo()]) as site:
        page = await site.open_page("apples")
        await send_message(page, "tell me about apples")
        await expect(page.locator(".reply")).to_have_text("tell me about apples")
        await page.click("#new-session")
        await expect(page.locator(".greeting")).to_be_visible()
        await send_message(page, "and about pears")
        await expect(page.locator(".reply")).to_have_text("and about pears")
        await expect(page.locator("#session-list .rows").first.locator("li")).to_have_count(2)
        await page.fill("#search", "apples")
        await expect(page.locator("#session-list .hits li").first).to_contain_text("apples")
        await page.locator("#session-list .rows").first.locator("a").first.click()
        await expect(page.locator("#title")).to_contain_text("apples")
        await expect(page.locator(".user-message .text")).to_have_text("tell me about apples")


async def test_the_dashboard_shows_running_turns_interrupts_and_route_health(chromium: Browser, tmp_path: Path) -> None:
    async with open_site(chromium, tmp_path, [hanging(1)]) as site:
        page = await site.open_page()
        await send_message(page, "one")
        await expect(page.locator(".reply")).to_have_text("tok0")
        await page.click("#dashboard-link")
        await expect(page.locator("#dashboard .panel").nth(1)).to_contain_text("demo")
        await page.go_back()
        await page.click("#stop")
        await expect(page.locator(".turn-status")).to_contain_text("stopped")
        await page.click("#dashboard-link")
        await expect(page.locator(".histogram")).to_be_visible()
        await expect(page.locator("#dashboard")).to_contain_text("1 interrupt,")
        await expect(page.locator(".health.healthy")).to_have_text("healthy")


async def test_the_token_is_asked_for_once_per_browser(chromium: Browser, tmp_path: Path) -> None:
    async with open_site(chromium, tmp_path, [echo()], "--token", "a-long-token") as site:
        page = await site.open_page()
        await page.fill("#token", "wrong")
        await page.press("#token", "Enter")
        await expect(page.locator("#login-problem")).to_contain_text("The token is wrong.")
        await page.fill("#token", "a-long-token")
        await page.press("#token", "Enter")
        await expect(page.locator("#login")).to_be_hidden()
        await send_message(page, "hi")
        await expect(page.locator(".reply")).to_have_text("hi")
        other = await site.open_page()
        await expect(other.locator(".reply")).to_have_text("hi")


async def test_a_narrow_screen_needs_no_horizontal_scrolling(chromium: Browser, tmp_path: Path) -> None:
    long_reply = (
        "word " * 60 + "x" * 300 + "\n\n```\n" + "y" * 300 + "\n```\n\n| a | b |\n|---|---|\n| " + "z" * 90 + " | c |\n"
    )
    async with open_site(chromium, tmp_path, [reply([TextChunk(long_reply), EndChunk()])]) as site:
        page = await site.open_page(viewport={"width": 375, "height": 667}, has_touch=True, is_mobile=True)
        await send_message(page, "hi " + "q" * 200)
        await expect(page.locator(".turn-status")).to_contain_text("done")
        assert await page.evaluate("document.documentElement.scrollWidth") == 375
        await page.click("#open-drawer")
        await expect(page.locator("#session-list a")).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(page.locator("#drawer")).to_be_hidden()


async def test_turns_removed_by_a_command_disappear_in_all_tabs(chromium: Browser, tmp_path: Path) -> None:
    async with open_site(chromium, tmp_path, [echo(), echo()]) as site:
        page = await site.open_page()
        other = await site.open_page()
        await send_message(page, "remember this")
        await expect(other.locator(".reply")).to_have_text("remember this")
        await send_message(page, "/reset")
        for tab in (page, other):
            await expect(tab.locator(".turn")).to_have_count(0)
            await expect(tab.locator(".notice")).to_have_count(1)
        await send_message(page, "again")
        await expect(other.locator(".reply")).to_have_text("again")


async def test_messages_from_the_page_arrive_in_the_order_in_which_they_were_sent(
    chromium: Browser, tmp_path: Path
) -> None:
    gate = asyncio.Event()
    async with open_site(
        chromium, tmp_path, [reply_with_pause("busy", ".", gate), *(echo() for _ in range(8))]
    ) as site:
        page = await site.open_page()
        await send_message(page, "first")
        await expect(page.locator(".reply")).to_have_text("busy")
        texts = [f"number {number}" for number in range(8)]
        await page.evaluate(
            """texts => { for (const text of texts) {
                const field = document.getElementById("input");
                field.value = text;
                document.getElementById("queue-message").click();
            } }""",
            texts,
        )
        await expect(page.locator("#queue li:not(.sending) .text")).to_have_text(texts)
        gate.set()
        await expect(page.locator(".reply")).to_have_text(["busy.", *texts])


async def test_every_control_has_a_name_and_is_reachable_by_tab(chromium: Browser, tmp_path: Path) -> None:
    async with open_site(chromium, tmp_path, [shell_call("touch made.txt")], settings=ASK) as site:
        page = await site.open_page()
        await send_message(page, "make it")
        await expect(page.locator(".question.approval")).to_be_visible()
        await send_message(page, "later", "Alt+Enter")
        await expect(page.locator("#queue li:not(.sending)")).to_have_count(1)
        nameless = """() => [...document.querySelectorAll("button, input, textarea, a, summary")]
            .filter(node => node.checkVisibility() && !node.getAttribute("aria-label") && !node.textContent.trim())
            .map(node => node.outerHTML)"""
        assert await page.evaluate(nameless) == []
        await page.focus("#new-session")
        reached: set[str] = set()
        for _ in range(40):
            await page.keyboard.press("Tab")
            node = "document.activeElement"
            reached.add(await page.evaluate(f"{node}.id || {node}.dataset.choice || {node}.dataset.action || ''"))
        assert {
            "search",
            "stop",
            "log",
            "yes",
            "no",
            "delete",
            "edit",
            "input",
            "attach",
            "record",
            "send",
        } <= reached


async def test_a_turn_interrupted_by_a_crash_has_a_continue_button_that_works_once(
    chromium: Browser, tmp_path: Path
) -> None:
    async with open_hark(tmp_path, [hanging(2), text(["finished"])]) as hark:
        hark.configure(SERVE_SETTINGS)
        async with run_gateway(hark) as (base, running):
            page = await GatewaySite(chromium, base, running, hark).open_page()
            await send_message(page, "a long task")
            await hark.server.request(1)
            running.process.kill()
            await running.process.wait()
        async with run_gateway(hark) as (base, running):
            site = GatewaySite(chromium, base, running, hark)
            page, other = await site.open_page(), await site.open_page()
            button = page.get_by_role("button", name="Continue turn t1")
            await expect(other.get_by_role("button", name="Continue turn t1")).to_be_visible()
            assert len(hark.server.requests) == 1
            await button.click()
            await expect(page.locator(".reply").last).to_have_text("finished")
            await expect(button).to_have_count(0)
            await expect(other.get_by_role("button", name="Continue turn t1")).to_have_count(0)
    assert len(hark.server.requests) == 2


async def test_the_question_of_a_child_is_shown_survives_a_reload_and_can_be_answered(
    chromium: Browser, tmp_path: Path
) -> None:
    delegate = reply([CallChunk(0, "d", "delegate", '{"goal": "choose a name"}'), EndChunk("calls")])
    ask = reply(
        [CallChunk(0, "a", "ask", '{"question": "Which name?", "choices": ["red", "blue"]}'), EndChunk("calls")]
    )
    script = [delegate, ask, text(["it is blue"]), text(["done"])]
    async with open_site(chromium, tmp_path, script, settings='[approvals]\nmode = "all"\n') as site:
        page = await site.open_page()
        await send_message(page, "delegate it")
        await expect(page.locator(".question")).to_contain_text("A child asks: Which name?")
        await page.reload()
        await expect(page.locator(".question")).to_have_count(1)
        await page.locator(".question [data-choice=blue]").click()
        await expect(page.locator(".reply").last).to_have_text("done")
        await page.reload()
        await expect(page.locator(".question")).to_have_count(0)


async def test_a_stopped_turn_can_be_continued_after_a_reload_and_a_reset_can_be_undone(
    chromium: Browser, tmp_path: Path
) -> None:
    async with open_site(chromium, tmp_path, [hanging(2), text(["finished"])]) as site:
        page = await site.open_page()
        await send_message(page, "a long task")
        await expect(page.locator("#activity")).not_to_be_empty()
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("button", name="Continue turn t1")).to_be_visible()
        await page.reload()
        await page.get_by_role("button", name="Continue turn t1").click()
        await expect(page.locator(".reply").last).to_have_text("finished")
        await expect(page.get_by_role("button", name="Continue turn t1")).to_have_count(0)
        await send_message(page, "/reset")
        await expect(page.locator(".reply")).to_have_count(0)
        await send_message(page, "/undo reset")
        await expect(page.locator(".reply").last).to_have_text("finished")


async def test_escape_directly_after_enter_stops_a_message_that_is_still_being_sent(
    chromium: Browser, tmp_path: Path
) -> None:
    async with open_site(chromium, tmp_path, [echo()]) as site:
        page = await site.open_page()
        gate = asyncio.Event()

        async def delay_request(route: Route) -> None:
            await gate.wait()
            await route.continue_()

        await page.route("**/messages", delay_request)
        async with page.expect_request("**/messages"):
            await send_message(page, "a long task")
        await expect(page.locator("#stop")).to_have_text("■ Stop sending")
        async with page.expect_response("**/interrupt"):
            await page.press("#input", "Escape")
        gate.set()
        await expect(page.locator(".turn-status")).to_contain_text("stopped by user in")
        await expect(page.locator("#stop")).to_be_hidden()
        await page.unroute("**/messages")
        await send_message(page, "next")
        await expect(page.locator(".turn-status").nth(1)).to_contain_text("done")
