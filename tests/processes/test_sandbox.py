"""Sandboxed commands: the files and networks they can reach, and that a stop still ends all processes."""

import asyncio
import re
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from hark.processes.background import BackgroundProcesses
from hark.processes.cookies import DetachedProcesses, ProcessOwner, current_owner
from hark.processes.launcher import Launcher
from hark.processes.sandbox import CommandSandbox, SandboxSettings
from hark.processes.shell import ShellStates
from hark.protocol.messages import Effect
from hark.protocol.tool import Tool, ToolOutput
from hark.tools.process_tool import ProcessTool
from hark.tools.python import PythonTool
from hark.tools.shell import ShellTool
from tests.tools.fake_context import FakeContext, call_tool, find_processes, is_alive
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


def has_sandbox() -> bool:
    return CommandSandbox(SandboxSettings(mode="auto")).wrap(["true"], Path("/")) != ["true"]


needs_sandbox = pytest.mark.skipif(not has_sandbox(), reason="bubblewrap does not work here")


class SandboxFixture:
    """A workspace, a home with a secret, and another folder for sandbox tests."""

    def __init__(self, root: Path) -> None:
        self.workspace, self.home, self.other = (root / name for name in ("workspace", "home", "other"))
        for folder in (self.workspace, self.home, self.other):
            folder.mkdir()
        (self.home / "secret").write_text("key")
        self.owner: ProcessOwner = current_owner(self.home)

    def create_launcher(self, **settings: Any) -> Launcher:
        all_settings: dict[str, Any] = {"mode": "required", **settings}
        return Launcher(self.owner, self.home, SandboxSettings(**all_settings))

    async def call(self, tool: Tool, **arguments: Any) -> ToolOutput:
        return await call_tool(tool, arguments, FakeContext(self.workspace))


@pytest.fixture
def sandbox(tmp_path: Path) -> SandboxFixture:
    return SandboxFixture(tmp_path)


@needs_sandbox
async def test_only_the_workspace_and_writable_paths_can_be_written(sandbox: SandboxFixture) -> None:
    shell = ShellTool(sandbox.create_launcher(writable=(str(sandbox.other),)))
    command = (
        f"touch in; touch {sandbox.other}/in; touch /tmp/in && ls /tmp/in; touch /etc/in;"
        f"touch {sandbox.workspace}/../in;"
        f"cat {sandbox.home}/secret; ls {sandbox.home}; exit 3"
    )
    output = await sandbox.call(shell, command=command)
    assert (sandbox.workspace / "in").exists()
    assert (sandbox.other / "in").exists()
    assert not await anyio.Path("/tmp/in").exists()
    assert not await anyio.Path("/etc/in").exists()
    assert "touch: cannot touch '/etc/in': Read-only file system" in output.text
    assert "secret: No such file or directory" in output.text
    assert output.text.endswith("[exit code 3]")


@needs_sandbox
async def test_working_directory_and_variables_carry_over_between_sandboxed_commands(sandbox: SandboxFixture) -> None:
    shell = ShellTool(sandbox.create_launcher())
    await sandbox.call(shell, command="mkdir sub; cd sub; export A=1")
    output = await sandbox.call(shell, command="pwd; echo $A")
    assert output.text == f"{sandbox.workspace}/sub\n1\n[exit code 0]"


