"""The working directory and exported variables carry over from one shell call to the next."""

import asyncio
import os
from pathlib import Path

import pytest

from hark.processes.cookies import current_owner
from hark.processes.launcher import Launcher
from hark.processes.shell import ShellState, parse_state
from hark.protocol.messages import Effect
from hark.protocol.tool import ToolOutput
from hark.tools.shell import ShellTool
from tests.tools.fake_context import FakeContext, call_tool


class ShellCalls:
    """Makes shell calls in a session."""

    def __init__(self, workspace: Path, shell: ShellTool | None = None) -> None:
        self.workspace = workspace
        self.shell = shell or ShellTool(Launcher(current_owner(workspace)))

    async def run(self, command: str, session: str = "session", **arguments: float) -> ToolOutput:
        context = FakeContext(self.workspace)
        context.session = session
        return await call_tool(self.shell, {"command": command, **arguments}, context)

    async def run_for_output(self, command: str, session: str = "session") -> str:
        return (await self.run(command, session)).text.removesuffix("\n[exit code 0]")


@pytest.fixture
def calls(tmp_path: Path) -> ShellCalls:
    return ShellCalls(tmp_path)


async def test_working_directory_and_exports_carry_over_but_functions_and_other_variables_do_not(
    calls: ShellCalls,
) -> None:
    await calls.run("mkdir sub; cd sub; export A='1 2\n3' B=x; plain=1; f() { :; }; export -f f; unset HOME")
    assert await calls.run_for_output("pwd") == str(calls.workspace / "sub")
    assert await calls.run_for_output('echo "$A|$B|${plain-none}|${HOME-none}"; type f') == (
        "1 2\n3|x|none|none\nbash: line 1: type: f: not found\n[exit code 1]"
    )


async def test_the_shell_tool_reports_the_working_directory_of_the_next_command(calls: ShellCalls) -> None:
    folder_of = calls.shell.spec.folder_of
    assert folder_of is not None
    assert folder_of("session") is None
    await calls.run("mkdir sub; cd sub")
    assert folder_of("session") == calls.workspace / "sub"
    assert folder_of("other") is None
    await calls.run("rmdir ../sub")
    assert folder_of("session") is None


async def test_each_session_has_its_own_shell_state(calls: ShellCalls) -> None:
    await calls.run("cd /; export A=1")
    assert await calls.run_for_output("pwd; echo ${A-none}", session="other") == f"{calls.workspace}\nnone"
    assert await calls.run_for_output("pwd; echo ${A-none}") == "/\n1"


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("cd /; export A=1; exit 3", 3),
        ("set -e; cd /; export A=1; false; echo not reached", 1),
        ("set -u; cd /; export A=1; echo $nothing", 127),
        ("set -x; cd /; export A=1", 0),
        ("cd /; export A=1; trap 'echo bye $?' EXIT; exit 4", 4),
        ("set -e; cd /; export A=1; trap 'echo bye $?; exit 9' EXIT; false", 9),
        ("trap 'echo bye' EXIT; trap - EXIT; cd /; export A=1; exit 5", 5),
        ("cd /; export A=1; (cd /usr; export A=2; trap 'echo sub' EXIT; exit 2)", 2),
        ("cd /; export A=1; exec >/dev/null 2>&1; echo hidden", 0),
        ("cd /; export A=1; exec 3>/dev/null 9>/dev/null; echo hi >&3", 0),
        ("cd /; export A=1 PATH=/nowhere; true", 0),
        ("cd /; export A=1; IFS=1; false", 1),
        ("set -a; cd /; A=1; trap 'exit 6' EXIT", 6),
        ("set -o posix; cd /; export A=1 POSIXLY_CORRECT=1; false", 1),
    ],
)
async def test_exit_code_and_state_are_preserved_however_the_shell_ends(
    command: str, code: int, calls: ShellCalls
) -> None:
    assert (await calls.run(command)).text.endswith(f"[exit code {code}]")
    assert await calls.run_for_output("builtin pwd; echo $A") == "/\n1"


@pytest.mark.parametrize(
    ("command", "ending"),
    [
        ("if then", "[exit code 2]"),
        ("echo 'open", "[exit code 2]"),
        ("cd /; exec sh -c 'exit 6'", "[exit code 6]"),
        ("cd /; kill -9 $$", "[ended by signal 9: Killed]"),
        ("cd /; exec 100>&- 101>&- 102>&- 103>&-", "[exit code 0]"),
    ],
)
async def test_the_state_is_unchanged_if_the_shell_could_not_report_its_state(
    command: str, ending: str, calls: ShellCalls
) -> None:
    await calls.run("mkdir -p sub; cd sub; export A=1")
    assert (await calls.run(command)).text.endswith(ending)
    assert await calls.run_for_output("echo $A") == "1"


async def test_traps_set_by_the_command_still_run(calls: ShellCalls) -> None:
    output = await calls.run_for_output(
        "trap 'echo usr1' USR1; trap 'echo bye $?' EXIT; kill -USR1 $$; trap -p USR1; (exit 7)"
    )
    assert output == "usr1\ntrap -- 'echo usr1' SIGUSR1\nbye 7\n[exit code 7]"


