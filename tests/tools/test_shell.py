"""The `shell` tool, for commands that are not stopped."""

import asyncio
import time
from pathlib import Path

import pytest

from hark.processes.cookies import current_owner
from hark.processes.launcher import Launcher
from hark.protocol.messages import Effect
from hark.protocol.tool import PredictedEffects, Tool, ToolOutput
from hark.tools.shell import ShellArguments, ShellTool
from tests.tools.fake_context import FakeContext, call_tool
from tests.waiting import at_most


@pytest.fixture
def shell(tmp_path: Path) -> ShellTool:
    return ShellTool(Launcher(current_owner(tmp_path)))


async def test_the_result_has_the_output_and_the_exit_code(shell: ShellTool, tmp_path: Path) -> None:
    context = FakeContext(tmp_path)
    output = await call_tool(shell, {"command": "pwd; echo oops >&2"}, context)
    assert output == ToolOutput(f"{tmp_path}\noops\n[exit code 0]")
    assert context.shown == f"{tmp_path}\noops\n"


@pytest.mark.parametrize(
    ("command", "note"),
    [
        ("exit 3", "[exit code 3]"),
        ("kill -SEGV $$", "[ended by signal 11: Segmentation fault]"),
        ("nosuchthing", "[exit code 127]"),
    ],
)
async def test_a_failing_command_is_reported_as_an_error_with_its_exit_code_or_signal(
    command: str, note: str, shell: ShellTool, tmp_path: Path
) -> None:
    output = await call_tool(shell, {"command": command}, FakeContext(tmp_path))
    assert output.text.endswith(note)
    assert output.is_error
    assert output.effect is Effect.COMPLETED


async def test_a_command_longer_than_one_argument_may_be_runs_completely(shell: ShellTool, tmp_path: Path) -> None:
    text = "".join(f"line {number} 'quoted' \"{'é😀' * 20}\" $x \\\n" for number in range(6_000))
    assert len(text.encode()) > 800_000
    command = f"cat > copy <<'END'\n{text}END\necho $#; cd /; export LATER=1; exit 3"
    context = FakeContext(tmp_path)
    output = await call_tool(shell, {"command": command}, context)
    assert output.text == "0\n[exit code 3]"
    assert (tmp_path / "copy").read_text() == text
    assert (await call_tool(shell, {"command": "pwd; echo $LATER"}, context)).text == "/\n1\n[exit code 0]"


async def test_output_is_shown_while_the_command_runs(shell: ShellTool, tmp_path: Path) -> None:
    context = FakeContext(tmp_path)
    command = "echo first; while ! [ -e go ]; do sleep 0.01; done; echo second"
    task = asyncio.create_task(call_tool(shell, {"command": command}, context))
    await context.wait_until_shown(lambda shown: shown == "first\n")
    (tmp_path / "go").touch()
    assert (await task).text == "first\nsecond\n[exit code 0]"


async def test_bytes_that_are_not_text_are_replaced(shell: ShellTool, tmp_path: Path) -> None:
    output = await call_tool(
        shell, {"command": r"printf 'a\xff\x00b\xc3'; sleep 0.05; printf '\xa9\xe2\x82'"}, FakeContext(tmp_path)
    )
    assert output.text == "a\ufffd␀bé\ufffd\n[exit code 0]"


async def test_long_output_is_truncated_in_the_middle(shell: ShellTool, tmp_path: Path) -> None:
    context = FakeContext(tmp_path)
    started = time.perf_counter()
    output = await call_tool(
        shell, {"command": "echo BEGIN; head -c 10000000 /dev/zero | tr '\\0' x; echo END"}, context
    )
    assert time.perf_counter() - started < at_most(5)
    assert output.text.startswith("BEGIN\nxxx")
    assert output.text.endswith("xxx\n".removesuffix("\n") + "END\n[exit code 0]")
    assert "\n[... 9,970,010 characters omitted ...]\n" in output.text
    assert len(context.shown) < 100_000
    assert "[output continues, " in context.shown


async def test_progress_frames_do_not_displace_an_error_from_the_result(shell: ShellTool, tmp_path: Path) -> None:
    frames = r"for i in {1..1800}; do printf '\r\e[2K\e[32m%d%%\e[0m %060d' $((i / 18)) 0; done; "
    output = await call_tool(
        shell, {"command": f"{frames}echo; echo ERROR: disk full; {frames}"}, FakeContext(tmp_path)
    )
    last = f"100% {'0' * 60}"
    assert output.text == f"{last}\nERROR: disk full\n{last}\n[exit code 0]"


