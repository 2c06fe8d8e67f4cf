"""The `process` tool: background processes outlive a call but not their session."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from hark.processes.background import BackgroundProcesses
from hark.processes.cookies import DetachedProcesses, ProcessOwner, current_owner
from hark.processes.launcher import Launcher
from hark.processes.shell import ShellStates
from hark.protocol.messages import Effect
from hark.protocol.tool import PredictedEffects, ToolOutput
from hark.tools.process_tool import ProcessArguments, ProcessTool, contains_pattern
from hark.tools.shell import ShellTool
from tests.tools.fake_context import FakeContext, call_tool, find_processes, is_alive
from tests.waiting import at_most

GATE = "until [ -e go ]; do sleep 0.01; done"


class ProcessFixture:
    """A process tool, and a shell that shares its session."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.owner: ProcessOwner = current_owner(workspace)
        states = ShellStates()
        launcher = Launcher(self.owner, workspace / "home")
        self.background = BackgroundProcesses(launcher, states, DetachedProcesses(workspace / "home" / "detached"))
        self.tool = ProcessTool(self.background)
        self.shell = ShellTool(launcher, states)

    async def call(self, action: str, context: FakeContext | None = None, **arguments: Any) -> ToolOutput:
        return await call_tool(self.tool, {"action": action, **arguments}, context or FakeContext(self.workspace))

    async def wait_for_pid(self, name: str) -> int:
        """Return the pid that a process printed after `ready`."""
        text = (await self.call("wait", id=name, pattern="ready *")).text
        found = re.search(r"ready (\d+)", text)
        assert found, text
        return int(found[1])


@asynccontextmanager
async def open_fixture(workspace: Path) -> AsyncGenerator[ProcessFixture]:
    fixture = ProcessFixture(workspace)
    try:
        yield fixture
    finally:
        await fixture.background.close()
        assert find_processes(fixture.owner.home) == {}


async def test_a_process_can_be_started_listed_read_and_stopped(tmp_path: Path) -> None:
    async with open_fixture(tmp_path) as fixture:
        started = await fixture.call("start", command="echo ready $$; sleep 120", name="web")
        assert started.text.startswith("Started web (pid ")
        pid = await fixture.wait_for_pid("web")
        listed = (await fixture.call("list")).text
        assert listed.startswith("web: echo ready $$; sleep 120\n  running for ")
        assert "unread characters" not in listed
        assert (await fixture.call("read", id="web")).text.startswith("(no new output)\n[web: running for")
        stopped = await fixture.call("stop", id="web")
        assert "[stopped]" in stopped.text
        assert not is_alive(pid)
        assert "ended by signal 15 (Terminated)" in (await fixture.call("list")).text


async def test_read_returns_only_new_output(tmp_path: Path) -> None:
    async with open_fixture(tmp_path) as fixture:
        await fixture.call("start", command="while read line; do echo got $line; done", name="echo")
        assert (await fixture.call("write", id="echo", text="one\n")).text == "Wrote to echo."
        assert (await fixture.call("read", id="echo", wait_seconds=30)).text.startswith("got one\n[echo: running")
        await fixture.call("write", id="echo", text="two\n")
        assert (await fixture.call("read", id="echo", wait_seconds=30)).text.startswith("got two\n[echo: running")
        await fixture.call("write", id="echo", text="three\n", close=True)
        ended = await fixture.call("wait", id="echo")
        assert ended.text.startswith("got three\n[echo: ended with exit code 0 after")
        late = await fixture.call("write", id="echo", text="four\n")
        assert late.effect is Effect.NOT_STARTED
        assert late.text.startswith("echo is not running: it ended with exit code 0")


async def test_a_command_that_fails_immediately_is_reported_by_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hark.tools.process_tool.START_SECONDS", 30)
    async with open_fixture(tmp_path) as fixture:
        output = await fixture.call("start", command="nosuchserver --port 1")
        assert output.is_error
        assert "nosuchserver: command not found\n[p1: ended with exit code 127" in output.text


