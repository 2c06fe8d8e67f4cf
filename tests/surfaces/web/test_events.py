"""Server-sent events: order, resuming, and readers that are slow or disconnect."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from hark.surfaces.web.live import recent_events
from hark.surfaces.web.live.events import encode_events
from hark.surfaces.web.live.feed import Feed
from tests.cli.command_line import gated
from tests.fakes.models.behaviours import hanging, text, tokens
from tests.surfaces.web.web_fixture import run_web_server
from tests.waiting import until


async def test_events_are_numbered_and_the_same_for_all_readers(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [tokens(50)]) as web, web.events("demo") as one, web.events("demo") as two:
        await web.say("demo", "go")
        await one.wait_for("turn.ended")
        await two.wait_for("turn.ended")
    assert one.events == two.events
    assert one.ids == [event["seq"] for event in one.events]
    assert one.ids == sorted({number for number in one.ids if number is not None})
    assert {event["session"] for event in one.events} == {"demo"}


@pytest.mark.parametrize("by_header", [True, False])
async def test_a_reader_resumes_without_missing_or_repeated_events(tmp_path: Path, by_header: bool) -> None:
    gate = asyncio.Event()
    async with run_web_server(tmp_path, [gated(gate, "the end")]) as web, web.events("demo") as all_events:
        async with web.events("demo") as first:
            await web.say("demo", "go")
            await first.wait_for("reply.delta")
        last = first.ids[-1]
        gate.set()
        await all_events.wait_for("turn.ended")
        options: dict[str, Any] = {} if by_header else {"params": {"last_event_id": str(last)}}
        async with web.events("demo", str(last) if by_header else "", **options) as second:
            await second.wait_for("turn.ended")
    assert first.events + second.events == all_events.events


@pytest.mark.parametrize("last", ["1", "99999999999999", "what", "-4"])
async def test_an_unknown_last_event_id_is_answered_with_a_resync_notice(tmp_path: Path, last: str) -> None:
    async with run_web_server(tmp_path, [text(["one"]), text(["two"])]) as web:
        await web.say("demo", "go")
        await web.idle("demo")
        async with web.events("demo", last) as events:
            notice = await events.wait_for("notice")
            assert notice["code"] == "resync"
            await web.say("demo", "on")
            await events.wait_for("turn.ended")
        types = [event["type"] for event in events.events]
        assert types[1] == "message.accepted"


async def test_a_reader_that_missed_more_events_than_buffered_gets_a_resync_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent_events, "MAX_EVENTS", 20)
    async with run_web_server(tmp_path, [tokens(50)]) as web, web.events("demo") as reader:
        await web.say("demo", "go")
        first = await reader.wait_for("message.accepted")
        await web.idle("demo")
        async with web.events("demo", first["seq"]) as events:
            notice = await events.wait_for("notice")
        assert notice["code"] == "resync"


async def test_a_turn_continues_when_its_reader_disconnects(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with run_web_server(tmp_path, [gated(gate, "all of it")]) as web:
        async with web.events("demo") as events:
            await web.say("demo", "go")
            await events.wait_for("reply.delta")
        feed = web.context.feeds.get("demo")
        assert feed is not None
        await until(lambda: not feed.readers)
        gate.set()
        await web.idle("demo")
        assert (await web.messages("demo"))[-1]["text"] == "well, all of it"


async def test_a_reader_that_stops_reading_delays_no_other_reader(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [tokens(20_000)]) as web:
        async with (
            aiohttp.ClientSession(read_bufsize=1024) as other,
            other.get(f"{web.base}/api/sessions/demo/events") as stuck,
            web.events("demo") as events,
        ):
            assert stuck.status == 200
            await web.say("demo", "go")
            end = await events.wait_for("turn.ended")
        assert end["outcome"]["type"] == "completed"


async def test_an_idle_stream_sends_keep_alive_comments(tmp_path: Path) -> None:
    async with run_web_server(tmp_path) as web:
        session = web.agent.session("demo", "api")
        feed = web.context.feeds.get_or_start(session)
        chunks = encode_events("demo", feed, feed.buffer.end, "", keep_alive_seconds=0.01)
        assert [await anext(chunks), await anext(chunks)] == [b"retry: 1000\n\n", b": still here\n\n"]
        await chunks.aclose()
        assert feed.readers == 0


async def test_the_transcript_contains_the_running_turn_and_the_event_number_to_resume_from(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [hanging(2)]) as web, web.events("demo") as events:
        await web.say("demo", "go")
        await events.wait_for("reply.delta", text="tok1 ")
        _, body = await web.call("GET", "/api/sessions/demo/transcript")
        assert body["running"] == {"turn": "demo.t1", "text": "tok0 tok1 ", "questions": []}
        assert body["seq"] == events.ids[-1]
        await web.call("POST", "/api/sessions/demo/interrupt")
        async with web.events("demo", body["seq"]) as remaining:
            await remaining.wait_for("turn.ended")


async def test_an_idle_feed_without_readers_is_closed(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [text(["one"])]) as web:
        feeds = web.context.feeds
        session = web.agent.session("demo", "api")
        feed: Feed = feeds.get_or_start(session)
        with feed.reading():
            feed.last_used_at = -1000.0
            feeds.close_idle()
            await asyncio.sleep(0)
            assert feeds.get("demo") is feed
        feed.last_used_at = -1000.0
        feeds.close_idle()
        await until(lambda: feeds.get("demo") is None)
        assert feed.is_closed
