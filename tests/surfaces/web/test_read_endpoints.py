"""Read-only endpoints: sessions, search, timelines, status, metrics, health and the OpenAPI document."""

import re
from pathlib import Path

from yarl import URL

from tests.cli.command_line import shell_call
from tests.fakes.models.behaviours import hanging, text
from tests.surfaces.web.web_fixture import run_web_server


async def test_sessions_are_listed_and_searched(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [text(["a heron"]), text(["b"])]) as web:
        await web.say("birds", "what is tall and grey?")
        await web.idle("birds")
        await web.say("other", "hello")
        await web.idle("other")
        _, body = await web.call("GET", "/api/sessions")
        assert [row["session"] for row in body["sessions"]] == ["other", "birds"]
        row = body["sessions"][1]
        assert (row["title"], row["turns"], row["is_open"]) == ("what is tall and grey?", 1, False)
        _, body = await web.call("GET", "/api/sessions", params={"q": "TALL", "limit": "1"})
        assert [row["session"] for row in body["sessions"]] == ["birds"]
        _, body = await web.call("GET", "/api/search", params={"q": "heron"})
        assert body["hits"][0]["session"] == "birds"
        assert (await web.call("GET", "/api/sessions", params={"limit": "many"}))[0] == 400


async def test_a_timeline_shows_the_parts_and_the_interrupt_of_a_turn(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [hanging(1)]) as web, web.events("demo") as events:
        await web.say("demo", "go")
        await events.wait_for("reply.delta")
        await web.call("POST", "/api/sessions/demo/interrupt", {"source": "ada"})
        status, timeline = await web.call("GET", "/api/turns/demo.t1/timeline")
        assert status == 200
        assert timeline["outcome"] == {"type": "interrupted", "source": "ada"}
        assert timeline["interrupted_at"] > 0
        assert timeline["parts"][0]["kind"] == "model"
        for name in ("demo.t2", "nobody.t1", "t1", "..", "demo"):
            assert (await web.call("GET", f"/api/turns/{name}/timeline"))[0] == 404


async def test_reading_a_transcript_does_not_load_the_session(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [text(["one"])]) as web:
        await web.say("demo", "hi")
        await web.idle("demo")
    async with run_web_server(tmp_path) as web:
        assert [row["text"] for row in await web.messages("demo")] == ["hi", "one"]
        assert await web.messages("nobody") == []
        assert not web.agent.is_open("demo")


async def test_status_and_metrics_report_the_running_turn_and_no_message_text(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [hanging(1)]) as web:
        await web.say("demo", "secret words")
        await web.model.request(1)
        _, body = await web.call("GET", "/api/status")
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
        _, headers, metrics = await web.fetch("/metrics")
    assert headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "secret" not in metrics
    assert "hark_turns_running 1\n" in metrics
    assert 'hark_event_loop_lag_seconds{quantile="0.99"}' in metrics
    line = re.compile(r'# (HELP|TYPE) \w+ .+|\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? [0-9.e+-]+')
    assert all(line.fullmatch(row) for row in metrics.splitlines())


async def test_the_health_check_reports_whether_new_turns_can_start(tmp_path: Path) -> None:
    async with run_web_server(tmp_path) as web:
        assert await web.call("GET", "/healthz") == (200, {"status": "ready"})
        await web.agent.drain()
        assert await web.call("GET", "/healthz") == (503, {"status": "draining"})
        receipt = await web.say("demo", "for later", id="m1")
        assert receipt["state"] == "queued"
        assert (await web.say("demo", "for later", id="m1"))["state"] == "duplicate"
        assert (await web.call("GET", "/api/sessions/demo/queue"))[1]["queue"][0]["id"] == "m1"
        assert web.model.requests == []


async def test_the_openapi_document_and_the_page_files_are_served(tmp_path: Path) -> None:
    async with run_web_server(tmp_path) as web:
        _, document = await web.call("GET", "/openapi.json")
        assert "/api/sessions/{session}/messages" in document["paths"]
        _, headers, _ = await web.fetch("/")
        assert headers["content-type"].startswith("text/html")
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        for name in ("../app.py", "%2e%2e/app.py", "..%2fapp.py", "nothing.js", "%00"):
            assert (await web.fetch(URL(f"/page/{name}", encoded=True)))[0] == 404


async def test_a_transcript_shows_a_running_turn_that_was_started_elsewhere(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [hanging(1)]) as web:
        await web.agent.session("demo").say("go", author="schedule daily")
        await web.model.request(1)
        _, body = await web.call("GET", "/api/sessions/demo/transcript")
        assert (body["running"]["turn"], body["seq"]) == ("demo.t1", None)
        async with web.events("demo"):
            _, body = await web.call("GET", "/api/sessions/demo/transcript")
            assert body["running"]["turn"] == "demo.t1"
        await web.call("POST", "/api/sessions/demo/interrupt", {"turn": "demo.t1"})
        _, body = await web.call("GET", "/api/sessions/demo/transcript")
        assert body["running"] is None


async def test_a_question_asked_before_the_client_connected_can_be_answered(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [shell_call("rm -rf /nowhere"), text(["fine"])]) as web:
        session = web.agent.session("demo")
        events = session.events()
        await session.say("clean up")
        await anext(event async for event in events if event.type == "question.asked")
        async with web.events("demo") as stream:
            _, body = await web.call("GET", "/api/sessions/demo/transcript")
            [asked] = body["running"]["questions"]
            assert "rm -rf /nowhere" in asked["text"]
            path = f"/api/sessions/demo/answers/{asked['question']}"
            assert (await web.call("POST", path, {"choice": "no"}))[0] == 200
            await stream.wait_for("turn.ended")
