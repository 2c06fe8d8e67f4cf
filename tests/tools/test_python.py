"""The python tool: variables stay, and a cut ends all of it."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hark.processes.cookies import this_process
from hark.processes.start import Launcher
from hark.processes.tree import has_exited
from hark.protocol.messages import Effect
from hark.protocol.tool import ToolOutput
from hark.tools.python import PythonTool
from tests.tools.context import FakeContext, call_tool, is_living, living
from tests.tools.stubborn_commands import CLEARED_DAEMON
from tests.waiting import at_most

LOST = "[a new Python process: the earlier variables are lost, since "
HOLDS_THE_INTERPRETER = "import ctypes; print(os.getpid()); ctypes.PyDLL(None).sleep(120)"


class Bench:
    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.owner = this_process(workspace)
        self.tool = PythonTool(Launcher(self.owner))

    async def run(self, code: str, session: str = "session", **arguments: float) -> ToolOutput:
        context = FakeContext(self.workspace)
        context.session = session
        return await call_tool(self.tool, {"code": code, **arguments}, context)

    async def says(self, code: str, session: str = "session") -> str:
        return (await self.run(code, session)).text

    async def cut(self, code: str) -> tuple[float, int]:
        """Cancel code when it has printed its pid; return how long that took, and the pid."""
        context = FakeContext(self.workspace)
        task = asyncio.create_task(call_tool(self.tool, {"code": f"import os\n{code}"}, context))
        await context.until(lambda shown: shown.endswith("\n"))
        pid = int(context.shown)
        assert is_living(pid)
        began = time.perf_counter()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.perf_counter() - began, pid


@asynccontextmanager
async def opened(workspace: Path) -> AsyncGenerator[Bench]:
    bench = Bench(workspace)
    try:
        yield bench
    finally:
        await bench.tool.close()
        assert living(bench.owner.home) == {}


async def test_variables_and_imports_stay_and_the_last_value_is_shown(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        assert await bench.says("import os\nx = 20") == "(no output)"
        assert await bench.says("print('hi')\nos.getcwd(), x + 1, _ if False else None") == (
            f"hi\n('{tmp_path}', 21, None)"
        )
        assert await bench.says("x", session="other") == (
            'Traceback (most recent call last):\n  File "<call 1>", line 1, in <module>\n    x\n'
            "NameError: name 'x' is not defined"
        )


async def test_a_traceback_shows_the_code_alone(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        await bench.run("def half(n):\n    return json.loads(n) / 0")
        output = await bench.run("import json\ntry:\n    json.loads('{')\nexcept ValueError:\n    half('1')")
        assert output.is_error
        assert output.effect is Effect.COMPLETED
        assert 'File "<call 1>", line 2, in half\n    return json.loads(n) / 0' in output.text
        assert 'File "<call 2>", line 5, in <module>' in output.text
        assert output.text.count("File ") == 3
        assert output.text.endswith("ZeroDivisionError: division by zero")


@pytest.mark.parametrize(
    ("code", "words", "is_error"),
    [
        ("if x", "SyntaxError: expected ':'", True),
        ("raise SystemExit(3)", "[sys.exit(3) ended the code]", True),
        ("import sys; sys.exit()", "[sys.exit(None) ended the code]", False),
        ("input('name? ')", "EOFError: EOF when reading a line", True),
        ("import os; os.close(1); os.close(2)", "(no output)", False),
        ("import sys; sys.stdout.close(); sys.stderr = None", "(no output)", False),
        ("import os; pid = os.fork(); pid and os.waitpid(pid, 0)[1]", "0", False),
        ("raise type('E', (Exception,), {'__str__': lambda self: 1 / 0})", "E: <exception str() failed>", True),
        ("raise KeyboardInterrupt", "KeyboardInterrupt", True),
        ("def f(): f()\nf()", "RecursionError: maximum recursion depth exceeded", True),
        ("'\\ud800', print('\\ud800')", "?\n('\\ud800', None)", False),
        ("import os; os.write(1, b'\\xff\\n')", "\ufffd\n2", False),
    ],
)
async def test_whatever_the_code_does_the_variables_stay(code: str, words: str, is_error: bool, tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        await bench.run("x = 1")
        output = await bench.run(code, timeout_seconds=30)
        assert words in output.text
        assert output.is_error == is_error
        assert await bench.says("print('still'); x") == "still\n1"


@pytest.mark.parametrize(
    ("code", "how"),
    [
        ("import os; print('so far', flush=True); os._exit(4)", "left with exit code 4"),
        ("import os; print('so far'); os.kill(os.getpid(), 11)", "was ended by signal 11 (Segmentation fault)"),
        ("import os; print('so far'); os.closerange(3, 500)", "left with exit code 0"),
    ],
)
async def test_the_end_of_the_process_is_told_and_the_next_call_has_a_new_one(
    code: str, how: str, tmp_path: Path
) -> None:
    async with opened(tmp_path) as bench:
        await bench.run("x = 1")
        output = await bench.run(code)
        assert output.text == f"so far\n[the Python process {how} before the code had ended; its variables are lost]"
        assert output.effect is Effect.UNKNOWN
        assert await bench.says("'x' in globals()") == f"False\n{LOST}the process {how}]"
        assert await bench.says("1") == "1"


async def test_a_process_that_was_killed_between_two_calls_is_replaced(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        pid = int(await bench.says("import os; os.getpid()"))
        os.kill(pid, signal.SIGKILL)
        assert has_exited(pid, 10)
        assert await bench.says("1") == f"1\n{LOST}the process was ended by signal 9 (Killed)]"


@pytest.mark.parametrize(
    "code",
    [
        "print(os.getpid())\nwhile True: pass",
        HOLDS_THE_INTERPRETER,
        "import signal\nfor n in (2, 15, 1): signal.signal(n, signal.SIG_IGN)\nprint(os.getpid())\nsignal.pause()",
        "import subprocess\nsubprocess.run(['setsid', 'sh', '-c', 'echo $$; exec sleep 120'])",
        f"import subprocess\nsubprocess.run({CLEARED_DAEMON.replace('ready ', '')!r}, shell=True)",
        "from threading import *; t = Thread(target=Event().wait); t.start()\nprint(os.getpid())\nt.join()",
    ],
    ids=["loop", "holds_the_interpreter", "ignores_signals", "daemon", "cleared_daemon", "thread"],
)
async def test_a_cut_ends_all_of_it_in_under_a_second(code: str, tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        await bench.run("x = 1")
        took, pid = await bench.cut(code)
        assert took < at_most(1)
        assert not is_living(pid)
        assert living(bench.owner.home) == {}
        assert await bench.says("'x' in globals()") == f"False\n{LOST}the call before was cut]"


async def test_a_time_limit_ends_it_and_keeps_what_was_printed(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        output = await bench.run("print('so far')\nwhile True: pass", timeout_seconds=3)
        assert output.text == "so far\n[stopped after its time limit of 3 seconds; the Python process is gone]"
        assert output.effect is Effect.CANCELLED
        assert await bench.says("1") == f"1\n{LOST}the call before ran into its time limit]"


async def test_what_the_code_started_lives_until_the_session_ends(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        pid = int(await bench.says("import subprocess; subprocess.Popen(['sleep', '120']).pid"))
        assert await bench.says("1") == "1"
        assert is_living(pid)
        await bench.tool.end("session")
        assert not is_living(pid)


async def test_the_end_of_a_session_ends_code_that_runs(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        context = FakeContext(tmp_path)
        task = asyncio.create_task(call_tool(bench.tool, {"code": "print('on')\nwhile True: pass"}, context))
        await context.until(lambda shown: "on" in shown)
        await bench.tool.end("session")
        output = await task
        assert "the Python process was ended by signal 9" in output.text
        assert living(bench.owner.home) == {}
        assert await bench.says("1") == f"1\n{LOST}the process was ended by signal 9 (Killed)]"
        await bench.tool.close()
        assert await bench.says("1") == "Python could not be started: the app is ending."


async def test_output_is_shown_while_the_code_runs_and_between_calls_it_waits(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        context = FakeContext(tmp_path)
        code = "import os, time\nprint('first')\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('second')"
        task = asyncio.create_task(call_tool(bench.tool, {"code": code}, context))
        await context.until(lambda shown: shown == "first\n")
        (tmp_path / "go").touch()
        assert (await task).text == "first\nsecond"
        thread = "import threading; t = threading.Timer(0.05, print, ['from a thread']); t.start()"
        assert await bench.says(thread) == "(no output)"
        assert "from a thread" in await bench.says("t.join()")


async def test_huge_output_is_cut_in_the_middle(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        text = await bench.says("print('a' * 5_000_000)\n'b' * 100_000")
        assert text.startswith("aaa")
        assert text.endswith("bbb'")
        assert len(text) < 31_000


async def test_calls_of_a_session_run_one_after_the_other(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        await bench.run("import time\nn = 0")
        add = "m = n\ntime.sleep(0.02)\nn = m + 1"
        await asyncio.gather(*(bench.run(add) for _ in range(5)))
        assert await bench.says("n") == "5"


async def test_a_call_that_only_waited_for_its_turn_ends_nothing_when_it_is_cut(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        context = FakeContext(tmp_path)
        code = "x = 1\nprint('on')\nimport os, time\nwhile not os.path.exists('go'): time.sleep(0.01)"
        first = asyncio.create_task(call_tool(bench.tool, {"code": code}, context))
        await context.until(lambda shown: "on" in shown)
        second = asyncio.create_task(bench.run("x = 2"))
        await asyncio.sleep(0)
        second.cancel()
        (tmp_path / "go").touch()
        await first
        assert await bench.says("x") == "1"


async def test_the_interpreter_of_the_project_is_used(tmp_path: Path) -> None:
    own = tmp_path / ".venv" / "bin" / "python"
    own.parent.mkdir(parents=True)
    own.write_text('#!/bin/sh\nOWN=yes exec python3 "$@"\n')
    own.chmod(0o755)
    async with opened(tmp_path) as bench:
        assert await bench.says("import os; os.environ['OWN']") == "'yes'"


async def test_classes_of_one_call_can_be_pickled_in_the_next(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        await bench.run("import dataclasses, pickle\n@dataclasses.dataclass\nclass P:\n    x: int")
        assert await bench.says("pickle.loads(pickle.dumps(P(3)))") == "P(x=3)"


async def test_wrong_arguments_start_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        output = await call_tool(bench.tool, {"code": "1", "timeout_seconds": -1}, FakeContext(tmp_path))
        assert output.effect is Effect.NOT_STARTED
        assert living(bench.owner.home) == {}
        missing = await call_tool(bench.tool, {"code": "1"}, FakeContext(tmp_path / "nowhere"))
        assert missing.text.startswith("Python could not be started: ")