async def test_many_small_writes_are_shown_in_batches(shell: ShellTool, tmp_path: Path) -> None:
    context = FakeContext(tmp_path)
    output = await call_tool(shell, {"command": "for i in {1..2000}; do echo $i; done"}, context)
    assert output.text.splitlines()[:-1] == [str(number) for number in range(1, 2001)]
    assert context.shown == "".join(f"{number}\n" for number in range(1, 2001))
    assert len(context.pieces) < 100


async def test_a_flood_of_output_does_not_block_the_event_loop(shell: ShellTool, tmp_path: Path) -> None:
    task = asyncio.create_task(call_tool(shell, {"command": "yes", "timeout_seconds": 0.5}, FakeContext(tmp_path)))
    longest_pause_seconds = 0.0
    while not task.done():
        before = time.perf_counter()
        await asyncio.sleep(0)
        longest_pause_seconds = max(longest_pause_seconds, time.perf_counter() - before)
    assert longest_pause_seconds < at_most(0.1)


@pytest.mark.parametrize(
    "command",
    [
        "read -p 'Password: ' x",
        "cat",
        "head -1 </dev/tty",
        "python3 -c 'import getpass; getpass.getpass()'",
        "git init -q . && git -c user.name=a -c user.email=a@b commit --allow-empty",
        "sudo true",
        "su nobody -c true",
        "less /etc/passwd; more /etc/passwd; man ls",
        "$EDITOR file; vi file; nano file",
        "passwd",
        "python3",
        "bash -i -c 'read x'",
        "git log --oneline; git rebase -i HEAD",
    ],
)
async def test_a_command_that_asks_for_input_does_not_hang(command: str, shell: ShellTool, tmp_path: Path) -> None:
    output = await call_tool(shell, {"command": command, "timeout_seconds": 10}, FakeContext(tmp_path))
    assert output.effect is Effect.COMPLETED


async def test_environment_prevents_password_prompts_and_pagers(shell: ShellTool, tmp_path: Path) -> None:
    output = await call_tool(
        shell, {"command": "echo $GIT_TERMINAL_PROMPT $SUDO_ASKPASS $PAGER"}, FakeContext(tmp_path)
    )
    assert output.text == "0 /bin/false cat\n[exit code 0]"


async def test_a_missing_workspace_causes_a_clear_error(shell: ShellTool, tmp_path: Path) -> None:
    output = await call_tool(shell, {"command": "true"}, FakeContext(tmp_path / "nowhere"))
    assert output.is_error
    assert output.effect is Effect.NOT_STARTED
    assert "nowhere is not an existing directory" in output.text


async def test_a_missing_shell_causes_a_clear_error(
    shell: ShellTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    output = await call_tool(shell, {"command": "true"}, FakeContext(tmp_path))
    assert output == ToolOutput(
        "The command could not be started: neither bash nor sh is on the PATH.",
        is_error=True,
        effect=Effect.NOT_STARTED,
    )


@pytest.mark.parametrize("command", ["echo \0", "echo " + "x" * 3_000_000])
async def test_a_command_that_the_system_rejects_causes_an_error(
    command: str, shell: ShellTool, tmp_path: Path
) -> None:
    output = await call_tool(shell, {"command": command}, FakeContext(tmp_path))
    assert output.is_error
    assert output.effect is Effect.NOT_STARTED
    assert output.text.startswith("The command could not be started: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "shell needs command"),
        ({"command": 5}, "command: expected text, got a whole number."),
        ({"command": "true", "timeout_seconds": 0}, "timeout_seconds: expected a number above 0"),
        ({"command": "true", "cwd": "/"}, "shell has no argument cwd. Its arguments: command, timeout_seconds."),
    ],
)
async def test_invalid_arguments_do_not_start_a_command(
    arguments: dict[str, object], message: str, shell: ShellTool, tmp_path: Path
) -> None:
    output = await call_tool(shell, arguments, FakeContext(tmp_path))
    assert output.effect is Effect.NOT_STARTED
    assert message in output.text


async def test_the_shell_tool_is_marked_as_state_changing_and_has_a_grace_period(shell: ShellTool) -> None:
    tool: Tool = shell
    assert tool.spec.predict_effects(ShellArguments("make")) == PredictedEffects(True, "make", "make", None)
    assert tool.spec.is_changing
    assert tool.spec.grace_seconds == 0.9


async def test_a_given_environment_replaces_the_environment_of_the_calling_process(tmp_path: Path) -> None:
    shell = ShellTool(Launcher(current_owner(tmp_path), environment={"PATH": "/usr/bin:/bin", "GREETING": "hello"}))
    output = await call_tool(shell, {"command": "echo $GREETING; echo ${HOME-none}"}, FakeContext(tmp_path))
    assert output.text == "hello\nnone\n[exit code 0]"
