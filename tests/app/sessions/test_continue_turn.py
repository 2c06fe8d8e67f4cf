"""An interrupted turn is continued once: on request, or automatically after a restart if the settings say so."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

from tests.cli.command_line import Hark, open_hark, shell_call
from tests.cli.serve.gateway_fixture import ServedGateway, configure, serve_gateway
from tests.fakes.models.behaviours import echo, hanging, text
from tests.waiting import until


async def interrupted_turns(served: ServedGateway, session: str = "demo") -> list[str]:
    return (await served.call("GET", f"/api/sessions/{session}/transcript"))[1]["cut"]


async def run_continue(served: ServedGateway, command: str) -> str:
    """Send a /continue command and return its notice."""
    async with served.client.get("/api/sessions/demo/events") as stream:
        await served.say("demo", command)
        while True:
            line = (await stream.content.readline()).decode()
            assert line, "the events ended"
            event: dict[str, Any] = json.loads(line[5:]) if line.startswith("data:") else {}
            if event.get("code") == "continue":
                return event["text"]


async def interrupt_by_restart(hark: Hark) -> None:
    configure(hark, drain_seconds=0.1)
    async with serve_gateway(hark) as served:
        await served.say("demo", "a long task")
        await hark.server.request(1)
        served.running.signal(signal.SIGTERM)
        assert (await served.running.wait_for_end()).code == 143


async def test_a_turn_interrupted_by_a_restart_is_continued_once(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [hanging(2), text(["finished"]), echo()]) as hark:
        await interrupt_by_restart(hark)
        async with serve_gateway(hark) as served:
            assert await interrupted_turns(served) == ["demo.t1"]
            assert len(hark.server.requests) == 1
            await asyncio.gather(*(served.say("demo", "/continue demo.t1") for _ in range(5)))
            await served.until_text("demo", "finished")
            assert await interrupted_turns(served) == []
            assert await run_continue(served, "/continue demo.t1") == "t1 has already been continued."
            assert (await run_continue(served, "/continue")).startswith("Nothing to continue")
    assert len(hark.server.requests) == 2
    prompt = hark.server.requests[1].body["messages"][-1]["content"]
    assert prompt.startswith("Continue t1, which was interrupted when the program ended.")


async def test_a_turn_is_continued_only_once_across_restarts(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [hanging(2), hanging(2), text(["finished"])]) as hark:
        await interrupt_by_restart(hark)
        async with serve_gateway(hark) as served:
            await served.say("demo", "/continue")
            await hark.server.request(2)
            served.running.process.kill()
            await served.running.process.wait()
        async with serve_gateway(hark) as served:
            # the continuing turn was interrupted too; the first turn has already been continued
            assert await interrupted_turns(served) == ["demo.t2"]
            assert await run_continue(served, "/continue t1") == "t1 has already been continued."
            await served.say("demo", "/continue")
            await served.until_text("demo", "finished")
    assert len(hark.server.requests) == 3


async def test_a_command_that_kills_the_gateway_is_never_rerun_automatically(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    fatal = f"echo once >> {ran}; kill -9 $(cat {tmp_path}/pid)"
    async with open_hark(tmp_path, [shell_call(fatal), text(["I looked first"])]) as hark:
        hark.configure('[approvals]\nmode = "all"\n')
        configure(hark)
        async with serve_gateway(hark) as served:
            (tmp_path / "pid").write_text(str(served.running.process.pid))
            await served.say("demo", "do it")
            assert await served.running.process.wait() == -9
        for _ in range(3):  # the gateway starts every time and starts no turn
            async with serve_gateway(hark) as served:
                assert await served.health() == "ready"
                assert await interrupted_turns(served) == ["demo.t1"]
                assert (await served.call("GET", "/api/status"))[1]["running"] == []
        assert (ran.read_text(), len(hark.server.requests)) == ("once\n", 1)
        async with serve_gateway(hark) as served:
            await served.say("demo", "/continue")
            await served.until_text("demo", "I looked first")
        prompt = hark.server.requests[1].body["messages"][-1]["content"]
    assert ran.read_text() == "once\n"
    assert "was started, and its effect is unknown: check it before you do anything similar again" in prompt
    assert "kill -9" in prompt


async def test_a_turn_stopped_by_a_user_is_not_offered_but_can_be_continued(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [hanging(2), text(["finished"])]) as hark:
        configure(hark)
        async with serve_gateway(hark) as served:
            await served.say("demo", "long")
            await hark.server.request(1)
            await served.call("POST", "/api/sessions/demo/interrupt", {})
            assert await interrupted_turns(served) == []
            assert (await run_continue(served, "/continue t7")).startswith("Nothing to continue: demo.t7")
            assert await run_continue(served, "/continue t1") == "t2 continues t1."
            await served.until_text("demo", "finished")
    prompt = hark.server.requests[1].body["messages"][-1]["content"]
    assert prompt.startswith("Continue t1, which was stopped by the user.")


async def test_a_turn_that_a_restart_or_crash_cut_is_continued_automatically_if_the_settings_say_so(
    tmp_path: Path,
) -> None:
    script = [hanging(2), hanging(2), hanging(2), text(["finished"]), text(["later"])]
    async with open_hark(tmp_path, script) as hark:
        hark.configure('[delivery]\nafter_restart = "continue"\n')
        await interrupt_by_restart(hark)
        async with serve_gateway(hark) as served:
            await hark.server.request(2)  # the continuation started without a message
            served.running.process.kill()
            await served.running.process.wait()
        async with serve_gateway(hark) as served:
            # a continuation that crashed is offered, so that a fatal command can't run in a loop
            assert await interrupted_turns(served) == ["demo.t2"]
            assert len(hark.server.requests) == 2
            await served.say("demo", "/continue")
            await hark.server.request(3)
            served.running.signal(signal.SIGTERM)
            await served.running.wait_for_end()
        async with serve_gateway(hark) as served:
            await served.until_text("demo", "finished")
            assert await interrupted_turns(served) == []
    assert [request.body["messages"][-1]["content"].split(",")[0] for request in hark.server.requests[1:]] == [
        "Continue t1",
        "Continue t2",
        "Continue t3",
    ]


async def test_a_reopened_session_offers_to_continue_the_interrupted_turn(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [hanging(2), text(["finished"])]) as hark:
        await interrupt_by_restart(hark)
        ended = await hark.run("--plain", "-c", typed="/continue\n")
        again = await hark.run("--plain", "-c", typed="")
    assert "hark: The last turn (t1) was interrupted when the program ended. /continue resumes it." in ended.out
    assert "finished" in ended.out
    assert "was interrupted" not in again.out


async def test_a_paused_turn_survives_a_kill_and_continues_before_the_queue_without_repeating_a_call(
    tmp_path: Path,
) -> None:
    script = [shell_call("echo ran >> log; until [ -e go ]; do sleep 0.02; done"), text(["resumed"]), text(["next"])]
    for is_killed_in_the_step in (True, False):
        home = tmp_path / str(is_killed_in_the_step)
        home.mkdir()
        async with open_hark(home, script) as hark:
            hark.configure('[approvals]\nmode = "all"\n[delivery]\nafter_restart = "continue"\n')
            configure(hark)
            async with serve_gateway(hark) as served:
                await served.say("demo", "do it")
                log = hark.folder / "log"
                await until(log.exists)
                await served.call("POST", "/api/sessions/demo/messages", {"text": "queued", "delivery": "queue"})
                await served.say("demo", "/pause")
                if not is_killed_in_the_step:
                    (hark.folder / "go").touch()
                    await until(lambda: _is_idle(served))
                served.running.process.kill()
                await served.running.process.wait()
            async with serve_gateway(hark) as served:
                queue = (await served.call("GET", "/api/sessions/demo/queue"))[1]["queue"]
                assert [(item["text"], item["state"]) for item in queue] == [("queued", "held")]
                assert len(hark.server.requests) == 1
                await served.say("demo", "/continue")
                await served.until_text("demo", "next")
        prompts = [request.body["messages"][-1]["content"] for request in hark.server.requests]
        assert [prompt.split(",")[0] for prompt in prompts] == ["do it", "Continue t1", "queued"]
        assert log.read_text() == "ran\n"


async def _is_idle(served: ServedGateway) -> bool:
    return (await served.call("GET", "/api/status"))[1]["running"] == []
