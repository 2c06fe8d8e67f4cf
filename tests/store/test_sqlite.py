"""The SQLite file store: shared commits, kill -9, several processes, a full disk, and a bounded close time."""

import asyncio
import sqlite3
import sys
import threading
from asyncio.subprocess import PIPE, Process
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from hark.protocol.store import Lease, LeaseLost, PutResult, SessionSummary, StoreError, StoreUnusable
from hark.store.commit_thread import CommitThread
from hark.store.database_file import connect
from hark.store.local_bus import LocalBus
from hark.store.sqlite import SqliteInbox, SqliteJournal, SqliteLeases, SqliteStore
from tests.store.other_process import WallClock
from tests.store.store_fixtures import TestClock, acquire_lease, list_names, make_record, make_say


async def start_process(path: Path, owner: str, action: str) -> Process:
    arguments = ("-m", "tests.store.other_process", str(path), owner, action)
    return await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=PIPE)


async def read_line(process: Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


async def block_thread(writer: CommitThread) -> threading.Event:
    """Block the commit thread inside a commit until the returned event is set."""
    loop, reached, unblock = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def wait(_: sqlite3.Connection) -> None:
        loop.call_soon_threadsafe(reached.set)
        unblock.wait()

    writer.submit(wait)
    await reached.wait()
    return unblock


async def test_many_appends_share_few_commits(tmp_path: Path) -> None:
    commits: list[str] = []

    def connect_and_count() -> sqlite3.Connection:
        connection = connect(tmp_path / "hark.db")
        connection.set_trace_callback(lambda sql: commits.append(sql) if sql == "COMMIT" else None)
        return connection

    writer = CommitThread(connect_and_count)
    leases = SqliteLeases(writer, "me", TestClock(), lambda _: True, 10.0)
    journal = SqliteJournal(writer, writer)
    lease = await leases.acquire("s")
    assert lease is not None
    appends = [journal.append(lease, n, [make_record(str(n))], SessionSummary()) for n in range(1000)]
    await asyncio.gather(*appends)
    assert await journal.read("s") == [make_record(str(n)) for n in range(1000)]
    await writer.close()
    assert 3 <= len(commits) < 50


async def test_a_refused_operation_does_not_affect_others_in_the_same_commit(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "hark.db", "me", TestClock())
    lease = await acquire_lease(store)
    answers = await asyncio.gather(
        store.inbox.put("s", make_say("a")),
        store.journal.append(Lease("s", "me", 99), 0, [make_record("stale")], SessionSummary()),
        store.journal.append(lease, 0, [make_record("b")], SessionSummary()),
        return_exceptions=True,
    )
    assert answers[0] == PutResult(1, is_new=True)
    assert isinstance(answers[1], LeaseLost)
    assert answers[2] is None
    assert await store.journal.read("s") == [make_record("b")]
    await store.close()


async def test_acknowledged_commands_survive_kill_9(tmp_path: Path) -> None:
    process = await start_process(tmp_path / "hark.db", "other", "put_forever")
    acknowledged = {await read_line(process) for _ in range(100)}
    process.kill()
    assert process.stdout is not None
    remaining_output = (await process.stdout.read()).decode()
    acknowledged |= set(
        remaining_output.splitlines() if remaining_output.endswith("\n") else remaining_output.splitlines()[:-1]
    )
    await process.wait()
    store = await SqliteStore.open(tmp_path / "hark.db", "me", WallClock())
    entries = await store.inbox.entries_after("s", 0)
    assert acknowledged <= {entry.command.id for entry in entries}
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    await store.close()


async def test_processes_that_create_and_fill_one_file_concurrently_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "hark.db"
    processes = await asyncio.gather(*(start_process(path, f"p{n}", "put_200") for n in range(3)))
    assert [await process.wait() for process in processes] == [0, 0, 0]
    store = await SqliteStore.open(path, "me", WallClock())
    entries = await store.inbox.entries_after("s", 0)
    assert {entry.command.id for entry in entries} == {f"p{p}-{n}" for p in range(3) for n in range(200)}
    assert [entry.seq for entry in entries] == list(range(1, 601))
    await store.close()


async def test_the_session_of_a_killed_process_is_taken_over_immediately(tmp_path: Path) -> None:
    process = await start_process(tmp_path / "hark.db", "other", "acquire_and_wait")
    epoch = int(await read_line(process))
    store = await SqliteStore.open(tmp_path / "hark.db", "me", WallClock())
    assert await store.leases.acquire("s") is None
    process.kill()
    await process.wait()
    assert await store.leases.acquire("s") == Lease("s", "me", epoch + 1)
    assert await store.inbox.unfinished_sessions() == ["s"]
    assert await store.journal.read("s") == [make_record("a")]
    await store.close()


async def test_a_full_disk_fails_the_whole_commit_and_the_next_commit_can_succeed(tmp_path: Path) -> None:
    def connect_to_small_disk() -> sqlite3.Connection:
        connection = connect(tmp_path / "hark.db")
        connection.execute("PRAGMA max_page_count = 40")
        return connection

    writer = CommitThread(connect_to_small_disk)
    inbox = SqliteInbox(writer, writer)
    unblock = await block_thread(writer)  # so that the next three operations share one commit
    puts = asyncio.gather(
        inbox.put("s", make_say("small")),
        inbox.put("s", make_say("big", "x" * 1_000_000)),
        inbox.put("s", make_say("small too")),
        return_exceptions=True,
    )
    await asyncio.sleep(0)
    unblock.set()
    answers = await puts
    assert all(isinstance(answer, StoreError) for answer in answers)
    assert "disk is full" in str(answers[0])
    assert str(tmp_path / "hark.db") in str(answers[0])
    assert await inbox.entries_after("s", 0) == []
    assert await inbox.put("s", make_say("small")) == PutResult(1, is_new=True)
    await writer.close()


async def test_an_unreadable_entry_is_reported_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "hark.db"
    store = await SqliteStore.open(path, "me", TestClock())
    lease = await acquire_lease(store)
    for n in range(3):
        await store.inbox.put("s", make_say(str(n)))
        await store.journal.append(lease, n, [make_record(str(n))], SessionSummary())
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE journal SET body = ? WHERE seq = 2", (b'{"type":"from the future"}',))
        connection.execute("UPDATE inbox SET body = ? WHERE seq = 3", (b"\xff\xfe",))
    connection.close()
    with pytest.raises(StoreUnusable, match="Entry 2 of the journal of session 's'"):
        await store.journal.read("s")
    with pytest.raises(StoreUnusable, match="Entry 3 of the inbox of session 's'"):
        await store.inbox.entries_after("s", 0)
    assert await store.journal.read("s", after=2) == [make_record("2")]
    await store.close()


async def test_an_unpaired_surrogate_in_a_message_is_replaced(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "hark.db", "me", TestClock())
    await store.inbox.put("s", make_say("a", "cut \ud83d emoji, zürich"))
    [entry] = await store.inbox.entries_after("s", 0)
    assert entry.command == make_say("a", "cut ? emoji, zürich")
    with pytest.raises(UnicodeError):
        await store.inbox.put("\ud83d", make_say("a"))
    assert await store.inbox.put("s", make_say("b")) == PutResult(2, is_new=True)
    await store.close()


async def test_close_commits_submitted_operations_and_ends_the_threads(tmp_path: Path) -> None:
    before = threading.active_count()
    store = await SqliteStore.open(tmp_path / "hark.db", "me", TestClock())
    assert threading.active_count() == before + 2
    puts = [asyncio.ensure_future(store.inbox.put("s", make_say(str(n)))) for n in range(100)]
    await asyncio.sleep(0)
    await store.close()
    await store.close()
    assert [put.result().seq for put in puts] == list(range(1, 101))
    assert threading.active_count() == before
    assert list_names(tmp_path) == ["hark.db", "run"]
    assert list_names(tmp_path / "run") == []
    with pytest.raises(StoreError, match="closed"):
        await store.inbox.put("s", make_say("late"))


async def test_a_cancelled_close_still_releases_the_leases(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "hark.db", "me", TestClock())
    await acquire_lease(store)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await store.close()
    with closing(sqlite3.connect(tmp_path / "hark.db")) as database:
        assert database.execute("SELECT count(*) FROM owners").fetchone() == (0,)


async def test_close_does_not_wait_for_a_blocked_write(tmp_path: Path) -> None:
    writer = CommitThread(lambda: connect(tmp_path / "hark.db"))
    leases = SqliteLeases(writer, "me", TestClock(), lambda _: True, 10.0)
    store = SqliteStore(writer, writer, leases, LocalBus(tmp_path, "me"), close_seconds=0.05)
    unblock = await block_thread(writer)
    put = asyncio.ensure_future(store.inbox.put("s", make_say("a")))
    await asyncio.sleep(0)
    await store.close()
    assert not put.done()
    unblock.set()
    assert await put == PutResult(1, is_new=True)
    await writer.close()


async def test_an_operation_that_crashes_the_thread_fails_all_waiting_operations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashes: list[type[BaseException]] = []
    monkeypatch.setattr(threading, "excepthook", lambda seen: crashes.append(seen.exc_type))  # type: ignore[reportUnknownLambdaType]
    writer = CommitThread(lambda: connect(tmp_path / "hark.db"))
    inbox = SqliteInbox(writer, writer)
    await inbox.put("s", make_say("a"))
    bad = writer.submit(lambda _: 1 // 0)
    queued = asyncio.ensure_future(inbox.put("s", make_say("b")))
    with pytest.raises(StoreError, match="crashed"):
        await bad
    with pytest.raises(StoreError, match="crashed"):
        await queued
    with pytest.raises(StoreError, match="crashed"):
        await inbox.put("s", make_say("c"))
    await writer.close()
    assert crashes == [ZeroDivisionError]
    store = await SqliteStore.open(tmp_path / "hark.db", "me", TestClock())
    assert [entry.command.id for entry in await store.inbox.entries_after("s", 0)] == ["a"]
    await store.close()