async def test_wait_ends_when_the_pattern_is_printed_or_the_process_ends(tmp_path: Path) -> None:
    async with open_fixture(tmp_path) as fixture:
        await fixture.call("start", command=f"{GATE}; echo listening on port 80; sleep 120", name="a")
        await fixture.call("start", command=f"{GATE}; echo crashed; exit 3", name="b")
        (tmp_path / "go").touch()
        found = await fixture.call("wait", id="a", pattern="listening*80")
        assert found.text.startswith("listening on port 80\n[it printed 'listening*80']")
        gone = await fixture.call("wait", id="b", pattern="listening")
        assert gone.text.startswith("crashed\n[it never printed 'listening']\n[b: ended with exit code 3")
        late = await fixture.call("wait", id="a", wait_seconds=0.05)
        assert "[waited 0.05 s; it is still running]" in late.text


async def test_a_steering_message_ends_a_wait_and_the_process_continues(tmp_path: Path) -> None:
    async with open_fixture(tmp_path) as fixture:
        await fixture.call("start", command="echo ready $$; sleep 120", name="web")
        pid = await fixture.wait_for_pid("web")
        for action in ("wait", "read"):
            context = FakeContext(tmp_path)
            task = asyncio.create_task(fixture.call(action, context, id="web", wait_seconds=60))
            await asyncio.sleep(0)
            context.steer()
            started = time.perf_counter()
            assert "[a message arrived, so the wait ended early; the process is still running]" in (await task).text
            assert time.perf_counter() - started < at_most(0.5)
        context = FakeContext(tmp_path)
        context.steer()
        assert (
            await fixture.call("wait", context, wait_seconds=60)
        ).text == "A message arrived, so the wait ended early."
        assert is_alive(pid)


async def test_cancelling_a_wait_affects_neither_the_process_nor_its_output(tmp_path: Path) -> None:
    async with open_fixture(tmp_path) as fixture:
        await fixture.call("start", command="echo hello; sleep 120", name="web")
        with anyio.move_on_after(0.1):
            await fixture.call("wait", id="web", wait_seconds=60)
        assert (await fixture.call("read", id="web", wait_seconds=30)).text.startswith("hello\n[web: running")


async def test_cancelling_a_start_leaves_no_process(tmp_path: Path) -> None:
    async with open_fixture(tmp_path) as fixture:
        with anyio.move_on_after(0.05) as scope:
            await fixture.call("start", command="setsid sleep 120 & sleep 120")
        assert scope.cancelled_caught
        assert fixture.background.list_processes("session") == ()
        assert find_processes(fixture.owner.home) == {}


async def test_a_process_starts_in_the_shells_folder_with_its_exported_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hark.tools.process_tool.START_SECONDS", 30)
    async with open_fixture(tmp_path) as fixture:
        await call_tool(fixture.shell, {"command": "mkdir app; cd app; export PORT=3000"}, FakeContext(tmp_path))
        output = await fixture.call("start", command="pwd; echo $PORT")
        assert output.text.startswith(f"{tmp_path}/app\n3000\n[p1: ended")


async def test_processes_left_by_a_background_process_are_killed_when_it_ends(tmp_path: Path) -> None:
    async with open_fixture(tmp_path) as fixture:
        await fixture.call("start", command="nohup setsid sleep 120 >/dev/null & env -i setsid sleep 120 & sleep 0.1")
        await fixture.call("wait", id="p1")
        assert find_processes(fixture.owner.home) == {}


