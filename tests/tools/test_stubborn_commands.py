"""The process zoo, through the real tools and a real `hark`: whatever a command does, nothing of it is left."""

import asyncio
import json
import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest

from hark.processes.background import Background
from hark.processes.cookies import Detached, Owner, sweep, this_process
from hark.processes.shell import ShellStates
from hark.processes.start import Launcher
from hark.protocol.tool import Tool
from hark.tools.process_tool import ProcessTool
from hark.tools.python import PythonTool
from hark.tools.shell import Shell
from tests.cli.command_line import Hark, Running, opened
from tests.fakes.models.behaviours import Behaviour, call, delta, events
from tests.tools.context import FakeContext, call_tool, is_living, living
from tests.tools.stubborn_commands import ZOO
from tests.waiting import at_most

EVERY_ANIMAL = pytest.mark.parametrize("name", ZOO)
READY = re.compile(r"ready (\d+)")

# Each leaves something behind and ends by itself.
LEAVERS = {
    "background": "sleep 600 & echo ready $!",
    "nohup": "nohup setsid sleep 600 >/dev/null 2>&1 & echo ready $!",
    "ignores_term": "(trap '' TERM; echo ready $BASHPID; sleep 600; sleep 600) & until [ -e go ]; do sleep 0.01; done",
    "stopped": "sleep 600 & echo ready $!; kill -STOP $!",
    "cleared": "env -i setsid sh -c 'echo ready $$; touch go; exec sleep 600' & until [ -e go ]; do sleep 0.01; done",
    "cleared_daemon": (
        "(env -i setsid sh -c 'echo ready $$; touch go; exec sleep 600' &); until [ -e go ]; do sleep 0.01; done"
    ),
}


def as_python(command: str) -> str:
    return f"import subprocess\nsubprocess.run(['bash', '-c', {command!r}])"


async def cut(tool: Tool, arguments: dict[str, str], workspace: Path) -> tuple[float, int]:
    """Cancel a call when its animal is in full swing; return how long that took, and the animal's pid."""
    context = FakeContext(workspace)
    task = asyncio.create_task(call_tool(tool, arguments, context))
    await context.until(lambda shown: READY.search(shown) is not None)
    pid = int(READY.findall(context.shown)[0])
    assert is_living(pid)
    began = time.perf_counter()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return time.perf_counter() - began, pid