async def test_a_shell_in_posix_mode_works_and_stays_in_posix_mode(calls: ShellCalls) -> None:
    await calls.run("export POSIXLY_CORRECT=1 A=1")
    assert (
        await calls.run_for_output("trap 'echo bye' EXIT; echo $SHELLOPTS | grep -o posix; echo $A") == "posix\n1\nbye"
    )


async def test_arguments_and_here_documents_work_as_in_a_plain_shell(calls: ShellCalls) -> None:
    assert await calls.run_for_output('echo "$0 $#"; cat <<EOF\nhello $((1+1))\nEOF') == "bash 0\nhello 2"


async def test_a_call_that_times_out_leaves_the_state_unchanged(calls: ShellCalls) -> None:
    await calls.run("export A=1")
    output = await calls.run("cd /; export A=2; sleep 60", timeout_seconds=0.2)
    assert output.effect is Effect.CANCELLED
    assert await calls.run_for_output("pwd; echo $A") == f"{calls.workspace}\n1"


async def test_a_cancelled_call_leaves_the_state_unchanged(calls: ShellCalls) -> None:
    context = FakeContext(calls.workspace)
    task = asyncio.create_task(call_tool(calls.shell, {"command": "cd /; export A=2; echo ready; sleep 60"}, context))
    await context.wait_until_shown(lambda shown: "ready" in shown)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await calls.run_for_output("pwd; echo ${A-none}") == f"{calls.workspace}\nnone"


async def test_the_parallel_call_that_ends_last_determines_the_state(calls: ShellCalls) -> None:
    slow = asyncio.create_task(calls.run("until [ -e go ]; do sleep 0.01; done; export A=last"))
    await calls.run("export A=first")
    (calls.workspace / "go").touch()
    await slow
    assert await calls.run_for_output("echo $A") == "last"


async def test_a_deleted_working_directory_is_replaced_by_the_workspace_with_a_notice(calls: ShellCalls) -> None:
    await calls.run("mkdir sub; cd sub; rmdir ../sub; export A=1")
    assert await calls.run_for_output("pwd; echo $A") == (
        f"{calls.workspace}\n1\n[the folder {calls.workspace}/sub no longer exists, so this ran in {calls.workspace}]"
    )
    assert await calls.run_for_output("pwd") == str(calls.workspace)


async def test_the_cookie_of_a_call_does_not_carry_over_to_the_next_call(
    calls: ShellCalls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARK_COOKIE", "outer")
    first, second = [await calls.run_for_output("echo $HARK_COOKIE") for _ in range(2)]
    assert [first.count(","), second.count(",")] == [1, 1]
    assert first.startswith("outer,")
    assert first != second


async def test_the_call_returns_as_soon_as_the_command_has_ended(
    calls: ShellCalls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hark.processes.pipe.DRAIN_SECONDS", 60.0)
    async with asyncio.timeout(30):
        assert await calls.run_for_output("echo hi") == "hi"


async def test_wait_in_a_command_does_not_wait_for_orphans_that_the_shell_adopted(calls: ShellCalls) -> None:
    script = "(sleep 60 &); (sleep 60 &) & wait; sleep 0.01 & wait -n; echo $?; jobs"
    assert (await calls.run_for_output(script)).startswith("0\n[stopped 2 leftover background processes: ")


async def test_a_call_cannot_change_the_startup_of_the_next_shell(calls: ShellCalls) -> None:
    (calls.workspace / "begin").write_text("echo surprise; exit 3")
    await calls.run("export BASH_ENV=$PWD/begin A=1; set -n; export SHELLOPTS")
    await calls.run("export BASH_ENV=$PWD/begin SHELLOPTS A=1")
    assert await calls.run_for_output("echo $A ${BASH_ENV-none}") == "1 none"


async def test_a_large_environment_carries_over_to_the_next_command(calls: ShellCalls) -> None:
    await calls.run("for i in {1..40}; do export BIG$i=$(head -c 20000 /dev/zero | tr '\\0' x); done")
    assert await calls.run_for_output("echo ${#BIG1} ${#BIG40}") == "20000 20000"


async def test_the_shell_state_is_not_written_to_disk(calls: ShellCalls) -> None:
    await calls.run("export SECRET=hunter2")
    assert [path for path in calls.workspace.rglob("*") if path.is_file()] == []


def test_the_state_is_parsed_from_the_report_that_the_shell_prints() -> None:
    report = b"/some\nfolder\n\0A=1\0B=x=y\nz\0PWD=/\0_=env\0HARK_COOKIE=c\0BASH_FUNC_f%%=() { :; }\0C=\xff"
    assert parse_state(report) == ShellState(
        Path("/some\nfolder"), {"A": "1", "B": "x=y\nz", "C": os.fsdecode(b"\xff")}
    )
    assert parse_state(b"") is None
