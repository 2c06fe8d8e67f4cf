"""Server-sent events: in order, from where a reader left, and a reader that holds nothing."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from hark.surfaces.web.live import recent_events
from hark.surfaces.web.live.events import event_pieces
from hark.surfaces.web.live.feed import Feed
from tests.cli.command_line import gated
from tests.fakes.models.behaviours import hanging, text, tokens
from tests.surfaces.web.web_fixture import served
from tests.waiting import until


async def test_events_are_numbered_and_two_readers_agree(tmp_path: Path) -> None:
    async with served(tmp_path, [tokens(50)]) as world, world.events("demo") as one, world.events("demo") as two:
        await world.say("demo", "go")
        await one.until("turn.ended")
        await two.until("turn.ended")
    assert one.seen == two.seen
    assert one.ids == [event["seq"] for event in one.seen]
    assert one.ids == sorted({number for number in one.ids if number is not None})
    assert {event["session"] for event in one.seen} == {"demo"}


@pytest.mark.parametrize("by_header", [True, False])
async def test_a_reader_resumes_without_gap_or_double(tmp_path: Path, by_header: bool) -> None:
    gate = asyncio.Event()
    async with served(tmp_path, [gated(gate, "the end")]) as world, world.events("demo") as whole:
        async with world.events("demo") as first:
            await world.say("demo", "go")
            await first.until("reply.delta")
        last = first.ids[-1]
        gate.set()
        await whole.until("turn.ended")
        options: dict[str, Any] = {} if by_header else {"params": {"last_event_id": str(last)}}
        async with world.events("demo", str(last) if by_header else "", **options) as second:
            await second.until("turn.ended")
    assert first.seen + second.seen == whole.seen


@pytest.mark.parametrize("last", ["1", "99999999999999", "what", "-4"])
async def test_a_place_that_is_not_kept_any_more_is_told_to_read_the_transcript(tmp_path: Path, last: str) -> None:
    async with served(tmp_path, [text(["one"]), text(["two"])]) as world:
        await world.say("demo", "go")
        await world.idle("demo")
        async with world.events("demo", last) as events:
            notice = await events.until("notice")
            assert notice["code"] == "resync"
            await world.say("demo", "on")
            await events.until("turn.ended")
        kinds = [event["type"] for event in events.seen]
        assert kinds[1] == "message.accepted"


async def test_a_reader_that_fell_out_of_the_ring_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_events, "KEPT_EVENTS", 20)
    async with served(tmp_path, [tokens(50)]) as world, world.events("demo") as reader:
        await world.say("demo", "go")
        first = await reader.until("message.accepted")
        await world.idle("demo")
        async with world.events("demo", first["seq"]) as events:
            notice = await events.until("notice")
        assert notice["code"] == "resync"


async def test_a_reader_that_leaves_detaches_and_the_turn_goes_on(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with served(tmp_path, [gated(gate, "all of it")]) as world:
        async with world.events("demo") as events:
            await world.say("demo", "go")
            await events.until("reply.delta")
        feed = world.place.feeds.known("demo")
        assert feed is not None
        await until(lambda: not feed.readers)
        gate.set()
        await world.idle("demo")
        assert (await world.messages("demo"))[-1]["text"] == "well, all of it"


async def test_a_reader_that_does_not_read_holds_nobody(tmp_path: Path) -> None:
    async with served(tmp_path, [tokens(20_000)]) as world:
        async with (
            aiohttp.ClientSession(read_bufsize=1024) as other,
            other.get(f"{world.base}/api/sessions/demo/events") as stuck,
            world.events("demo") as events,
        ):
            assert stuck.status == 200
            await world.say("demo", "go")
            end = await events.until("turn.ended")
        assert end["outcome"]["type"] == "completed"


async def test_silence_is_filled_with_comments(tmp_path: Path) -> None:
    async with served(tmp_path) as world:
        session = world.agent.session("demo", "api")
        feed = world.place.feeds.of(session)
        pieces = event_pieces("demo", feed, feed.kept.end, "", keep_alive_seconds=0.01)
        assert [await anext(pieces), await anext(pieces)] == [b"retry: 1000\n\n", b": still here\n\n"]
        await pieces.aclose()
        assert feed.readers == 0


async def test_the_transcript_tells_what_runs_so_that_a_reload_can_go_on(tmp_path: Path) -> None:
    async with served(tmp_path, [hanging(2)]) as world, world.events("demo") as events:
        await world.say("demo", "go")
        await events.until("reply.delta", text="tok1 ")
        _, body = await world.call("GET", "/api/sessions/demo/transcript")
        assert body["running"] == {"turn": "demo.t1", "text": "tok0 tok1 ", "questions": []}
        assert body["seq"] == events.ids[-1]
        await world.call("POST", "/api/sessions/demo/interrupt")
        async with world.events("demo", body["seq"]) as rest:
            await rest.until("turn.ended")


async def test_a_feed_that_nobody_uses_is_let_go(tmp_path: Path) -> None:
    async with served(tmp_path, [text(["one"])]) as world:
        feeds = world.place.feeds
        session = world.agent.session("demo", "api")
        feed: Feed = feeds.of(session)
        with feed.reading():
            feed.used_at = -1000.0
            feeds.let_go()
            await asyncio.sleep(0)
            assert feeds.known("demo") is feed
        feed.used_at = -1000.0
        feeds.let_go()
        await until(lambda: feeds.known("demo") is None)
        assert feed.is_over
