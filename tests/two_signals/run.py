"""One run: starts an entry point with stubborn work, sends it two signals, and checks how it ended."""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

from tests.cli.command_line import Hark, open_hark, shell_call
from tests.interrupts.interrupt_fixture import is_alive
from tests.surfaces.terminal.pseudo_terminal import PseudoTerminal
from tests.two_signals.plan import UNORDERED_SECONDS, Plan
from tests.two_signals.program import Program, start_program
from tests.waiting import at_most, until

DEFAULT_MODES = {"?7", "?25"}
PYTHON_START_ERROR = "Fatal Python error: init_"  # a SIGINT before Python runs any code of Hark; the exit code is 1
SETTINGS = """[approvals]
mode = "all"
[serve]
drain_seconds = 2
[mcp.servers.stubborn]
command = "{python}"
args = ["{script}"]
"""
# Ignores signals and the end of its input, and starts a daemon without an environment.
MCP_SERVER = """
import json, signal, subprocess, sys, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
subprocess.Popen(["sleep", "3600"], env={}, start_new_session=True)
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        answer = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        if request["method"] == "tools/list":
            answer = {"tools": []}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": answer}), flush=True)
time.sleep(3600)
"""
# A loop that ignores signals, a daemon without an environment, and a process with only the cookie in common.
COMMAND = (
    "trap '' INT TERM HUP; (setsid env -i sleep 3601 &); setsid sleep 3602 & touch started; while :; do sleep 1; done"
)


async def run_plan(plan: Plan, folder: Path) -> list[str]:
    """Carry out the plan and return the problems."""
    async with open_hark(folder, [shell_call(COMMAND) for _ in range(3)]) as hark:
        script = hark.home / "server.py"
        hark.configure(SETTINGS.format(python=sys.executable, script=script))
        script.write_text(MCP_SERVER)
        if plan.entry_point == "serve":
            await hark.run("send", "demo", "go")
        async with start_program(plan, hark) as program:
            is_ordered = await _send_events(plan, hark, program)
            try:
                async with asyncio.timeout(at_most(2.0)):
                    code = await program.process.wait()
            except TimeoutError:
                return [f"still running {at_most(2.0):g} s later"]
            return await _find_problems(plan, hark, program, code, plan.allowed_codes(is_ordered))


async def _send_events(plan: Plan, hark: Hark, program: Program) -> bool:
    """Send both events. Return whether the first was delivered before the second was sent."""
    if plan.phase != "startup":
        await until((hark.home / "started").exists, shows=lambda: program.last_text)
    await asyncio.sleep(plan.delay_seconds)
    program.apply(plan.events[0])
    await asyncio.sleep(plan.gap_seconds)
    is_ordered = not program.has_pending_signal  # the kernel forgets the order of pending signals
    program.apply(plan.events[1])
    if plan.may_continue:
        await asyncio.sleep(1.0)
        program.apply("SIGTERM")
        await asyncio.sleep(UNORDERED_SECONDS)
        program.apply("SIGTERM")
    return is_ordered


async def _find_problems(plan: Plan, hark: Hark, program: Program, code: int, allowed: set[int]) -> list[str]:
    problems: list[str] = []
    left = find_processes(hark.home)
    if left:
        await asyncio.sleep(0.2)
        still_left = find_processes(hark.home)
        problems.append(f"processes left: {left}, 200 ms later: {still_left}")
    code = 128 - code if code < 0 else code  # killed before Python could install a handler
    if code not in allowed and PYTHON_START_ERROR not in program.last_text:
        problems.append(f"exit code {code}, not one of {allowed}; output: {program.last_text!r}")
    terminal = program.terminal
    if terminal is not None and terminal.is_open:
        try:
            await until(lambda: _is_restored(terminal), seconds=2.0)
        except AssertionError:
            problems.append(f"terminal not restored: {terminal.settings} {terminal.screen.modes}")
    if "Traceback" in program.last_text and plan.phase != "startup":
        problems.append(f"traceback: {program.last_text}")
    return problems


def _is_restored(terminal: PseudoTerminal) -> bool:
    is_normal = not terminal.screen.is_alternate_screen and terminal.screen.modes <= DEFAULT_MODES
    return is_normal and terminal.settings == terminal.original_settings


def find_processes(home: Path) -> list[str]:
    """Return the live processes that work in the home directory or name it in their environment."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            is_ours = (process / "cwd").readlink().is_relative_to(home)
            if (is_ours or str(home).encode() in (process / "environ").read_bytes()) and is_alive(int(process.name)):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found
