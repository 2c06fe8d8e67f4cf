"""A look of the doctor is bounded, whatever it looks at, and is told within the terminal's width."""

import asyncio
import socket
import threading
from contextlib import ExitStack

import pytest

from hark.app.doctor.machine import terminal
from hark.app.doctor.results import Finding, Level, in_time, reach
from hark.text.columns import TerminalStyle, width
from tests.waiting import at_most


async def test_a_look_that_hangs_is_given_up_and_holds_nothing() -> None:
    released = threading.Event()

    def hang() -> list[Finding]:
        released.wait()
        return []

    (finding,) = await in_time("disk", hang, seconds=0.05)
    released.set()
    assert finding.level is Level.WARN
    assert "given up" in finding.text


async def test_a_look_that_fails_is_a_finding() -> None:
    def fail() -> list[Finding]:
        raise PermissionError("not yours")

    (finding,) = await in_time("disk", fail)
    assert (finding.level, finding.text) == (Level.BAD, "It can't be looked at: not yours.")


async def test_an_address_where_nothing_listens_is_told_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert await reach(f"http://127.0.0.1:{port}") == ""
    assert "nothing listens" in await reach(f"http://127.0.0.1:{port}")
    assert "is not known" in await reach("https://no-such-host.invalid")


async def test_a_server_that_does_not_even_connect_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hark.app.doctor.results.REACH_SECONDS", 0.2)
    with ExitStack() as stack:
        full = stack.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):  # those who wait before us: what comes behind them hangs
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        async with asyncio.timeout(at_most(5)):
            assert await reach(f"http://127.0.0.1:{full.getsockname()[1]}")


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_finding_fits_the_terminal(columns: int) -> None:
    finding = Finding("database", Level.BAD, "a long text about it " * 9, "do this and that " * 9)
    lines = finding.lines(TerminalStyle(columns))
    assert max(map(width, lines)) <= columns
    assert lines[0].startswith("bad   database    a long")
    assert any(line.strip().startswith("-> do this") for line in lines)


def test_what_is_no_terminal_is_told_so() -> None:
    assert [finding.level for finding in terminal()] == [Level.OK]
