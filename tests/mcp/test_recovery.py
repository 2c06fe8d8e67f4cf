"""Recovery of MCP servers: waits for slow starts, retries after failures, and restarts by request."""

import asyncio
import time
from pathlib import Path
from typing import Any

from hark.mcp.retry_policy import RetryPolicy
from hark.mcp.server_offer import ServerState
from hark.mcp.settings import read_servers
from hark.protocol.messages import Effect
from tests.mcp.mcp_fixture import (
    QUICK_RETRIES,
    ServersFixture,
    running_servers,
    small_server_settings,
    starting_servers,
    wait_for_note,
)
from tests.tools.fake_context import find_processes
from tests.waiting import at_most, until

DAY_SECONDS = 86_400.0
RARE_RETRIES = RetryPolicy(first_seconds=0.02, rest_seconds=0.0, failed_seconds=DAY_SECONDS)


def slow_server(folder: Path, **settings: Any) -> dict[str, Any]:
    """Return the settings of a server that starts when the file `may_start` exists."""
    return small_server_settings("slow", env={"MAY_START": str(folder / "may_start")}, **settings)


def failing_server(folder: Path, failures: int) -> dict[str, Any]:
    """Return the settings of a server whose first starts fail."""
    return small_server_settings("fails", env={"NOTES": str(folder / "notes"), "FAILS": str(failures)})


def count_starts(folder: Path) -> int:
    notes = folder / "notes"
    return notes.read_text().count("started") if notes.exists() else 0


def tool_count(fixture: ServersFixture) -> int:
    return len(fixture.servers.tools())


async def test_a_wait_ends_when_the_slow_server_has_listed_its_tools(tmp_path: Path) -> None:
    notices: list[str] = []
    async with starting_servers(tmp_path, one=slow_server(tmp_path)) as fixture:
        wait = asyncio.create_task(fixture.servers.wait_until_ready("a", notices.append))
        await until(lambda: notices != [])
        assert not wait.done()
        (tmp_path / "may_start").touch()
        await wait
        assert tool_count(fixture) > 0
    assert notices == ["Waiting for MCP servers to start: one (at most 30 s)."]


async def test_a_wait_in_vain_ends_after_the_time_in_the_settings_and_is_not_repeated(tmp_path: Path) -> None:
    notices: list[str] = []
    async with starting_servers(tmp_path, one=slow_server(tmp_path, wait_seconds=0.3)) as fixture:
        started_at = time.perf_counter()
        await fixture.servers.wait_until_ready("a", notices.append)
        duration = time.perf_counter() - started_at
        started_at = time.perf_counter()
        await fixture.servers.wait_until_ready("a", notices.append)
        second_duration = time.perf_counter() - started_at
        assert len(notices) == 2
        (tmp_path / "may_start").touch()
        await fixture.servers.wait_for_state(ServerState.CONNECTED)
        await fixture.servers.wait_until_ready("a", notices.append)
        await fixture.servers.wait_until_ready("a", notices.append)
    assert 0.3 <= duration < at_most(3)
    assert second_duration < 0.2
    assert notices[1].startswith("Continuing without the MCP server one: it is still starting.")
    assert notices[2].startswith("The MCP server one is ready.")
    assert len(notices) == 3


async def test_a_turn_does_not_wait_when_the_wait_is_set_to_zero(tmp_path: Path) -> None:
    notices: list[str] = []
    async with starting_servers(tmp_path, one=slow_server(tmp_path, wait_seconds=0)) as fixture:
        await fixture.servers.wait_until_ready("a", notices.append)
    assert [notice.split(":")[0] for notice in notices] == ["Continuing without the MCP server one"]


