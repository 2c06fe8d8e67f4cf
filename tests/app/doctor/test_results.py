"""The checks in `hark doctor` are bounded in time, and their results fit the terminal's width."""

import asyncio
import socket
import threading
from contextlib import ExitStack

import pytest

from hark.app.doctor.machine import check_terminal
from hark.app.doctor.results import CheckResult, Level, connection_problem, run_check
from hark.text.columns import TerminalStyle, display_width
from tests.waiting import at_most


async def test_a_check_that_hangs_is_abandoned_with_a_warning() -> None:
    released = threading.Event()

    def hang() -> list[CheckResult]:
        released.wait()
        return []

    (result,) = await run_check("disk", hang, seconds=0.05)
    released.set()
    assert result.level is Level.WARN
    assert "abandoned" in result.text


async def test_a_check_that_fails_is_reported_as_bad() -> None:
    def fail() -> list[CheckResult]:
        raise PermissionError("not yours")

    (result,) = await run_check("disk", fail)
    assert (result.level, result.text) == (Level.BAD, "Check failed: not yours.")


async def test_a_url_without_a_listening_server_is_reported_immediately() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert await connection_problem(f"http://127.0.0.1:{port}") == ""
    assert "no server listening" in await connection_problem(f"http://127.0.0.1:{port}")
    assert "not found" in await connection_problem("https://no-such-host.invalid")


async def test_a_connection_attempt_that_hangs_is_abandoned_after_the_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hark.app.doctor.results.CONNECT_TIMEOUT_SECONDS", 0.2)
    with ExitStack() as stack:
        full = stack.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):  # fill the backlog, so that later connections hang
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(full.getsockname())
        async with asyncio.timeout(at_most(5)):
            assert await connection_problem(f"http://127.0.0.1:{full.getsockname()[1]}")


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_result_fits_the_terminals_width(columns: int) -> None:
    result = CheckResult("database", Level.BAD, "a long text about it " * 9, "do this and that " * 9)
    lines = result.lines(TerminalStyle(columns))
    assert max(map(display_width, lines)) <= columns
    assert lines[0].startswith("bad   database    a long")
    assert any(line.strip().startswith("-> do this") for line in lines)


def test_doctor_reports_no_problem_when_the_output_is_not_a_terminal() -> None:
    assert [finding.level for finding in check_terminal()] == [Level.OK]
