"""A test that hangs fails in time, with its name and stacks. The tests after it run as usual."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import time_limit
from tests.time_limit import DEFAULT_SECONDS, busy_factor
from tests.waiting import UNTIL_SECONDS

ROOT = Path(__file__).parents[1]

HANGS = """
import asyncio, threading, time
import pytest

async def wait_forever():
    await asyncio.Event().wait()

async def test_coroutine():
    await wait_forever()

async def test_background_task_is_reported():
    task = asyncio.create_task(wait_forever(), name="background")
    await asyncio.Event().wait()

async def test_blocked_loop():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()

async def test_blocked_background_task():
    async def block():
        time.sleep(100)
    task = asyncio.create_task(block())
    await asyncio.Event().wait()

async def test_ignored_cancellation():
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass

async def test_caught_cancellation():
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return

def test_caught_exception():
    while True:
        try:
            threading.Event().wait()
        except Exception:
            pass

def test_busy_loop():
    while True:
        pass

@pytest.fixture
def endless():
    time.sleep(100)

def test_setup(endless):
    pass

@pytest.fixture
def never_closed():
    yield
    time.sleep(100)

def test_teardown(never_closed):
    pass

@pytest.mark.time_limit(60, reason="takes longer than the others")
async def test_marked_test_passes():
    await asyncio.sleep(0.8)

def test_next_test_passes():
    pass
"""


def test_tests_that_hang_fail_with_their_names_and_stacks(tmp_path: Path) -> None:
    (tmp_path / "test_hangs.py").write_text(HANGS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--rootdir",
        tmp_path,
        "-c",
        ROOT / "pyproject.toml",
        "-p",
        "no:cacheprovider",
    ]
    options = ["-o", "test_seconds=0.6", "-rA", tmp_path / "test_hangs.py"]
    output = subprocess.run(
        [*command, *options], capture_output=True, text=True, check=False, timeout=50, cwd=ROOT
    ).stdout
    lines = output.splitlines()
    failed = {
        line.split("::")[1].split(" ")[0] for line in lines if line.startswith(("FAILED ", "ERROR ")) and "::" in line
    }
    assert failed == {line.split("(")[0].split()[-1] for line in HANGS.splitlines() if "def test_" in line} - {
        "test_marked_test_passes",
        "test_next_test_passes",
    }, output
    assert "test_coroutine (call) exceeded its time limit of 0.6 s" in output
    assert "test_setup (setup) exceeded" in output
    assert "test_teardown (teardown) exceeded" in output
    assert output.count("in wait_forever") >= 2, "the stack of a task has the innermost coroutine"
    assert "--- task background" in output
    assert "--- thread MainThread" in output
    assert "PASSED" in next(line for line in lines if "::test_marked_test_passes" in line)
    assert "PASSED" in next(line for line in lines if "::test_next_test_passes" in line)


@pytest.mark.parametrize(("load", "factor"), [(0.0, 1.0), (3.9, 1.0), (8.0, 2.0), (100.0, 3.0)])
def test_the_limit_grows_with_the_load_of_an_overloaded_machine(
    monkeypatch: pytest.MonkeyPatch, load: float, factor: float
) -> None:
    monkeypatch.setattr(time_limit.os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(time_limit.os, "cpu_count", lambda: 2)
    assert busy_factor() == factor


def test_a_condition_that_never_holds_fails_before_the_time_limit() -> None:
    assert UNTIL_SECONDS < DEFAULT_SECONDS * (1 - 2 * time_limit.CLEANUP_PART)