@needs_sandbox
@pytest.mark.parametrize("network", [True, False])
async def test_the_network_is_reachable_only_if_the_settings_allow_it(network: bool, sandbox: SandboxFixture) -> None:
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        shell = ShellTool(sandbox.create_launcher(network=network))
        output = await sandbox.call(shell, command=f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached")
    assert output.text.startswith("reached") == network


@needs_sandbox
async def test_a_workspace_inside_a_hidden_folder_is_visible(sandbox: SandboxFixture) -> None:
    inside = sandbox.home / "work"
    inside.mkdir()
    shell = ShellTool(sandbox.create_launcher())
    output = await call_tool(shell, {"command": "touch here; ls; ls .."}, FakeContext(inside))
    assert output.text == "here\nwork\n[exit code 0]"


@needs_sandbox
async def test_python_and_background_processes_are_sandboxed_too(
    sandbox: SandboxFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hark.tools.process_tool.START_SECONDS", 30)
    launcher = sandbox.create_launcher()
    python = PythonTool(launcher)
    output = await sandbox.call(python, code=f"import os\nopen('a', 'w').close()\nos.listdir({str(sandbox.home)!r})")
    assert output.text in ("[]", "['outputs']")
    output = await sandbox.call(python, code="open('/etc/in', 'w')")
    assert "Read-only file system" in output.text
    await python.close()
    background = BackgroundProcesses(launcher, ShellStates(), DetachedProcesses(sandbox.home / "detached"))
    output = await sandbox.call(ProcessTool(background), action="start", command=f"touch b; cat {sandbox.home}/secret")
    assert "secret: No such file or directory" in output.text
    await background.close()
    assert sorted(path.name for path in sandbox.workspace.iterdir()) == ["a", "b"]
    assert find_processes(sandbox.owner.home) == {}


@needs_sandbox
@pytest.mark.parametrize(
    "command",
    [PLAIN, IGNORES_TERM, DOUBLE_FORKED, SETSID_NOHUP, FORK_STORM, RESPAWNS, CLEARED_DAEMON],
    ids=["plain", "ignores_term", "double_forked", "setsid_nohup", "fork_storm", "respawns", "cleared_daemon"],
)
async def test_a_stop_ends_all_sandboxed_processes(command: str, sandbox: SandboxFixture) -> None:
    context = FakeContext(sandbox.workspace)
    task = asyncio.create_task(call_tool(ShellTool(sandbox.create_launcher()), {"command": command}, context))
    await context.wait_until_shown(lambda shown: re.search(r"ready \d+\n", shown) is not None)
    assert find_processes(sandbox.owner.home) != {}
    started = time.perf_counter()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.perf_counter() - started < at_most(1)
    assert find_processes(sandbox.owner.home) == {}


@needs_sandbox
async def test_leftover_processes_of_a_sandboxed_command_are_killed_when_it_ends(sandbox: SandboxFixture) -> None:
    output = await sandbox.call(
        ShellTool(sandbox.create_launcher()), command="nohup setsid sleep 600 >/dev/null 2>&1 & sleep 0.1; echo done"
    )
    assert output.text.startswith("done\n")
    assert find_processes(sandbox.owner.home) == {}


@needs_sandbox
async def test_cancelling_a_call_kills_sandboxed_python(sandbox: SandboxFixture) -> None:
    python = PythonTool(sandbox.create_launcher())
    context = FakeContext(sandbox.workspace)
    task = asyncio.create_task(call_tool(python, {"code": "print('ready')\nwhile True: pass"}, context))
    await context.wait_until_shown(lambda shown: "ready" in shown)
    pids = list(find_processes(sandbox.owner.home))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not any(is_alive(pid) for pid in pids)


async def test_no_command_runs_if_the_required_sandbox_is_missing(
    sandbox: SandboxFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    bash = sandbox.other / "bash"
    bash.symlink_to("/bin/bash")
    monkeypatch.setenv("PATH", str(sandbox.other))
    launcher = sandbox.create_launcher()
    background = BackgroundProcesses(launcher, ShellStates(), DetachedProcesses(sandbox.home / "detached"))
    outputs = [
        await sandbox.call(ShellTool(launcher), command="touch here"),
        await sandbox.call(PythonTool(launcher), code="open('here', 'w')"),
        await sandbox.call(ProcessTool(background), action="start", command="touch here"),
    ]
    for output in outputs:
        assert output.effect is Effect.NOT_STARTED
        assert "the settings require a sandbox, and bubblewrap (bwrap) is not installed" in output.text
    assert list(sandbox.workspace.iterdir()) == []
    auto = await sandbox.call(ShellTool(sandbox.create_launcher(mode="auto")), command="echo ran")
    assert auto.text.startswith("ran\n")
