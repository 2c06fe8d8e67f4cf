"""Going on after a restart or a crash: offered, never done by itself, and once however often it is asked for."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

from tests.cli.command_line import Hark, opened, shell_call
from tests.cli.serve.gateway import Served, configure, serving
from tests.fakes.models.behaviours import echo, hanging, text


async def cut(served: Served, session: str = "demo") -> list[str]:
    return (await served.call("GET", f"/api/sessions/{session}/transcript"))[1]["cut"]


async def told(served: Served, words: str) -> str:
    """Say a command; return its notice."""
    async with served.client.get("/api/sessions/demo/events") as stream:
        await served.say("demo", words)
        while True:
            line = (await stream.content.readline()).decode()
            assert line, "the events ended"
            event: dict[str, Any] = json.loads(line[5:]) if line.startswith("data:") else {}
            if event.get("code") == "continue":
                return event["text"]


async def cut_by_a_restart(hark: Hark) -> None:
    configure(hark, drain_seconds=0.1)
    async with serving(hark) as served:
        await served.say("demo", "a long task")
        await hark.server.request(1)
        served.running.signal(signal.SIGTERM)
        assert (await served.running.end()).code == 143


async def test_a_turn_that_a_restart_cut_is_gone_on_with_once(tmp_path: Path) -> None:
    async with opened(tmp_path, [hanging(2), text(["finished"]), echo()]) as hark:
        await cut_by_a_restart(hark)
        async with serving(hark) as served:
            assert await cut(served) == ["demo.t1"]
            assert len(hark.server.requests) == 1
            await asyncio.gather(*(served.say("demo", "/continue demo.t1") for _ in range(5)))
            await served.until_text("demo", "finished")
            assert await cut(served) == []
            assert await told(served, "/continue demo.t1") == "t1 has been gone on with already."
            assert (await told(served, "/continue")).startswith("There is nothing to go on with")
    assert len(hark.server.requests) == 2
    asked = hark.server.requests[1].body["messages"][-1]["content"]
    assert asked.startswith("Go on with t1, which was cut when the program ended.")


async def test_a_wish_to_go_on_that_was_made_twice_is_one_turn_across_restarts(tmp_path: Path) -> None:
    async with opened(tmp_path, [hanging(2), hanging(2), text(["finished"])]) as hark:
        await cut_by_a_restart(hark)
        async with serving(hark) as served:
            await served.say("demo", "/continue")
            await hark.server.request(2)
            served.running.process.kill()
            await served.running.process.wait()
        async with serving(hark) as served:
            assert await cut(served) == ["demo.t2"]  # the going on was cut, too; the first turn has been gone on with
            assert await told(served, "/continue t1") == "t1 has been gone on with already."
            await served.say("demo", "/continue")
            await served.until_text("demo", "finished")
    assert len(hark.server.requests) == 3


async def test_a_command_that_kills_the_gateway_is_never_run_again_by_itself(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    fatal = f"echo once >> {ran}; kill -9 $(cat {tmp_path}/pid)"
    async with opened(tmp_path, [shell_call(fatal), text(["I looked first"])]) as hark:
        hark.configure('[approvals]\nmode = "all"\n')
        configure(hark)
        async with serving(hark) as served:
            (tmp_path / "pid").write_text(str(served.running.process.pid))
            await served.say("demo", "do it")
            assert await served.running.process.wait() == -9
        for _ in range(3):  # however often it is started: it comes up, and begins nothing
            async with serving(hark) as served:
                assert await served.health() == "ready"
                assert await cut(served) == ["demo.t1"]
                assert (await served.call("GET", "/api/status"))[1]["running"] == []
        assert (ran.read_text(), len(hark.server.requests)) == ("once\n", 1)
        async with serving(hark) as served:
            await served.say("demo", "/continue")
            await served.until_text("demo", "I looked first")
        asked = hark.server.requests[1].body["messages"][-1]["content"]
    assert ran.read_text() == "once\n"
    assert "was started, and what it did is unknown: find out before you do anything like it again" in asked
    assert "kill -9" in asked


async def test_what_was_stopped_by_a_person_is_not_offered(tmp_path: Path) -> None:
    async with opened(tmp_path, [hanging(2)]) as hark:
        configure(hark)
        async with serving(hark) as served:
            await served.say("demo", "long")
            await hark.server.request(1)
            await served.call("POST", "/api/sessions/demo/interrupt", {})
            assert await cut(served) == []
            assert (await told(served, "/continue t1")).startswith("There is nothing to go on with: demo.t1")


async def test_a_session_that_is_opened_again_at_the_terminal_says_so(tmp_path: Path) -> None:
    async with opened(tmp_path, [hanging(2), text(["finished"])]) as hark:
        await cut_by_a_restart(hark)
        ended = await hark.run("--plain", "-c", typed="/continue\n")
        again = await hark.run("--plain", "-c", typed="")
    assert "hark: The last turn (t1) was cut when the program ended: /continue goes on with it." in ended.out
    assert "finished" in ended.out
    assert "was cut" not in again.out