def held() -> tuple[list[str], list[str]]:
    """Return the descriptors and the children of this process, zombies too."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return sorted(path.name for path in Path("/proc/self/fd").iterdir()), sorted(children)


@pytest.fixture
def owner(tmp_path: Path) -> Owner:
    return this_process(tmp_path)


@EVERY_ANIMAL
async def test_a_cut_of_the_shell_leaves_nothing(name: str, owner: Owner, tmp_path: Path) -> None:
    took, pid = await cut(Shell(Launcher(owner)), {"command": ZOO[name]}, tmp_path)
    assert took < at_most(1)
    assert not is_living(pid)
    assert living(owner.home) == {}


@EVERY_ANIMAL
async def test_a_cut_of_python_leaves_nothing(name: str, owner: Owner, tmp_path: Path) -> None:
    took, pid = await cut(PythonTool(Launcher(owner)), {"code": as_python(ZOO[name])}, tmp_path)
    assert took < at_most(1)
    assert not is_living(pid)
    assert living(owner.home) == {}


async def test_the_end_of_the_app_ends_the_whole_zoo_in_the_background(owner: Owner, tmp_path: Path) -> None:
    background = Background(Launcher(owner), ShellStates(), Detached(tmp_path / "detached"))
    tool = ProcessTool(background)
    pids: list[int] = []
    for name, command in ZOO.items():
        (tmp_path / name).mkdir()
        await call_tool(tool, {"action": "start", "command": command, "name": name}, FakeContext(tmp_path / name))
        output = await call_tool(tool, {"action": "wait", "id": name, "pattern": "ready *"}, FakeContext(tmp_path))
        pids += [int(pid) for pid in READY.findall(output.text)]
    assert len(pids) >= len(ZOO)
    began = time.perf_counter()
    await background.close()
    assert time.perf_counter() - began < 60  # a second on an idle machine
    assert not any(is_living(pid) for pid in pids)
    assert living(owner.home) == {}


@pytest.mark.parametrize("name", LEAVERS)
async def test_nothing_is_left_when_a_command_ends_by_itself(name: str, owner: Owner, tmp_path: Path) -> None:
    if name == "ignores_term":
        (tmp_path / "go").touch()
    output = await call_tool(Shell(Launcher(owner)), {"command": LEAVERS[name]}, FakeContext(tmp_path))
    (pid,) = READY.findall(output.text)
    assert not is_living(int(pid))
    assert living(owner.home) == {}
    assert "left behind: " in output.text
    assert output.text.endswith("[exit code 0]")


@pytest.mark.parametrize("name", LEAVERS)
async def test_a_cut_while_the_left_are_being_ended_leaves_nothing(name: str, owner: Owner, tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    context = FakeContext(tmp_path)
    task = asyncio.create_task(call_tool(Shell(Launcher(owner)), {"command": LEAVERS[name]}, context))
    await context.until(lambda shown: READY.search(shown) is not None)
    task.cancel()
    await asyncio.wait([task])  # it may have been done already
    assert not is_living(int(READY.findall(context.shown)[0]))
    assert living(owner.home) == {}


async def test_no_descriptor_and_no_zombie_is_left(owner: Owner, tmp_path: Path) -> None:
    launcher = Launcher(owner, tmp_path / "home")
    background = Background(launcher, ShellStates(), Detached(tmp_path / "detached"))
    shell, process, python = Shell(launcher), ProcessTool(background), PythonTool(launcher)

    async def use() -> None:
        context = FakeContext(tmp_path)
        await call_tool(shell, {"command": "seq 20000"}, context)
        await call_tool(shell, {"command": "echo \0"}, context)
        await call_tool(shell, {"command": "sleep 60", "timeout_seconds": 0.05}, context)
        await call_tool(process, {"action": "start", "command": "echo hi; sleep 60", "name": "p"}, context)
        await call_tool(process, {"action": "stop", "id": "p"}, context)
        await call_tool(python, {"code": "1"}, context)
        await python.end(context.session)

    await use()
    before = held()
    for _ in range(3):
        await use()
    assert held() == before


KILLED_PROGRAM = """
import asyncio, sys
from pathlib import Path
from hark.processes.background import Background
from hark.processes.cookies import this_process
from hark.processes.cookies import Detached
from hark.tools.function import FunctionTool
from hark.processes.start import Launcher
from hark.tools.process_tool import ProcessTool
from hark.tools.python import PythonTool
from hark.processes.shell import ShellStates
from tests.tools.context import FakeContext, call_tool

def start(command: str) -> None:
    import subprocess
    subprocess.run(["bash", "-c", command])

async def main(home, tool, command):
    owner = this_process(home)
    launcher = Launcher(owner)
    context = FakeContext(home)
    if tool == "process":
        background = Background(launcher, ShellStates(), Detached(home / "detached"))
        await call_tool(ProcessTool(background), {"action": "start", "command": command, "name": "p"}, context)
        output = background.get("session", "p").output
        while "ready" not in output.peek():
            await output.changed()
        print(output.peek(), flush=True)
        await asyncio.Event().wait()
    elif tool == "python":
        code = f"import subprocess\\nsubprocess.run(['bash', '-c', {command!r}])"
        call = asyncio.create_task(call_tool(PythonTool(launcher), {"code": code}, context))
    else:
        call = asyncio.create_task(call_tool(FunctionTool(start).owned_by(owner), {"command": command}, context))
    await context.until(lambda shown: "ready" in shown)
    print(context.shown, flush=True)
    await call

asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
"""


@pytest.mark.parametrize("tool", ["process", "python", "function"])
@pytest.mark.parametrize("name", ["plain", "double_forked", "setsid_nohup", "ignores_term"])
async def test_what_any_tool_left_in_a_crash_is_swept(tool: str, name: str, owner: Owner, tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", KILLED_PROGRAM, str(tmp_path), tool, ZOO[name], stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    pid = int((await process.stdout.readline()).split()[1])
    assert is_living(pid)
    process.send_signal(signal.SIGKILL)
    await process.wait()
    await sweep(owner)
    assert not is_living(pid)
    assert living(owner.home) == {}


# How long an exit may take is another test's business: here it must come to its end on a busy machine, too.
PATIENT = "[limits]\nsettle_seconds = 20\nexit_seconds = 60\n"


def whole_zoo() -> Behaviour:
    """A reply with a shell call for each animal."""
    calls = [
        call(place, f"call_{place}", "shell", json.dumps({"command": f"mkdir {name}; cd {name}\n{command}"}))
        for place, (name, command) in enumerate(ZOO.items())
    ]
    return events([delta(tool_calls=calls), delta("tool_calls")])


async def visited(hark: Hark, animals: int = len(ZOO)) -> tuple[Running, list[int]]:
    """Start a prompt that fills the zoo; return it when so many animals are in full swing, with their pids."""
    running = await hark.start("-p", "go", "--yes", "--output", "events")
    assert running.process.stdin is not None
    running.process.stdin.close()
    ready: dict[str, int] = {}
    while len(ready) < animals:
        event = json.loads(await running.line() or "null")
        assert event, (await running.end(), sorted(ready))
        if event["type"] == "call.output" and (found := READY.search(event["text"])):
            ready.setdefault(event["call"], int(found[1]))
    return running, list(ready.values())


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
async def test_the_exit_of_hark_leaves_nothing(number: signal.Signals, tmp_path: Path) -> None:
    async with opened(tmp_path, [whole_zoo()]) as hark:
        hark.configure(PATIENT)
        running, pids = await visited(hark)
        running.signal(number)
        await running.end()
        assert not any(is_living(pid) for pid in pids)
        assert living(this_process(hark.home).home) == {}


async def test_what_a_killed_hark_left_is_gone_after_the_next_start(tmp_path: Path) -> None:
    async with opened(tmp_path, [whole_zoo()]) as hark:
        running, pids = await visited(hark)
        running.signal(signal.SIGKILL)
        await running.end()
        assert living(this_process(hark.home).home) != {}, "a crash leaves its commands running"
        await hark.run("-p", "sweep", "--max-steps", "1", "--timeout", "1")
        assert [pid for pid in pids if is_living(pid)] == []
        assert living(this_process(hark.home).home) == {}


def in_background() -> Behaviour:
    """A reply with a process in the background, and code that runs until it is cut."""
    start = {"action": "start", "command": "setsid sleep 600 & echo $$ > pid; mv pid started; wait"}
    code = "import os, time\nwhile not os.path.exists('started'): time.sleep(0.01)\nprint('ready', os.getpid())\n"
    calls = [
        call(0, "call_0", "process", json.dumps(start)),
        call(1, "call_1", "python", json.dumps({"code": f"{code}time.sleep(600)"})),
    ]
    return events([delta(tool_calls=calls), delta("tool_calls")])


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGKILL])
async def test_background_processes_and_python_end_with_hark(number: signal.Signals, tmp_path: Path) -> None:
    async with opened(tmp_path, [in_background()]) as hark:
        hark.configure(PATIENT)
        running, pids = await visited(hark, animals=1)
        pids.append(int((hark.home / "started").read_text()))
        assert all(is_living(pid) for pid in pids)
        running.signal(number)
        await running.end()
        if number == signal.SIGKILL:
            await hark.run("-p", "sweep", "--max-steps", "1", "--timeout", "1")
        assert not any(is_living(pid) for pid in pids)
        assert living(this_process(hark.home).home) == {}
