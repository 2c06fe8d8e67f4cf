"""Stubborn commands, run by the real tools and a real `hark`, leave no process running."""

import asyncio
import json
import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest

from hark.processes.background import BackgroundProcesses
from hark.processes.cookies import DetachedProcesses, ProcessOwner, current_owner, kill_leftover_processes
from hark.processes.launcher import Launcher
from hark.processes.shell import ShellStates
from hark.protocol.tool import Tool
from hark.tools.process_tool import ProcessTool
from hark.tools.python import PythonTool
from hark.tools.shell import ShellTool
from tests.cli.command_line import Hark, RunningCommand, open_hark
from tests.fakes.models.behaviours import Behaviour, call, delta, events
from tests.tools.fake_context import FakeContext, call_tool, find_processes, is_alive
from tests.tools.stubborn_commands import STUBBORN_COMMANDS
from tests.waiting import at_most, until

with_every_command = pytest.mark.parametrize("name", STUBBORN_COMMANDS)
READY = re.compile(r"ready (\d+)")

# Commands that end but leave a process running.
LEAVING_COMMANDS = {
    "background": "sleep 600 & echo ready $!",
    "nohup": "nohup setsid sleep 600 >/dev/null 2>&1 & echo ready $!",
    "ignores_term": "(trap '' TERM; echo ready $BASHPID; sleep 600; sleep 600) & until [ -e go ]; do sleep 0.01; done",
    "stopped": "sleep 600 & echo ready $!; kill -STOP $!",
    "cleared": "env -i setsid sh -c 'echo ready $$; touch go; exec sleep 600' & until [ -e go ]; do sleep 0.01; done",
    "cleared_daemon": (
        "(env -i setsid sh -c 'echo ready $$; touch go; exec sleep 600' &); until [ -e go ]; do sleep 0.01; done"
    ),
}


def to_python_code(command: str) -> str:
    return f"import subprocess\nsubprocess.run(['bash', '-c', {command!r}])"


async def cancel_when_ready(tool: Tool, arguments: dict[str, str], workspace: Path) -> tuple[float, int]:
    """Cancel a call when its command is fully running. Return the stop time in seconds, and the command's pid."""
    context = FakeContext(workspace)
    task = asyncio.create_task(call_tool(tool, arguments, context))
    await context.wait_until_shown(lambda shown: READY.search(shown) is not None)
    pid = int(READY.findall(context.shown)[0])
    assert is_alive(pid)
    started = time.perf_counter()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return time.perf_counter() - started, pid


