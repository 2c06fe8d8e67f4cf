"""What there is to read: sessions, search, timelines, status, metrics, health, the API's own description."""

import re
from pathlib import Path

from yarl import URL

from tests.cli.command_line import shell_call
from tests.fakes.models.behaviours import hanging, text
from tests.surfaces.web.web_fixture import served


async def test_sessions_are_listed_and_searched(tmp_path: Path) -> None:
    async with served(tmp_path, [text(["a heron"]), text(["b"])]) as world:
        await world.say("birds", "what is tall and grey?")
        await world.idle("birds")
        await world.say("other", "hello")
        await world.idle("other")
        _, body = await world.call("GET", "/api/sessions")
        assert [row["session"] for row in body["sessions"]] == ["other", "birds"]
        row = body["sessions"][1]
        assert (row["title"], row["turns"], row["is_open"]) == ("what is tall and grey?", 1, False)
        _, body = await world.call("GET", "/api/sessions", params={"q": "TALL", "limit": "1"})
        assert [row["session"] for row in body["sessions"]] == ["birds"]
        _, body = await world.call("GET", "/api/search", params={"q": "heron"})
        assert body["hits"][0]["session"] == "birds"
        assert (await world.call("GET", "/api/sessions", params={"limit": "many"}))[0] == 400


async def test_a_timeline_tells_where_the_time_went(tmp_path: Path) -> None:
    async with served(tmp_path, [hanging(1)]) as world, world.events("demo") as events:
        await world.say("demo", "go")
        await events.until("reply.delta")
        await world.call("POST", "/api/sessions/demo/interrupt", {"source": "ada"})
        status, story = await world.call("GET", "/api/turns/demo.t1/timeline")
        assert status == 200
        assert story["outcome"] == {"type": "interrupted", "source": "ada"}
        assert story["interrupted_at"] > 0
        assert story["parts"][0]["kind"] == "model"
        for name in ("demo.t2", "nobody.t1", "t1", "..", "demo"):
            assert (await world.call("GET", f"/api/turns/{name}/timeline"))[0] == 404


async def test_the_transcript_of_a_session_that_sleeps_does_not_wake_it(tmp_path: Path) -> None:
    async with served(tmp_path, [text(["one"])]) as world:
        await world.say("demo", "hi")
        await world.idle("demo")
    async with served(tmp_path) as world:
        assert [row["text"] for row in await world.messages("demo")] == ["hi", "one"]
        assert await world.messages("nobody") == []
        assert not world.agent.is_open("demo")


async def test_status_and_metrics_tell_how_all_of_it_stands(tmp_path: Path) -> None:
    async with served(tmp_path, [hanging(1)]) as world:
        await world.say("demo", "secret words")
        await world.model.request(1)
        _, body = await world.call("GET", "/api/status")
        assert body["status"] == "ready"
        assert body["sessions"] == {"open": 1, "running": 1}
        assert body["running"] == [{"session": "demo", "turn": "demo.t1"}]
        assert body["routes"][0] | {"model": ""} == {
            "name": "main",
            "model": "",
            "is_well": True,
            "failures": 0,
            "rests_seconds": 0.0,
        }
        assert set(body) >= {"interrupts", "mcp", "lag_ms", "cost_usd", "tokens"}
        _, headers, metrics = await world.fetch("/metrics")
    assert headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "secret" not in metrics
    assert "hark_turns_running 1\n" in metrics
    assert 'hark_event_loop_lag_seconds{quantile="0.99"}' in metrics
    line = re.compile(r'# (HELP|TYPE) \w+ .+|\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? [0-9.e+-]+')
    assert all(line.fullmatch(row) for row in metrics.splitlines())


async def test_health_says_whether_new_turns_are_begun(tmp_path: Path) -> None:
    async with served(tmp_path) as world:
        assert await world.call("GET", "/healthz") == (200, {"status": "ready"})
        await world.agent.drain()
        assert await world.call("GET", "/healthz") == (503, {"status": "draining"})
        kept = await world.say("demo", "for later", id="m1")
        assert kept["state"] == "queued"
        assert (await world.say("demo", "for later", id="m1"))["state"] == "duplicate"
        assert (await world.call("GET", "/api/sessions/demo/queue"))[1]["queue"][0]["id"] == "m1"
        assert world.model.requests == []


async def test_the_api_describes_itself_and_the_page_is_there(tmp_path: Path) -> None:
    async with served(tmp_path) as world:
        _, document = await world.call("GET", "/openapi.json")
        assert "/api/sessions/{session}/messages" in document["paths"]
        _, headers, _ = await world.fetch("/")
        assert headers["content-type"].startswith("text/html")
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        for name in ("../app.py", "%2e%2e/app.py", "..%2fapp.py", "nothing.js", "%00"):
            assert (await world.fetch(URL(f"/page/{name}", encoded=True)))[0] == 404


async def test_who_comes_in_the_midst_of_a_turn_that_was_begun_elsewhere_sees_it(tmp_path: Path) -> None:
    async with served(tmp_path, [hanging(1)]) as world:
        await world.agent.session("demo").say("go", author="schedule daily")
        await world.model.request(1)
        _, body = await world.call("GET", "/api/sessions/demo/transcript")
        assert (body["running"]["turn"], body["seq"]) == ("demo.t1", None)
        async with world.events("demo"):
            _, body = await world.call("GET", "/api/sessions/demo/transcript")
            assert body["running"]["turn"] == "demo.t1"
        await world.call("POST", "/api/sessions/demo/interrupt", {"turn": "demo.t1"})
        _, body = await world.call("GET", "/api/sessions/demo/transcript")
        assert body["running"] is None


async def test_who_comes_when_something_is_asked_already_can_answer_it(tmp_path: Path) -> None:
    async with served(tmp_path, [shell_call("rm -rf /nowhere"), text(["fine"])]) as world:
        session = world.agent.session("demo")
        events = session.events()
        await session.say("clean up")
        await anext(event async for event in events if event.type == "question.asked")
        async with world.events("demo") as stream:
            _, body = await world.call("GET", "/api/sessions/demo/transcript")
            [asked] = body["running"]["questions"]
            assert "rm -rf /nowhere" in asked["text"]
            path = f"/api/sessions/demo/answers/{asked['question']}"
            assert (await world.call("POST", path, {"choice": "no"}))[0] == 200
            await stream.until("turn.ended")
