"""Exiting gives immediate feedback, takes bounded time even if a tool hangs, and returns an accurate exit code."""

import asyncio
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.cli.command_line import Hark, RunningCommand, gated, open_hark, shell_call
from tests.fakes.models.behaviours import call, delta, events, hanging, text, tokens
from tests.interrupts.interrupt_fixture import processes_in
from tests.surfaces.terminal.pseudo_terminal import open_pseudo_terminal
from tests.waiting import at_most, until

FEEDBACK_SECONDS = at_most(0.1)
EXIT_SECONDS = at_most(1.0)


async def start_prompt(hark: Hark, *arguments: str) -> RunningCommand:
    """Start `hark -p` with an empty stdin, and wait for its request to the model."""
    count = len(hark.server.requests)
    running = await hark.start("-p", "go", *arguments)
    assert running.process.stdin is not None
    running.process.stdin.close()
    await hark.wait_for_request(count + 1, running)
    return running


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=lambda value: str(value),
)
async def test_a_signal_is_acknowledged_immediately_and_ends_the_prompt(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    async with open_hark(tmp_path, [hanging(2)]) as hark:
        running = await start_prompt(hark, "--session", "demo")
        sent = running.signal(number)
        await running.wait_for_stderr(f"{number.name}: stopping")
        feedback_seconds = time.perf_counter() - sent
        ended = await running.wait_for_end()
        exit_seconds = time.perf_counter() - sent
        await asyncio.wait_for(hark.server.requests[0].disconnected.wait(), at_most(1.0))
        shown = await hark.run("sessions", "show", "demo")
    assert ended.code == code
    assert feedback_seconds < FEEDBACK_SECONDS
    assert exit_seconds < EXIT_SECONDS
    assert f"[This turn was interrupted: {number.name}." in shown.out


async def test_all_events_up_to_the_end_of_the_turn_are_printed_after_a_signal(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [tokens(1000, rate=200)]) as hark:
        running = await hark.start("-p", "go", "--output", "events")
        assert running.process.stdin is not None
        running.process.stdin.close()
        await running.wait_for_line("reply.delta")
        running.signal(signal.SIGINT)
        ended = await running.wait_for_end()
    assert ended.code == 130
    assert ended.lines[-1]["type"] == "turn.ended"
    assert ended.lines[-1]["outcome"] == {"type": "interrupted", "source": "SIGINT"}


async def test_a_second_signal_ends_a_process_that_does_not_exit_after_the_first(tmp_path: Path) -> None:
    command = "trap '' INT TERM; touch started; sleep 30 & wait; sleep 30"
    async with open_hark(tmp_path, [shell_call(command)]) as hark:
        running = await start_prompt(hark)
        await running.wait_for_stderr("shell")
        running.signal(signal.SIGINT)
        await running.wait_for_stderr("SIGINT: stopping")
        sent = running.signal(signal.SIGINT)
        code = await running.process.wait()
        took = time.perf_counter() - sent
        await running.wait_for_end()
        await hark.run("-p", "clean up", "--max-steps", "1", "--timeout", "0.2")
    assert code == 130
    assert took < at_most(0.3)


def handles_sigterm(pid: int) -> bool:
    """Return whether a process has a handler for SIGTERM. Python has none by default."""
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    [caught] = [line.split()[1] for line in status if line.startswith("SigCgt:")]
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
async def test_a_signal_while_hark_reads_its_input_exits_without_a_traceback(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        running = await hark.start("-p", "go")
        await until(lambda: handles_sigterm(running.process.pid))
        running.signal(signal.SIGINT)
        await running.process.wait()
        ended = await running.wait_for_end()
    assert (ended.code, ended.err) == (130, "")


async def test_a_signal_withdraws_the_prompt_and_does_not_stop_the_turn_of_another_process(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with open_hark(tmp_path, [gated(gate, "all done"), text(["never"])]) as hark:
        hark.configure('[delivery]\noneshot = "queue"\n')
        owner = await hark.start("--plain", "--session", "demo")
        owner.type("long work\n")
        await hark.wait_for_request(1, owner)
        follower = await hark.start("-p", "mine", "--session", "demo", "--output", "events")
        assert follower.process.stdin is not None
        follower.process.stdin.close()
        await follower.wait_for_line('"state":"queued"')
        follower.signal(signal.SIGINT)
        ended = await follower.wait_for_end()
        assert ended.code == 130
        gate.set()
        owned = await owner.wait_for_end()
        assert owned.code == 0
        assert "all done" in owned.out
        assert len(hark.server.requests) == 1


async def test_a_signal_also_stops_the_turn_of_a_message_queued_by_another_process(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [text(["mine"]), hanging(2)]) as hark:
        await hark.run("send", "demo", "for later", "--delivery", "queue")
        running = await hark.start("-p", "now", "--session", "demo")
        assert running.process.stdin is not None
        running.process.stdin.close()
        await hark.wait_for_request(2, running)
        await running.wait_for_line("mine")
        sent = running.signal(signal.SIGINT)
        ended = await running.wait_for_end()
        exit_seconds = time.perf_counter() - sent
    assert ended.code == 130
    assert exit_seconds < EXIT_SECONDS


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_a_signal_ends_a_chat_and_settles_its_turn(tmp_path: Path, number: signal.Signals, code: int) -> None:
    async with open_hark(tmp_path, [hanging(3)]) as hark:
        running = await hark.start("--plain", "--session", "demo")
        running.type("go\n")
        await running.wait_for_line("session demo")
        await hark.wait_for_request(1, running)
        sent = running.signal(number)
        await running.wait_for_stderr("stopping")
        feedback_seconds = time.perf_counter() - sent
        ended = await running.wait_for_end()
        exit_seconds = time.perf_counter() - sent
        shown = await hark.run("sessions", "show", "demo")
    assert ended.code == code
    assert (feedback_seconds < FEEDBACK_SECONDS, exit_seconds < EXIT_SECONDS) == (True, True)
    assert "Traceback" not in ended.err
    assert "[This turn was interrupted: shutdown." in shown.out


async def test_the_exit_code_names_the_signal_that_stopped_the_turn_when_another_follows(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [hanging(3)]) as hark:
        arguments = ("--plain", "--session", "demo")
        async with open_pseudo_terminal(hark.environment, arguments, directory=str(hark.home)) as terminal:
            terminal.type("go\r")
            await terminal.until("tok1")
            terminal.process.send_signal(signal.SIGINT)
            await terminal.until("stopping the turn")
            terminal.process.send_signal(signal.SIGTERM)
            assert await terminal.wait_for_exit() == 130


async def test_a_signal_that_the_parent_process_ignores_stays_ignored(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with open_hark(tmp_path, [gated(gate, "I stayed")]) as hark:
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", f"trap '' HUP; exec {sys.executable} -m hark.cli.main -p go"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            env=hark.environment,
        )
        await hark.wait_for_request(1, RunningCommand(process))
        process.send_signal(signal.SIGHUP)
        gate.set()
        out, _ = await process.communicate()
    assert (process.returncode, out) == (0, b"well, I stayed\n")


STUCK_PROGRAM = """
import asyncio, os, subprocess, sys, time
import hark
from hark.app.shutdown import Signals, Watchdog

async def wedge() -> str:
    "Hold the event loop itself, which no cancel can reach."
    subprocess.Popen(["sleep", "3600"], cwd=os.environ["HARK_HOME"], start_new_session=True)
    print("wedged", flush=True)
    while True:
        time.sleep(60)

async def main() -> None:
    route = {"base_url": sys.argv[1], "model": "fake"}
    async with hark.open(routes=[route], tools=[wedge], limits={"exit_seconds": 0.5}) as agent:
        signals = Signals(Watchdog(agent.settings.limits.exit_seconds), lambda name: None)
        signals.listen()
        await agent.session("demo").say("go")
        await agent.session("demo").idle()

asyncio.run(main())
"""


async def test_a_tool_that_blocks_the_event_loop_does_not_block_the_exit(tmp_path: Path) -> None:
    tool_call = events([delta(tool_calls=[call(0, "call_1", "wedge", "{}")]), delta("tool_calls")])
    async with open_hark(tmp_path, [tool_call]) as hark:
        running = await hark.start_python("-c", STUCK_PROGRAM, hark.server.base_url)
        await running.wait_for_line("wedged")
        sent = running.signal(signal.SIGTERM)
        await running.wait_for_stderr("SIGTERM: stopping")
        feedback_seconds = time.perf_counter() - sent
        ended = await running.wait_for_end()
        exit_seconds = time.perf_counter() - sent
        left = processes_in(hark.home)
        again = await hark.run("sessions", "list", "--json")
    assert ended.code == 70
    assert left == []
    assert feedback_seconds < FEEDBACK_SECONDS
    assert 0.4 < exit_seconds < at_most(1.0)
    assert "the exit took longer than 0.5 s and was forced" in ended.err
    assert again.json["sessions"][0]["session"] == "demo"
