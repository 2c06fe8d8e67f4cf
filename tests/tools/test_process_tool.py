"""The process tool: what it starts outlives a call, and nothing else."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from hark.processes.background import Background
from hark.processes.cookies import Detached, Owner, this_process
from hark.processes.shell import ShellStates
from hark.processes.start import Launcher
from hark.protocol.messages import Effect
from hark.protocol.tool import Foreseen, ToolOutput
from hark.tools.process_tool import ProcessArguments, ProcessTool, is_in
from hark.tools.shell import Shell
from tests.tools.context import FakeContext, call_tool, is_living, living
from tests.waiting import at_most

GATE = "until [ -e go ]; do sleep 0.01; done"


class Bench:
    """A process tool, and the shell that it shares a session with."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.owner: Owner = this_process(workspace)
        states = ShellStates()
        launcher = Launcher(self.owner, workspace / "home")
        self.background = Background(launcher, states, Detached(workspace / "home" / "detached"))
        self.tool = ProcessTool(self.background)
        self.shell = Shell(launcher, states)

    async def act(self, action: str, context: FakeContext | None = None, **arguments: Any) -> ToolOutput:
        return await call_tool(self.tool, {"action": action, **arguments}, context or FakeContext(self.workspace))

    async def pid(self, name: str) -> int:
        """Return the pid that a process printed behind `ready`."""
        text = (await self.act("wait", id=name, pattern="ready *")).text
        found = re.search(r"ready (\d+)", text)
        assert found, text
        return int(found[1])


@asynccontextmanager
async def opened(workspace: Path) -> AsyncGenerator[Bench]:
    bench = Bench(workspace)
    try:
        yield bench
    finally:
        await bench.background.close()
        assert living(bench.owner.home) == {}