async def test_progress_frames_of_a_process_are_reduced_to_the_last_one(tmp_path: Path) -> None:
    frames = r"for i in {1..1800}; do printf 'a: %d\nb: %060d\n\e[2A' $i 0; done; printf '\n\n'; "
    async with open_fixture(tmp_path) as fixture:
        await fixture.call("start", command=f"{GATE}; echo ERROR: x; {frames} {frames}", name="bars")
        (tmp_path / "go").touch()
        text = (await fixture.call("wait", id="bars")).text
        bars = f"a: 1800\nb: {'0' * 60}\n"
        assert text.startswith(f"ERROR: x\n{bars}{bars[:-1]}\n[bars: ended")
        assert (await fixture.call("read", id="bars")).text.startswith("(no new output)")


async def test_long_output_is_truncated_and_saved_completely_in_a_file(tmp_path: Path) -> None:
    async with open_fixture(tmp_path) as fixture:
        await fixture.call("start", command=f"{GATE}; seq 100000; echo done", name="many")
        (tmp_path / "go").touch()
        text = (await fixture.call("wait", id="many")).text
        assert "\n99999\n100000\ndone\n[many: ended" in text
        assert len(text) < 31_000
        file = re.search(r"the full output is in (\S+) ", text)
        assert file, text
        full_output = await anyio.Path(file[1]).read_text()
        assert full_output == "".join(f"{number}\n" for number in range(1, 100001)) + "done\n"


async def test_writing_to_a_process_that_does_not_read_times_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hark.tools.process_tool.WRITE_SECONDS", 0.2)
    async with open_fixture(tmp_path) as fixture:
        await fixture.call("start", command="sleep 120", name="deaf")
        output = await fixture.call("write", id="deaf", text="x" * 1_000_000)
        assert output.is_error
        assert output.effect is Effect.UNKNOWN
        await fixture.call("stop", id="deaf")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "process needs action"),
        ({"action": "fly"}, "action: expected one of start, list, read, write, wait, stop, got fly."),
        ({"action": "start"}, "start needs a command"),
        ({"action": "read"}, "read needs id"),
        ({"action": "stop", "id": "x"}, "No process named x in this session. Processes: none."),
        ({"action": "wait", "pattern": "x"}, "wait needs id to search for a pattern"),
        ({"action": "start", "command": "echo \0"}, "The process could not be started: embedded null byte."),
    ],
)
async def test_invalid_arguments_are_rejected_without_effect(
    arguments: dict[str, object], message: str, tmp_path: Path
) -> None:
    async with open_fixture(tmp_path) as fixture:
        output = await call_tool(fixture.tool, arguments, FakeContext(tmp_path))
        assert output.effect is Effect.NOT_STARTED
        assert message in output.text


async def test_a_name_can_be_used_again_only_after_its_process_ended(tmp_path: Path) -> None:
    async with open_fixture(tmp_path) as fixture:
        await fixture.call("start", command="sleep 120", name="web")
        again = await fixture.call("start", command="sleep 120", name="web")
        assert again.text == "A process named web is already running. Stop it first, or choose another name."
        await fixture.call("stop", id="web")
        assert not (await fixture.call("start", command="sleep 120", name="web")).is_error


def test_the_effects_of_each_action_are_predicted(tmp_path: Path) -> None:
    predict = ProcessFixture(tmp_path).tool.spec.predict_effects
    assert predict(ProcessArguments("start", command="make")) == PredictedEffects(True, "make", "make", None)
    assert predict(ProcessArguments("write", "p1")) == PredictedEffects(True, "write p1", "", ())
    assert predict(ProcessArguments("stop", "p1")) == PredictedEffects(True, "stop p1", "", ())
    reading = [ProcessArguments("list"), ProcessArguments("read"), ProcessArguments("wait")]
    assert [predict(arguments).is_changing for arguments in reading] == [False] * 3


def test_a_pattern_is_plain_text_in_which_a_star_matches_any_text_within_a_line() -> None:
    assert contains_pattern("a*c", "xx\nabbbc\n")
    assert not contains_pattern("a*c", "a\nc")
    assert contains_pattern("(a+)+$", "see (a+)+$ there")
    assert not contains_pattern("*" * 1000 + "b", "a" * 100_000)
