"""`hark pause` holds all sessions across restarts. Messages are accepted and stored, and run after `hark unpause`."""

import asyncio
from pathlib import Path

from tests.cli.command_line import open_hark
from tests.cli.serve.gateway_fixture import ServedGateway, configure, serve_gateway
from tests.fakes.models.behaviours import echo, hanging, text


async def queued_texts(served: ServedGateway) -> list[str]:
    return [item["text"] for item in (await served.call("GET", "/api/sessions/demo/queue"))[1]["queue"]]


async def test_messages_sent_during_a_pause_run_after_it_across_a_kill_and_a_restart(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [text(["before"]), *[echo()] * 3]) as hark:
        configure(hark)
        async with serve_gateway(hark) as served:
            await served.say("demo", "first")
            await served.until_text("demo", "before")
            paused = await hark.run("pause")
            assert "Hark is paused." in paused.out
            status, receipt = await served.call(
                "POST", "/api/sessions/demo/messages", {"text": "one", "delivery": "queue"}
            )
            assert (status, receipt["state"]) == (202, "queued")
            assert await served.health() == "paused"
            assert (await served.call("POST", "/v1/chat/completions", {"messages": [], "model": "hark"}))[0] in (
                400,
                503,
            )
            served.running.process.kill()
            await served.running.process.wait()
        async with serve_gateway(hark) as served:
            await served.call("POST", "/api/sessions/demo/messages", {"text": "two", "delivery": "queue"})
            assert await queued_texts(served) == ["one", "two"]
            assert len(hark.server.requests) == 1
            assert "Hark is no longer paused." in (await hark.run("unpause")).out
            await hark.server.request(3)
            assert await served.health() == "ready"
    prompts = [request.body["messages"][-1]["content"] for request in hark.server.requests]
    assert prompts == ["first", "one", "two"]


async def test_a_pause_lets_running_turns_finish_or_stops_them(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [hanging(2), text(["continued"])]) as hark:
        configure(hark)
        async with serve_gateway(hark) as served:
            await served.say("demo", "long")
            await hark.server.request(1)
            assert "Running turns finish first: demo." in (await hark.run("pause")).out
            assert (await served.call("GET", "/api/status"))[1]["running"] != []
            assert "Stopped demo.t1. /continue in demo resumes it." in (await hark.run("pause", "--stop")).out
            await served.say("demo", "/continue")
            assert len(hark.server.requests) == 1
            await hark.run("unpause")
            await served.until_text("demo", "continued")
    assert "which was paused by the user" in hark.server.requests[1].body["messages"][-1]["content"]


async def test_a_prompt_is_not_sent_during_a_pause_and_doctor_reports_the_pause(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [echo()] * 20) as hark:
        assert "Hark is not paused." in (await hark.run("unpause")).out
        await hark.run("pause")
        ended, doctor = await asyncio.gather(hark.run("-p", "hello"), hark.run("doctor"))
        assert (ended.code, ended.out) == (1, "")
        assert "Hark is paused." in ended.err
        assert "The prompt was not sent." in ended.err
        assert "all sessions are paused; `hark unpause` ends the pause" in doctor.out
        await hark.run("unpause")
        assert (await hark.run("-p", "hello")).code == 0
