"""The way out: answered at once, bounded whatever is wedged, with a code that tells the truth."""

import asyncio
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.cli.command_line import Hark, Running, gated, opened, shell_call
from tests.fakes.models.behaviours import call, delta, events, hanging, text, tokens
from tests.waiting import at_most, until

ANSWER_SECONDS = at_most(0.1)
EXIT_SECONDS = at_most(1.0)


async def start_prompt(hark: Hark, *words: str) -> Running:
    """Start a prompt with nothing piped in, up to its request to the model."""
    count = len(hark.server.requests)
    running = await hark.start("-p", "go", *words)
    assert running.process.stdin is not None
    running.process.stdin.close()
    await hark.reached(count + 1, running)
    return running


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)],
    ids=lambda value: str(value),
)
async def test_a_signal_is_answered_at_once_and_ends_the_prompt(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    async with opened(tmp_path, [hanging(2)]) as hark:
        running = await start_prompt(hark, "--session", "demo")
        sent = running.signal(number)
        await running.said(f"{number.name}: stopping")
        answered = time.perf_counter() - sent
        ended = await running.end()
        left = time.perf_counter() - sent
        await asyncio.wait_for(hark.server.requests[0].left.wait(), at_most(1.0))
        shown = await hark.run("sessions", "show", "demo")
    assert ended.code == code
    assert answered < ANSWER_SECONDS
    assert left < EXIT_SECONDS
    assert f"[This turn was interrupted: {number.name}." in shown.out


async def test_what_was_said_before_the_signal_is_printed(tmp_path: Path) -> None:
    async with opened(tmp_path, [tokens(1000, rate=200)]) as hark:
        running = await hark.start("-p", "go", "--output", "events")
        assert running.process.stdin is not None
        running.process.stdin.close()
        await running.until("reply.delta")
        running.signal(signal.SIGINT)
        ended = await running.end()
    assert ended.code == 130
    assert ended.lines[-1]["type"] == "turn.ended"
    assert ended.lines[-1]["outcome"] == {"type": "interrupted", "source": "SIGINT"}


async def test_a_second_signal_ends_at_once_what_does_not_want_to_end(tmp_path: Path) -> None:
    command = "trap '' INT TERM; touch started; sleep 30 & wait; sleep 30"
    async with opened(tmp_path, [shell_call(command)]) as hark:
        running = await start_prompt(hark)
        await running.said("shell")
        running.signal(signal.SIGINT)
        await running.said("SIGINT: stopping")
        sent = running.signal(signal.SIGINT)
        code = await running.process.wait()
        took = time.perf_counter() - sent
        await running.end()
        await hark.run("-p", "sweep", "--max-steps", "1", "--timeout", "0.2")
    assert code == 130
    assert took < ANSWER_SECONDS


def is_listening(pid: int) -> bool:
    """Tell whether a process has a handler for SIGTERM: Python by itself has none."""
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    [caught] = [line.split()[1] for line in status if line.startswith("SigCgt:")]
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
async def test_a_signal_while_the_input_is_still_read_leaves_without_a_traceback(tmp_path: Path) -> None:
    async with opened(tmp_path) as hark:
        running = await hark.start("-p", "go")
        await until(lambda: is_listening(running.process.pid))
        running.signal(signal.SIGINT)
        await running.process.wait()
        ended = await running.end()
    assert (ended.code, ended.err) == (130, "")


async def test_a_signal_takes_back_the_own_message_and_leaves_the_turn_of_others_alone(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with opened(tmp_path, [gated(gate, "all done"), text(["never"])]) as hark:
        hark.configure('[delivery]\noneshot = "queue"\n')
        owner = await hark.start("--plain", "--session", "demo")
        owner.type("long work\n")
        await hark.reached(1, owner)
        guest = await hark.start("-p", "mine", "--session", "demo", "--output", "events")
        assert guest.process.stdin is not None
        guest.process.stdin.close()
        await guest.until('"state":"queued"')
        guest.signal(signal.SIGINT)
        ended = await guest.end()
        assert ended.code == 130
        gate.set()
        owned = await owner.end()
        assert owned.code == 0
        assert "all done" in owned.out
        assert len(hark.server.requests) == 1


async def test_a_signal_also_ends_what_others_had_queued_and_is_still_being_done(tmp_path: Path) -> None:
    async with opened(tmp_path, [text(["mine"]), hanging(2)]) as hark:
        await hark.run("send", "demo", "for later", "--delivery", "queue")
        running = await hark.start("-p", "now", "--session", "demo")
        assert running.process.stdin is not None
        running.process.stdin.close()
        await hark.reached(2, running)
        await running.until("mine")
        sent = running.signal(signal.SIGINT)
        ended = await running.end()
        left = time.perf_counter() - sent
    assert ended.code == 130
    assert left < EXIT_SECONDS


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_a_signal_ends_a_chat_and_settles_its_turn(tmp_path: Path, number: signal.Signals, code: int) -> None:
    async with opened(tmp_path, [hanging(3)]) as hark:
        running = await hark.start("--plain", "--session", "demo")
        running.type("go\n")
        await running.until("session demo")
        await hark.reached(1, running)
        sent = running.signal(number)
        await running.said("stopping")
        answered = time.perf_counter() - sent
        ended = await running.end()
        left = time.perf_counter() - sent
        shown = await hark.run("sessions", "show", "demo")
    assert ended.code == code
    assert (answered < ANSWER_SECONDS, left < EXIT_SECONDS) == (True, True)
    assert "Traceback" not in ended.err
    assert "[This turn was interrupted: shutdown." in shown.out


async def test_a_signal_that_its_starter_ignores_is_ignored(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with opened(tmp_path, [gated(gate, "I stayed")]) as hark:
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", f"trap '' HUP; exec {sys.executable} -m hark.cli.main -p go"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            env=hark.environment,
        )
        await hark.reached(1, Running(process))
        process.send_signal(signal.SIGHUP)
        gate.set()
        out, _ = await process.communicate()
    assert (process.returncode, out) == (0, b"well, I stayed\n")


WEDGED = """
import asyncio, sys, time
import hark
from hark.app.shutdown import Signals, Watchdog

async def wedge() -> str:
    "Hold the event loop itself, which no cancel can reach."
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


async def test_a_tool_that_holds_the_event_loop_can_not_hold_the_exit(tmp_path: Path) -> None:
    ask = events([delta(tool_calls=[call(0, "call_1", "wedge", "{}")]), delta("tool_calls")])
    async with opened(tmp_path, [ask]) as hark:
        running = await hark.start_python("-c", WEDGED, hark.server.base_url)
        await running.until("wedged")
        sent = running.signal(signal.SIGTERM)
        await running.said("SIGTERM: stopping")
        answered = time.perf_counter() - sent
        ended = await running.end()
        left = time.perf_counter() - sent
        again = await hark.run("sessions", "list", "--json")
    assert ended.code == 70
    assert answered < ANSWER_SECONDS
    assert 0.4 < left < at_most(1.0)
    assert "the exit took longer than 0.5 s and was forced" in ended.err
    assert again.json["sessions"][0]["session"] == "demo"