async def test_a_process_is_started_listed_read_and_stopped(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        started = await bench.act("start", command="echo ready $$; sleep 120", name="web")
        assert started.text.startswith("Started web (pid ")
        pid = await bench.pid("web")
        listed = (await bench.act("list")).text
        assert listed.startswith("web: echo ready $$; sleep 120\n  running for ")
        assert "characters to read" not in listed
        assert (await bench.act("read", id="web")).text.startswith("(no new output)\n[web: running for")
        stopped = await bench.act("stop", id="web")
        assert "[stopped]" in stopped.text
        assert not is_living(pid)
        assert "ended by signal 15 (Terminated)" in (await bench.act("list")).text


async def test_only_new_output_is_read(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        await bench.act("start", command="while read line; do echo got $line; done", name="echo")
        assert (await bench.act("write", id="echo", text="one\n")).text == "Written to echo."
        assert (await bench.act("read", id="echo", wait_seconds=30)).text.startswith("got one\n[echo: running")
        await bench.act("write", id="echo", text="two\n")
        assert (await bench.act("read", id="echo", wait_seconds=30)).text.startswith("got two\n[echo: running")
        await bench.act("write", id="echo", text="three\n", close=True)
        ended = await bench.act("wait", id="echo")
        assert ended.text.startswith("got three\n[echo: ended with exit code 0 after")
        late = await bench.act("write", id="echo", text="four\n")
        assert late.effect is Effect.NOT_STARTED
        assert late.text.startswith("echo is not running: it ended with exit code 0")


async def test_what_fails_at_once_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hark.tools.process_tool.START_SECONDS", 30)
    async with opened(tmp_path) as bench:
        output = await bench.act("start", command="nosuchserver --port 1")
        assert output.is_error
        assert "nosuchserver: command not found\n[p1: ended with exit code 127" in output.text


async def test_a_wait_ends_when_the_pattern_is_printed_or_can_never_be(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        await bench.act("start", command=f"{GATE}; echo listening on port 80; sleep 120", name="a")
        await bench.act("start", command=f"{GATE}; echo crashed; exit 3", name="b")
        (tmp_path / "go").touch()
        found = await bench.act("wait", id="a", pattern="listening*80")
        assert found.text.startswith("listening on port 80\n[it printed 'listening*80']")
        gone = await bench.act("wait", id="b", pattern="listening")
        assert gone.text.startswith("crashed\n[it never printed 'listening']\n[b: ended with exit code 3")
        late = await bench.act("wait", id="a", wait_seconds=0.05)
        assert "[waited for 0.05 s; it runs on]" in late.text


async def test_a_message_ends_a_wait_and_the_process_lives_on(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        await bench.act("start", command="echo ready $$; sleep 120", name="web")
        pid = await bench.pid("web")
        for action in ("wait", "read"):
            context = FakeContext(tmp_path)
            task = asyncio.create_task(bench.act(action, context, id="web", wait_seconds=60))
            await asyncio.sleep(0)
            context.steer()
            began = time.perf_counter()
            assert "[a message came, so this ended early; the process runs on]" in (await task).text
            assert time.perf_counter() - began < at_most(0.5)
        context = FakeContext(tmp_path)
        context.steer()
        assert (await bench.act("wait", context, wait_seconds=60)).text == "A message came: the wait ended early."
        assert is_living(pid)


async def test_a_cut_wait_leaves_the_process_and_its_output(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        await bench.act("start", command="echo hello; sleep 120", name="web")
        with anyio.move_on_after(0.1):
            await bench.act("wait", id="web", wait_seconds=60)
        assert (await bench.act("read", id="web", wait_seconds=30)).text.startswith("hello\n[web: running")


async def test_a_cut_start_leaves_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        with anyio.move_on_after(0.05) as scope:
            await bench.act("start", command="setsid sleep 120 & sleep 120")
        assert scope.cancelled_caught
        assert bench.background.of("session") == ()
        assert living(bench.owner.home) == {}


async def test_it_starts_in_the_folder_and_with_the_variables_of_the_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hark.tools.process_tool.START_SECONDS", 30)
    async with opened(tmp_path) as bench:
        await call_tool(bench.shell, {"command": "mkdir app; cd app; export PORT=3000"}, FakeContext(tmp_path))
        output = await bench.act("start", command="pwd; echo $PORT")
        assert output.text.startswith(f"{tmp_path}/app\n3000\n[p1: ended")


async def test_what_a_process_left_behind_ends_with_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        await bench.act("start", command="nohup setsid sleep 120 >/dev/null & env -i setsid sleep 120 & sleep 0.1")
        await bench.act("wait", id="p1")
        assert living(bench.owner.home) == {}


async def test_much_output_is_cut_and_whole_in_a_file(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        await bench.act("start", command=f"{GATE}; seq 100000; echo done", name="many")
        (tmp_path / "go").touch()
        text = (await bench.act("wait", id="many")).text
        assert "\n99999\n100000\ndone\n[many: ended" in text
        assert len(text) < 31_000
        file = re.search(r"the whole output is in (\S+) ", text)
        assert file, text
        whole = await anyio.Path(file[1]).read_text()
        assert whole == "".join(f"{number}\n" for number in range(1, 100001)) + "done\n"


async def test_input_that_nobody_reads_does_not_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hark.tools.process_tool.WRITE_SECONDS", 0.2)
    async with opened(tmp_path) as bench:
        await bench.act("start", command="sleep 120", name="deaf")
        output = await bench.act("write", id="deaf", text="x" * 1_000_000)
        assert output.is_error
        assert output.effect is Effect.UNKNOWN
        await bench.act("stop", id="deaf")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "process needs action"),
        ({"action": "fly"}, "action: expected one of start, list, read, write, wait, stop, got fly."),
        ({"action": "start"}, "start needs command"),
        ({"action": "read"}, "read needs id"),
        ({"action": "stop", "id": "x"}, "There is no process x in this session; there are: none."),
        ({"action": "wait", "pattern": "x"}, "wait needs id to look for a pattern"),
        ({"action": "start", "command": "echo \0"}, "The process could not be started: embedded null byte."),
    ],
)
async def test_wrong_arguments_do_nothing(arguments: dict[str, object], words: str, tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        output = await call_tool(bench.tool, arguments, FakeContext(tmp_path))
        assert output.effect is Effect.NOT_STARTED
        assert words in output.text


async def test_a_name_is_taken_as_long_as_its_process_runs(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        await bench.act("start", command="sleep 120", name="web")
        again = await bench.act("start", command="sleep 120", name="web")
        assert again.text == "A process named web runs already: stop it first, or choose another name."
        await bench.act("stop", id="web")
        assert not (await bench.act("start", command="sleep 120", name="web")).is_error


def test_what_a_call_would_do_is_foreseen(tmp_path: Path) -> None:
    foreseen = Bench(tmp_path).tool.spec.foreseen
    assert foreseen(ProcessArguments("start", command="make")) == Foreseen(True, "make", "make", None)
    assert foreseen(ProcessArguments("write", "p1")) == Foreseen(True, "write p1", "", ())
    assert foreseen(ProcessArguments("stop", "p1")) == Foreseen(True, "stop p1", "", ())
    reading = [ProcessArguments("list"), ProcessArguments("read"), ProcessArguments("wait")]
    assert [foreseen(arguments).is_changing for arguments in reading] == [False] * 3


def test_a_pattern_is_plain_text_with_stars() -> None:
    assert is_in("a*c", "xx\nabbbc\n")
    assert not is_in("a*c", "a\nc")
    assert is_in("(a+)+$", "see (a+)+$ there")
    assert not is_in("*" * 1000 + "b", "a" * 100_000)