async def test_a_wait_that_ended_early_does_not_shorten_the_next_one(tmp_path: Path) -> None:
    """A process that ended while its server was starting leaves no memory of it."""
    async with starting_servers(tmp_path, one=slow_server(tmp_path)) as fixture:
        wait = asyncio.create_task(fixture.servers.wait_until_ready("a", lambda _: None))
        await until(lambda: find_processes(fixture.cookie) != {})
        wait.cancel()
    async with starting_servers(tmp_path, one=slow_server(tmp_path)) as fixture:
        wait = asyncio.create_task(fixture.servers.wait_until_ready("a", lambda _: None))
        await until(lambda: find_processes(fixture.cookie) != {})
        (tmp_path / "may_start").touch()
        await wait
        assert tool_count(fixture) > 0


async def test_the_wait_ends_when_the_first_start_fails_and_names_the_reason(tmp_path: Path) -> None:
    notices: list[str] = []
    policy = RetryPolicy(first_seconds=DAY_SECONDS)
    async with starting_servers(tmp_path, policy, one=small_server_settings("exit")) as fixture:
        await fixture.servers.wait_until_ready("a", notices.append)
        status = fixture.servers.status()[0]
    assert "Continuing without the MCP server one: exit code 1: I can't start" in notices[1]
    assert status.state is ServerState.WAITING
    assert status.retry_seconds is not None
    assert "next attempt in" in status.text


async def test_a_server_that_fails_seven_times_is_retried_until_it_works(tmp_path: Path) -> None:
    policy = RetryPolicy(first_seconds=0.01, failed_seconds=0.05)
    notices: list[str] = []
    async with starting_servers(tmp_path, policy, one=failing_server(tmp_path, 7)) as fixture:
        await fixture.servers.wait_until_ready("a", notices.append)
        await fixture.servers.wait_for_state(ServerState.CONNECTED)
        await fixture.servers.wait_until_ready("a", notices.append)
        assert tool_count(fixture) > 0
        assert fixture.servers.status()[0].restarts == 7
    assert count_starts(tmp_path) == 8
    assert notices[-1].startswith("The MCP server one is ready.")
    assert fixture.notices[1:] == ["The MCP server one is connected again."]


def test_a_failed_server_is_retried_at_most_once_a_minute() -> None:
    delays = [RetryPolicy().create_failed_backoff().next_delay() for _ in range(20)]
    assert min(delays) >= 60
    assert max(delays) <= 72


async def test_a_failed_server_is_retried_at_once_by_a_restart_which_reports_its_result(tmp_path: Path) -> None:
    reports: list[str] = []
    async with starting_servers(tmp_path, RARE_RETRIES, one=failing_server(tmp_path, 6)) as fixture:
        await fixture.servers.wait_for_state(ServerState.FAILED)
        assert fixture.servers.restart("one", reports.append) == "Restarting the MCP server one."
        await until(lambda: len(reports) == 1)
        await fixture.servers.wait_for_state(ServerState.CONNECTED)  # the quick retries have started again
        fixture.servers.restart("one", reports.append)
        await until(lambda: len(reports) == 2)
        assert "No MCP server named 'two'. Configured servers: one." in fixture.servers.restart("two", reports.append)
    assert reports[0] == "The MCP server one failed: exit code 1: I can't start yet."
    assert reports[1].startswith("The MCP server one is connected. It has ")


