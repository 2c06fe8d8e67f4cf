"""Behind walls: what can be written and reached, and that a stop still ends everything."""

import asyncio
import re
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from hark.processes.background import Background
from hark.processes.cookies import Detached, Owner, this_process
from hark.processes.sandbox import Sandbox, Walls
from hark.processes.shell import ShellStates
from hark.processes.start import Launcher
from hark.protocol.messages import Effect
from hark.protocol.tool import Tool, ToolOutput
from hark.tools.process_tool import ProcessTool
from hark.tools.python import PythonTool
from hark.tools.shell import Shell
from tests.tools.context import FakeContext, call_tool, is_living, living
from tests.tools.stubborn_commands import (
    CLEARED_DAEMON,
    DOUBLE_FORKED,
    FORK_STORM,
    IGNORES_TERM,
    PLAIN,
    RESPAWNS,
    SETSID_NOHUP,
)
from tests.waiting import at_most


def has_walls() -> bool:
    return Walls(Sandbox(mode="auto")).around(["true"], Path("/")) != ["true"]


needs_walls = pytest.mark.skipif(not has_walls(), reason="bubblewrap does not work here")


class Place:
    """A workspace, a home with a secret, and another folder."""

    def __init__(self, root: Path) -> None:
        self.workspace, self.home, self.other = (root / name for name in ("workspace", "home", "other"))
        for folder in (self.workspace, self.home, self.other):
            folder.mkdir()
        (self.home / "secret").write_text("key")
        self.owner: Owner = this_process(self.home)

    def launcher(self, **settings: Any) -> Launcher:
        whole: dict[str, Any] = {"mode": "required", **settings}
        return Launcher(self.owner, self.home, Sandbox(**whole))

    async def run(self, tool: Tool, **arguments: Any) -> ToolOutput:
        return await call_tool(tool, arguments, FakeContext(self.workspace))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@needs_walls
async def test_only_the_workspace_and_what_is_named_can_be_written(place: Place) -> None:
    shell = Shell(place.launcher(writable=(str(place.other),)))
    command = (
        f"touch in; touch {place.other}/in; touch /tmp/in && ls /tmp/in; touch /etc/in; touch {place.workspace}/../in;"
        f"cat {place.home}/secret; ls {place.home}; exit 3"
    )
    output = await place.run(shell, command=command)
    assert (place.workspace / "in").exists()
    assert (place.other / "in").exists()
    assert not await anyio.Path("/tmp/in").exists()
    assert not await anyio.Path("/etc/in").exists()
    assert "touch: cannot touch '/etc/in': Read-only file system" in output.text
    assert "secret: No such file or directory" in output.text
    assert output.text.endswith("[exit code 3]")


@needs_walls
async def test_folder_and_variables_carry_over_behind_walls(place: Place) -> None:
    shell = Shell(place.launcher())
    await place.run(shell, command="mkdir sub; cd sub; export A=1")
    output = await place.run(shell, command="pwd; echo $A")
    assert output.text == f"{place.workspace}/sub\n1\n[exit code 0]"


@needs_walls
@pytest.mark.parametrize("network", [True, False])
async def test_the_network_is_there_only_if_it_may_be(network: bool, place: Place) -> None:
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        shell = Shell(place.launcher(network=network))
        output = await place.run(shell, command=f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached")
    assert output.text.startswith("reached") == network


@needs_walls
async def test_a_workspace_inside_a_hidden_folder_is_there(place: Place) -> None:
    inside = place.home / "work"
    inside.mkdir()
    shell = Shell(place.launcher())
    output = await call_tool(shell, {"command": "touch here; ls; ls .."}, FakeContext(inside))
    assert output.text == "here\nwork\n[exit code 0]"


@needs_walls
async def test_python_and_processes_are_behind_walls_too(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hark.tools.process_tool.START_SECONDS", 30)
    launcher = place.launcher()
    python = PythonTool(launcher)
    output = await place.run(python, code=f"import os\nopen('a', 'w').close()\nos.listdir({str(place.home)!r})")
    assert output.text in ("[]", "['outputs']")
    output = await place.run(python, code="open('/etc/in', 'w')")
    assert "Read-only file system" in output.text
    await python.close()
    background = Background(launcher, ShellStates(), Detached(place.home / "detached"))
    output = await place.run(ProcessTool(background), action="start", command=f"touch b; cat {place.home}/secret")
    assert "secret: No such file or directory" in output.text
    await background.close()
    assert sorted(path.name for path in place.workspace.iterdir()) == ["a", "b"]
    assert living(place.owner.home) == {}


@needs_walls
@pytest.mark.parametrize(
    "command",
    [PLAIN, IGNORES_TERM, DOUBLE_FORKED, SETSID_NOHUP, FORK_STORM, RESPAWNS, CLEARED_DAEMON],
    ids=["plain", "ignores_term", "double_forked", "setsid_nohup", "fork_storm", "respawns", "cleared_daemon"],
)
async def test_a_stop_ends_all_that_runs_behind_walls(command: str, place: Place) -> None:
    context = FakeContext(place.workspace)
    task = asyncio.create_task(call_tool(Shell(place.launcher()), {"command": command}, context))
    await context.until(lambda shown: re.search(r"ready \d+\n", shown) is not None)
    assert living(place.owner.home) != {}
    began = time.perf_counter()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.perf_counter() - began < at_most(1)
    assert living(place.owner.home) == {}


@needs_walls
async def test_what_is_left_behind_walls_ends_with_the_command(place: Place) -> None:
    output = await place.run(
        Shell(place.launcher()), command="nohup setsid sleep 600 >/dev/null 2>&1 & sleep 0.1; echo done"
    )
    assert output.text.startswith("done\n")
    assert living(place.owner.home) == {}


@needs_walls
async def test_a_cut_ends_python_behind_walls(place: Place) -> None:
    python = PythonTool(place.launcher())
    context = FakeContext(place.workspace)
    task = asyncio.create_task(call_tool(python, {"code": "print('ready')\nwhile True: pass"}, context))
    await context.until(lambda shown: "ready" in shown)
    pids = list(living(place.owner.home))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not any(is_living(pid) for pid in pids)


async def test_required_walls_that_are_missing_let_nothing_run(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    bash = place.other / "bash"
    bash.symlink_to("/bin/bash")
    monkeypatch.setenv("PATH", str(place.other))
    launcher = place.launcher()
    background = Background(launcher, ShellStates(), Detached(place.home / "detached"))
    outputs = [
        await place.run(Shell(launcher), command="touch here"),
        await place.run(PythonTool(launcher), code="open('here', 'w')"),
        await place.run(ProcessTool(background), action="start", command="touch here"),
    ]
    for output in outputs:
        assert output.effect is Effect.NOT_STARTED
        assert "the settings require a sandbox, and bubblewrap (bwrap) is not installed" in output.text
    assert list(place.workspace.iterdir()) == []
    auto = await place.run(Shell(place.launcher(mode="auto")), command="echo ran")
    assert auto.text.startswith("ran\n")
