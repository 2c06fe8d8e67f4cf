"""The `python` tool: variables persist between calls, and cancelling kills the process."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hark.processes.cookies import current_owner
from hark.processes.launcher import Launcher
from hark.processes.tree import has_exited_within
from hark.protocol.messages import Effect
from hark.protocol.tool import ToolOutput
from hark.tools.python import PythonTool
from tests.tools.fake_context import FakeContext, call_tool, find_processes, is_alive
from tests.tools.stubborn_commands import CLEARED_DAEMON
from tests.waiting import at_most

LOST_NOTE = "[a new Python process: the earlier variables are lost because "
HOLDS_THE_INTERPRETER = "import ctypes; print(os.getpid()); ctypes.PyDLL(None).sleep(120)"


class PythonFixture:
    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.owner = current_owner(workspace)
        self.tool = PythonTool(Launcher(self.owner))

    async def run(self, code: str, session: str = "session", **arguments: float) -> ToolOutput:
        context = FakeContext(self.workspace)
        context.session = session
        return await call_tool(self.tool, {"code": code, **arguments}, context)

    async def run_for_text(self, code: str, session: str = "session") -> str:
        return (await self.run(code, session)).text

    async def cancel_when_running(self, code: str) -> tuple[float, int]:
        """Cancel code after it has printed its pid. Return the cancellation time in seconds, and the pid."""
        context = FakeContext(self.workspace)
        task = asyncio.create_task(call_tool(self.tool, {"code": f"import os\n{code}"}, context))
        await context.wait_until_shown(lambda shown: shown.endswith("\n"))
        pid = int(context.shown)
        assert is_alive(pid)
        started = time.perf_counter()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.perf_counter() - started, pid


@asynccontextmanager
async def open_fixture(workspace: Path) -> AsyncGenerator[PythonFixture]:
    fixture = PythonFixture(workspace)
    try:
        yield fixture
    finally:
        await fixture.tool.close()
        assert find_processes(fixture.owner.home) == {}


async def test_variables_and_imports_persist_and_the_last_value_is_shown(tmp_path: Path) -> None:
    async with open_fixture(tmp_path) as fixture:
        assert await fixture.run_for_text("import os\nx = 20") == "(no output)"
        assert await fixture.run_for_text("print('hi')\nos.getcwd(), x + 1, _ if False else None") == (
            f"hi\n('{tmp_path}', 21, None)"
        )
        assert await fixture.run_for_text("x", session="other") == (
            'Traceback (most recent call last):\n  File "<call 1>", line 1, in <module>\n    x\n'
            "NameError: name 'x' is not defined"
        )


async def test_a_traceback_shows_only_the_users_code(tmp_path: Path) -> None:
    async with open_fixture(tmp_path) as fixture:
        await fixture.run("def half(n):\n    return json.loads(n) / 0")
        output = await fixture.run("import json\ntry:\n    json.loads('{')\nexcept ValueError:\n    half('1')")
        assert output.is_error
        assert output.effect is Effect.COMPLETED
        assert 'File "<call 1>", line 2, in half\n    return json.loads(n) / 0' in output.text
        assert 'File "<call 2>", line 5, in <module>' in output.text
        assert output.text.count("File ") == 3
        assert output.text.endswith("ZeroDivisionError: division by zero")


@pytest.mark.parametrize(
    ("code", "message", "is_error"),
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
async def test_variables_persist_after_errors_sys_exit_and_closed_output_streams(
    code: str, message: str, is_error: bool, tmp_path: Path
) -> None:
    async with open_fixture(tmp_path) as fixture:
        await fixture.run("x = 1")
        output = await fixture.run(code, timeout_seconds=30)
        assert message in output.text
        assert output.is_error == is_error
        assert await fixture.run_for_text("print('still'); x") == "still\n1"


@pytest.mark.parametrize(
    ("code", "description"),
    [
        ("import os; print('so far', flush=True); os._exit(4)", "exited with code 4"),
        ("import os; print('so far'); os.kill(os.getpid(), 11)", "was killed by signal 11 (Segmentation fault)"),
        ("import os; print('so far'); os.closerange(3, 500)", "exited with code 0"),
    ],
)
async def test_a_process_exit_is_reported_and_the_next_call_starts_a_new_process(
    code: str, description: str, tmp_path: Path
) -> None:
    async with open_fixture(tmp_path) as fixture:
        await fixture.run("x = 1")
        output = await fixture.run(code)
        assert (
            output.text
            == f"so far\n[the Python process {description} before the code finished; its variables are lost]"
        )
        assert output.effect is Effect.UNKNOWN
        assert await fixture.run_for_text("'x' in globals()") == f"False\n{LOST_NOTE}the process {description}]"
        assert await fixture.run_for_text("1") == "1"


async def test_a_process_killed_between_two_calls_is_replaced(tmp_path: Path) -> None:
    async with open_fixture(tmp_path) as fixture:
        pid = int(await fixture.run_for_text("import os; os.getpid()"))
        os.kill(pid, signal.SIGKILL)
        assert has_exited_within(pid, 10)
        assert await fixture.run_for_text("1") == f"1\n{LOST_NOTE}the process was killed by signal 9 (Killed)]"


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
async def test_cancelling_kills_the_process_and_its_descendants_within_a_second(code: str, tmp_path: Path) -> None:
    async with open_fixture(tmp_path) as fixture:
        await fixture.run("x = 1")
        elapsed_seconds, pid = await fixture.cancel_when_running(code)
        assert elapsed_seconds < at_most(1)
        assert not is_alive(pid)
        assert find_processes(fixture.owner.home) == {}
        assert await fixture.run_for_text("'x' in globals()") == f"False\n{LOST_NOTE}the previous call was interrupted]"


async def test_code_is_killed_at_its_time_limit_and_its_output_is_returned(tmp_path: Path) -> None:
    async with open_fixture(tmp_path) as fixture:
        output = await fixture.run("print('so far')\nwhile True: pass", timeout_seconds=3)
        assert output.text == "so far\n[stopped after its time limit of 3 seconds; the Python process was killed]"
        assert output.effect is Effect.CANCELLED
        assert await fixture.run_for_text("1") == f"1\n{LOST_NOTE}the previous call reached its time limit]"


async def test_processes_started_by_the_code_live_until_the_session_ends(tmp_path: Path) -> None:
    async with open_fixture(tmp_path) as fixture:
        pid = int(await fixture.run_for_text("import subprocess; subprocess.Popen(['sleep', '120']).pid"))
        assert await fixture.run_for_text("1") == "1"
        assert is_alive(pid)
        await fixture.tool.end_session("session")
        assert not is_alive(pid)


async def test_ending_a_session_kills_its_running_code(tmp_path: Path) -> None:
    async with open_fixture(tmp_path) as fixture:
        context = FakeContext(tmp_path)
        task = asyncio.create_task(call_tool(fixture.tool, {"code": "print('on')\nwhile True: pass"}, context))
        await context.wait_until_shown(lambda shown: "on" in shown)
        await fixture.tool.end_session("session")
        output = await task
        assert "the Python process was killed by signal 9" in output.text
        assert find_processes(fixture.owner.home) == {}
        assert await fixture.run_for_text("1") == f"1\n{LOST_NOTE}the process was killed by signal 9 (Killed)]"
        await fixture.tool.close()
        assert await fixture.run_for_text("1") == "Python could not be started: Hark is shutting down."


async def test_output_is_shown_live_and_output_between_calls_is_shown_by_the_next_call(tmp_path: Path) -> None:
    async with open_fixture(tmp_path) as fixture:
        context = FakeContext(tmp_path)
        code = "import os, time\nprint('first')\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('second')"
        task = asyncio.create_task(call_tool(fixture.tool, {"code": code}, context))
        await context.wait_until_shown(lambda shown: shown == "first\n")
        (tmp_path / "go").touch()
        assert (await task).text == "first\nsecond"
        thread = "import threading; t = threading.Timer(0.05, print, ['from a thread']); t.start()"
        assert await fixture.run_for_text(thread) == "(no output)"
        assert "from a thread" in await fixture.run_for_text("t.join()")


async def test_progress_frames_are_reduced_to_the_last_one(tmp_path: Path) -> None:
    async with open_fixture(tmp_path) as fixture:
        code = "for i in range(1800): print(f'\\r{i:>50}', end='')\nprint('\\nERROR')"
        assert await fixture.run_for_text(code) == f"{1799:>50}\nERROR"


async def test_long_output_is_truncated_in_the_middle(tmp_path: Path) -> None:
    async with open_fixture(tmp_path) as fixture:
        text = await fixture.run_for_text("print('a' * 5_000_000)\n'b' * 100_000")
        assert text.startswith("aaa")
        assert text.endswith("bbb'")
        assert len(text) < 31_000


async def test_calls_in_one_session_run_one_after_another(tmp_path: Path) -> None:
    async with open_fixture(tmp_path) as fixture:
        await fixture.run("import time\nn = 0")
        add = "m = n\ntime.sleep(0.02)\nn = m + 1"
        await asyncio.gather(*(fixture.run(add) for _ in range(5)))
        assert await fixture.run_for_text("n") == "5"


async def test_cancelling_a_call_that_waits_for_another_leaves_the_process_running(tmp_path: Path) -> None:
    async with open_fixture(tmp_path) as fixture:
        context = FakeContext(tmp_path)
        code = "x = 1\nprint('on')\nimport os, time\nwhile not os.path.exists('go'): time.sleep(0.01)"
        first = asyncio.create_task(call_tool(fixture.tool, {"code": code}, context))
        await context.wait_until_shown(lambda shown: "on" in shown)
        second = asyncio.create_task(fixture.run("x = 2"))
        await asyncio.sleep(0)
        second.cancel()
        (tmp_path / "go").touch()
        await first
        assert await fixture.run_for_text("x") == "1"


async def test_the_projects_interpreter_is_used(tmp_path: Path) -> None:
    interpreter = tmp_path / ".venv" / "bin" / "python"
    interpreter.parent.mkdir(parents=True)
    interpreter.write_text('#!/bin/sh\nOWN=yes exec python3 "$@"\n')
    interpreter.chmod(0o755)
    async with open_fixture(tmp_path) as fixture:
        assert await fixture.run_for_text("import os; os.environ['OWN']") == "'yes'"


async def test_classes_defined_in_one_call_can_be_pickled_in_the_next(tmp_path: Path) -> None:
    async with open_fixture(tmp_path) as fixture:
        await fixture.run("import dataclasses, pickle\n@dataclasses.dataclass\nclass P:\n    x: int")
        assert await fixture.run_for_text("pickle.loads(pickle.dumps(P(3)))") == "P(x=3)"


async def test_invalid_arguments_do_not_start_a_process(tmp_path: Path) -> None:
    async with open_fixture(tmp_path) as fixture:
        output = await call_tool(fixture.tool, {"code": "1", "timeout_seconds": -1}, FakeContext(tmp_path))
        assert output.effect is Effect.NOT_STARTED
        assert find_processes(fixture.owner.home) == {}
        missing = await call_tool(fixture.tool, {"code": "1"}, FakeContext(tmp_path / "nowhere"))
        assert missing.text.startswith("Python could not be started: ")