async def test_a_restart_ends_the_old_process_and_its_calls_and_turns_wait_for_the_new_one(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notices: list[str] = []
    async with running_servers(tmp_path, one=small_server_settings(env={"NOTES": str(notes)})) as fixture:
        old_pid = fixture.pid("one")
        call = asyncio.create_task(fixture.call("one__wait"))
        await wait_for_note(notes, "call wait")
        fixture.servers.restart("one", lambda _: None)
        await fixture.servers.wait_until_ready("a", notices.append)
        output = await call
        assert fixture.pid("one") != old_pid
        assert (await fixture.call("one__echo", text="back")).text == "back"
        await until(lambda: len(find_processes(fixture.cookie)) == 1)
    assert output.effect is Effect.UNKNOWN
    assert notices == ["Waiting for MCP servers to start: one (at most 30 s)."]


async def test_a_lazy_server_is_started_by_a_restart(tmp_path: Path) -> None:
    async with running_servers(tmp_path, one=small_server_settings()):
        pass
    async with running_servers(tmp_path, one=small_server_settings()) as fixture:
        assert fixture.servers.status()[0].state is ServerState.IDLE
        fixture.servers.restart("one", lambda _: None)
        await fixture.servers.wait_for_state(ServerState.CONNECTED)


async def test_a_failed_server_is_retried_at_once_by_a_reload(tmp_path: Path) -> None:
    settings = failing_server(tmp_path, 5)
    async with starting_servers(tmp_path, RARE_RETRIES, one=settings) as fixture:
        await fixture.servers.wait_for_state(ServerState.FAILED)
        fixture.servers.apply_settings(read_servers({"servers": {"one": settings}, "wait_seconds": 20}))
        await fixture.servers.wait_until_ready("a", lambda _: None)
        assert tool_count(fixture) > 0
        pid = fixture.pid("one")
        fixture.servers.apply_settings(read_servers({"servers": {"one": settings}, "wait_seconds": 5}))
        assert fixture.pid("one") == pid, "a reload leaves a connected server running"


async def test_a_failed_server_is_retried_at_once_by_a_new_session(tmp_path: Path) -> None:
    notices: list[str] = []
    async with starting_servers(tmp_path, RARE_RETRIES, one=failing_server(tmp_path, 6)) as fixture:
        await fixture.servers.wait_for_state(ServerState.FAILED)
        await fixture.servers.wait_until_ready("a", notices.append)
        await fixture.servers.wait_for_state(ServerState.FAILED)
        await fixture.servers.wait_until_ready("a", notices.append)
        assert count_starts(tmp_path) == 6, "a session retries a failed server only in its first turn"
        await fixture.servers.wait_until_ready("b", notices.append)
        await fixture.servers.wait_for_state(ServerState.CONNECTED)
        await fixture.servers.wait_until_ready("a", notices.append)
    assert notices[1].startswith("Continuing without the MCP server one: exit code 1")
    assert notices[-1].startswith("The MCP server one is ready.")


async def test_many_new_sessions_do_not_retry_a_failed_server_in_a_loop(tmp_path: Path) -> None:
    policy = RetryPolicy(first_seconds=0.01, rest_seconds=60.0, failed_seconds=DAY_SECONDS)
    async with starting_servers(tmp_path, policy, one=failing_server(tmp_path, 99)) as fixture:
        await fixture.servers.wait_for_state(ServerState.FAILED)
        for number in range(10):
            await fixture.servers.wait_until_ready(f"session {number}", lambda _: None)
    assert count_starts(tmp_path) == 6


async def test_a_new_session_waits_only_briefly_for_a_failed_server_that_hangs(tmp_path: Path) -> None:
    policy = RetryPolicy(tries=1, failed_seconds=DAY_SECONDS)
    async with starting_servers(tmp_path, policy, one=small_server_settings("hang", start_seconds=3)) as fixture:
        await fixture.servers.wait_for_state(ServerState.FAILED)
        started_at = time.perf_counter()
        await fixture.servers.wait_until_ready("a", lambda _: None)
        duration = time.perf_counter() - started_at
    assert 1.9 < duration < 2.9


async def test_the_error_of_the_last_start_is_known_to_the_next_process_until_a_start_succeeds(tmp_path: Path) -> None:
    settings = failing_server(tmp_path, 1)
    async with running_servers(tmp_path, RetryPolicy(first_seconds=DAY_SECONDS), one=settings):
        pass
    assert "I can't start yet" in ServersFixture(tmp_path, {"one": settings}).servers.status()[0].last_error
    async with running_servers(tmp_path, QUICK_RETRIES, one=settings):
        pass
    assert ServersFixture(tmp_path, {"one": settings}).servers.status()[0].last_error == ""