def open_descriptors_and_children() -> set[str]:
    """Return the open file descriptors and the child processes of this process, including zombies."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return {f"descriptor {path.name}" for path in Path("/proc/self/fd").iterdir()} | {
        f"child {pid}" for pid in children
    }


@pytest.fixture
def owner(tmp_path: Path) -> ProcessOwner:
    return current_owner(tmp_path)


@with_every_command
async def test_cancelling_a_shell_call_leaves_no_process(name: str, owner: ProcessOwner, tmp_path: Path) -> None:
    elapsed_seconds, pid = await cancel_when_ready(
        ShellTool(Launcher(owner)), {"command": STUBBORN_COMMANDS[name]}, tmp_path
    )
    assert elapsed_seconds < at_most(1)
    assert not is_alive(pid)
    assert find_processes(owner.home) == {}


@with_every_command
async def test_cancelling_a_python_call_leaves_no_process(name: str, owner: ProcessOwner, tmp_path: Path) -> None:
    elapsed_seconds, pid = await cancel_when_ready(
        PythonTool(Launcher(owner)), {"code": to_python_code(STUBBORN_COMMANDS[name])}, tmp_path
    )
    assert elapsed_seconds < at_most(1)
    assert not is_alive(pid)
    assert find_processes(owner.home) == {}


async def test_closing_ends_all_background_processes_that_are_hard_to_kill(owner: ProcessOwner, tmp_path: Path) -> None:
    background = BackgroundProcesses(Launcher(owner), ShellStates(), DetachedProcesses(tmp_path / "detached"))
    tool = ProcessTool(background)
    pids: list[int] = []
    for name, command in STUBBORN_COMMANDS.items():
        (tmp_path / name).mkdir()
        await call_tool(tool, {"action": "start", "command": command, "name": name}, FakeContext(tmp_path / name))
        output = await call_tool(tool, {"action": "wait", "id": name, "pattern": "ready *"}, FakeContext(tmp_path))
        pids += [int(pid) for pid in READY.findall(output.text)]
    assert len(pids) >= len(STUBBORN_COMMANDS)
    started = time.perf_counter()
    await background.close()
    assert time.perf_counter() - started < 60  # a second on an idle machine
    assert not any(is_alive(pid) for pid in pids)
    assert find_processes(owner.home) == {}


@pytest.mark.parametrize("name", LEAVING_COMMANDS)
async def test_a_command_that_ends_normally_leaves_no_process(name: str, owner: ProcessOwner, tmp_path: Path) -> None:
    if name == "ignores_term":
        (tmp_path / "go").touch()
    output = await call_tool(ShellTool(Launcher(owner)), {"command": LEAVING_COMMANDS[name]}, FakeContext(tmp_path))
    (pid,) = READY.findall(output.text)
    assert not is_alive(int(pid))
    assert find_processes(owner.home) == {}
    assert "leftover background " in output.text
    assert output.text.endswith("[exit code 0]")


@pytest.mark.parametrize("name", LEAVING_COMMANDS)
async def test_cancelling_while_leftover_processes_are_stopped_leaves_no_process(
    name: str, owner: ProcessOwner, tmp_path: Path
) -> None:
    (tmp_path / "go").touch()
    context = FakeContext(tmp_path)
    task = asyncio.create_task(call_tool(ShellTool(Launcher(owner)), {"command": LEAVING_COMMANDS[name]}, context))
    await context.wait_until_shown(lambda shown: READY.search(shown) is not None)
    task.cancel()
    await asyncio.wait([task])  # it may have finished already
    assert not is_alive(int(READY.findall(context.shown)[0]))
    assert find_processes(owner.home) == {}


async def test_tools_leave_no_open_descriptor_and_no_zombie(owner: ProcessOwner, tmp_path: Path) -> None:
    launcher = Launcher(owner, tmp_path / "home")
    background = BackgroundProcesses(launcher, ShellStates(), DetachedProcesses(tmp_path / "detached"))
    shell, process, python = ShellTool(launcher), ProcessTool(background), PythonTool(launcher)

    async def use_all_tools() -> None:
        context = FakeContext(tmp_path)
        await call_tool(shell, {"command": "seq 20000"}, context)
        await call_tool(shell, {"command": "echo \0"}, context)
        await call_tool(shell, {"command": "sleep 60", "timeout_seconds": 0.05}, context)
        await call_tool(process, {"action": "start", "command": "echo hi; sleep 60", "name": "p"}, context)
        await call_tool(process, {"action": "stop", "id": "p"}, context)
        await call_tool(python, {"code": "1"}, context)
        await python.end_session(context.session)

    await use_all_tools()
    before = open_descriptors_and_children()
    for _ in range(3):
        await use_all_tools()
    # asyncio reaps an ended child in a thread, possibly a moment after the tool returned.
    await until(
        lambda: open_descriptors_and_children() <= before, shows=lambda: open_descriptors_and_children() - before
    )


KILLED_PROGRAM = """
import asyncio, sys
from pathlib import Path
from hark.processes.background import BackgroundProcesses
from hark.processes.cookies import DetachedProcesses, current_owner
from hark.tools.function import FunctionTool
from hark.processes.launcher import Launcher
from hark.tools.process_tool import ProcessTool
from hark.tools.python import PythonTool
from hark.processes.shell import ShellStates
from tests.tools.fake_context import FakeContext, call_tool

def start(command: str) -> None:
    import subprocess
    subprocess.run(["bash", "-c", command])

async def main(home, tool, command):
    owner = current_owner(home)
    launcher = Launcher(owner)
    context = FakeContext(home)
    if tool == "process":
        background = BackgroundProcesses(launcher, ShellStates(), DetachedProcesses(home / "detached"))
        await call_tool(ProcessTool(background), {"action": "start", "command": command, "name": "p"}, context)
        output = background.get("session", "p").output
        while "ready" not in output.peek():
            await output.wait_for_more()
        print(output.peek(), flush=True)
        await asyncio.Event().wait()
    elif tool == "python":
        code = f"import subprocess\\nsubprocess.run(['bash', '-c', {command!r}])"
        call = asyncio.create_task(call_tool(PythonTool(launcher), {"code": code}, context))
    else:
        call = asyncio.create_task(call_tool(FunctionTool(start).owned_by(owner), {"command": command}, context))
    await context.wait_until_shown(lambda shown: "ready" in shown)
    print(context.shown, flush=True)
    await call

asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
"""


@pytest.mark.parametrize("tool", ["process", "python", "function"])
@pytest.mark.parametrize("name", ["plain", "double_forked", "setsid_nohup", "ignores_term"])
async def test_processes_left_by_a_crash_are_killed_at_the_next_start(
    tool: str, name: str, owner: ProcessOwner, tmp_path: Path
) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        KILLED_PROGRAM,
        str(tmp_path),
        tool,
        STUBBORN_COMMANDS[name],
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    pid = int((await process.stdout.readline()).split()[1])
    assert is_alive(pid)
    process.send_signal(signal.SIGKILL)
    await process.wait()
    await kill_leftover_processes(owner)
    assert not is_alive(pid)
    assert find_processes(owner.home) == {}


# Other tests check how long an exit takes. Here it must only finish, even on a busy machine.
LONG_LIMITS = "[limits]\nsettle_seconds = 20\nexit_seconds = 60\n"


def call_every_command() -> Behaviour:
    """Return a reply with a shell call for each stubborn command."""
    calls = [
        call(number, f"call_{number}", "shell", json.dumps({"command": f"mkdir {name}; cd {name}\n{command}"}))
        for number, (name, command) in enumerate(STUBBORN_COMMANDS.items())
    ]
    return events([delta(tool_calls=calls), delta("tool_calls")])


async def start_commands(hark: Hark, count: int = len(STUBBORN_COMMANDS)) -> tuple[RunningCommand, list[int]]:
    """Start a prompt that runs the commands. Return the prompt and the pids once `count` commands have started."""
    running = await hark.start("-p", "go", "--yes", "--output", "events")
    assert running.process.stdin is not None
    running.process.stdin.close()
    ready: dict[str, int] = {}
    while len(ready) < count:
        event = json.loads(await running.read_line() or "null")
        assert event, (await running.wait_for_end(), sorted(ready))
        if event["type"] == "call.output" and (found := READY.search(event["text"])):
            ready.setdefault(event["call"], int(found[1]))
    return running, list(ready.values())


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
async def test_exiting_hark_leaves_no_process(number: signal.Signals, tmp_path: Path) -> None:
    async with open_hark(tmp_path, [call_every_command()]) as hark:
        hark.configure(LONG_LIMITS)
        running, pids = await start_commands(hark)
        running.signal(number)
        await running.wait_for_end()
        assert not any(is_alive(pid) for pid in pids)
        assert find_processes(current_owner(hark.home).home) == {}


async def test_processes_left_by_a_killed_hark_are_gone_after_the_next_start(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [call_every_command()]) as hark:
        running, pids = await start_commands(hark)
        running.signal(signal.SIGKILL)
        await running.wait_for_end()
        assert find_processes(current_owner(hark.home).home) != {}, "a crash leaves its commands running"
        await hark.run("-p", "sweep", "--max-steps", "1", "--timeout", "1")
        assert [pid for pid in pids if is_alive(pid)] == []
        assert find_processes(current_owner(hark.home).home) == {}


def call_background_and_python() -> Behaviour:
    """Return a reply that starts a background process and Python code that runs until it is cancelled."""
    start = {"action": "start", "command": "setsid sleep 600 & echo $$ > pid; mv pid started; wait"}
    code = "import os, time\nwhile not os.path.exists('started'): time.sleep(0.01)\nprint('ready', os.getpid())\n"
    calls = [
        call(0, "call_0", "process", json.dumps(start)),
        call(1, "call_1", "python", json.dumps({"code": f"{code}time.sleep(600)"})),
    ]
    return events([delta(tool_calls=calls), delta("tool_calls")])


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGKILL])
async def test_background_processes_and_python_end_with_hark(number: signal.Signals, tmp_path: Path) -> None:
    async with open_hark(tmp_path, [call_background_and_python()]) as hark:
        hark.configure(LONG_LIMITS)
        running, pids = await start_commands(hark, count=1)
        pids.append(int((hark.home / "started").read_text()))
        assert all(is_alive(pid) for pid in pids)
        running.signal(number)
        await running.wait_for_end()
        if number == signal.SIGKILL:
            await hark.run("-p", "sweep", "--max-steps", "1", "--timeout", "1")
        assert not any(is_alive(pid) for pid in pids)
        assert find_processes(current_owner(hark.home).home) == {}
