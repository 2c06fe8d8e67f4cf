"""The store in a file: shared commits, kill -9, several processes, a full disk, an end in time."""

import asyncio
import sqlite3
import sys
import threading
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import pytest

from hark.protocol.store import Accepted, Lease, LeaseLost, StoreError, StoreUnusable, Summary
from hark.store.committer import CommitThread
from hark.store.database_file import connect
from hark.store.local_bus import LocalBus
from hark.store.sqlite import SqliteInbox, SqliteJournal, SqliteLeases, SqliteStore
from tests.store.other_process import WallClock
from tests.store.store_fixtures import TestClock, names_in, owned, record, say


async def start(path: Path, owner: str, act: str) -> Process:
    arguments = ("-m", "tests.store.other_process", str(path), owner, act)
    return await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=PIPE)


async def line_of(process: Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


async def held_up(writes: CommitThread) -> threading.Event:
    """Hold the thread in the middle of a commit until the event is set."""
    loop, reached, gate = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def wait(_: sqlite3.Connection) -> None:
        loop.call_soon_threadsafe(reached.set)
        gate.wait()

    writes.submit(wait)
    await reached.wait()
    return gate


async def test_many_appends_share_few_commits(tmp_path: Path) -> None:
    commits: list[str] = []

    def connect_and_count() -> sqlite3.Connection:
        connection = connect(tmp_path / "hark.db")
        connection.set_trace_callback(lambda sql: commits.append(sql) if sql == "COMMIT" else None)
        return connection

    writes = CommitThread(connect_and_count)
    leases = SqliteLeases(writes, "me", TestClock(), lambda _: True, 10.0)
    journal = SqliteJournal(writes, writes)
    lease = await leases.acquire("s")
    assert lease is not None
    appends = [journal.append(lease, n, [record(str(n))], Summary()) for n in range(1000)]
    await asyncio.gather(*appends)
    assert await journal.read("s") == [record(str(n)) for n in range(1000)]
    await writes.close()
    assert 3 <= len(commits) < 50


async def test_one_who_is_refused_takes_nothing_from_the_others_of_the_commit(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "hark.db", "me", TestClock())
    lease = await owned(store)
    answers = await asyncio.gather(
        store.inbox.put("s", say("a")),
        store.journal.append(Lease("s", "me", 99), 0, [record("stale")], Summary()),
        store.journal.append(lease, 0, [record("b")], Summary()),
        return_exceptions=True,
    )
    assert answers[0] == Accepted(1, is_new=True)
    assert isinstance(answers[1], LeaseLost)
    assert answers[2] is None
    assert await store.journal.read("s") == [record("b")]
    await store.close()


async def test_what_was_acknowledged_is_there_after_kill_9(tmp_path: Path) -> None:
    process = await start(tmp_path / "hark.db", "other", "put_for_ever")
    acknowledged = {await line_of(process) for _ in range(100)}
    process.kill()
    assert process.stdout is not None
    rest = (await process.stdout.read()).decode()
    acknowledged |= set(rest.splitlines() if rest.endswith("\n") else rest.splitlines()[:-1])
    await process.wait()
    store = await SqliteStore.open(tmp_path / "hark.db", "me", WallClock())
    entries = await store.inbox.after("s", 0)
    assert acknowledged <= {entry.command.id for entry in entries}
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    await store.close()


async def test_processes_that_make_and_fill_one_file_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "hark.db"
    processes = await asyncio.gather(*(start(path, f"p{n}", "put_some") for n in range(3)))
    assert [await process.wait() for process in processes] == [0, 0, 0]
    store = await SqliteStore.open(path, "me", WallClock())
    entries = await store.inbox.after("s", 0)
    assert {entry.command.id for entry in entries} == {f"p{p}-{n}" for p in range(3) for n in range(200)}
    assert [entry.seq for entry in entries] == list(range(1, 601))
    await store.close()


async def test_a_session_is_taken_over_at_once_when_its_process_was_killed(tmp_path: Path) -> None:
    process = await start(tmp_path / "hark.db", "other", "hold")
    epoch = int(await line_of(process))
    store = await SqliteStore.open(tmp_path / "hark.db", "me", WallClock())
    assert await store.leases.acquire("s") is None
    process.kill()
    await process.wait()
    assert await store.leases.acquire("s") == Lease("s", "me", epoch + 1)
    assert await store.inbox.unfinished() == ["s"]
    assert await store.journal.read("s") == [record("a")]
    await store.close()


async def test_a_full_disk_fails_the_whole_commit_and_the_next_one_may_pass(tmp_path: Path) -> None:
    def connect_to_a_small_disk() -> sqlite3.Connection:
        connection = connect(tmp_path / "hark.db")
        connection.execute("PRAGMA max_page_count = 40")
        return connection

    writes = CommitThread(connect_to_a_small_disk)
    inbox = SqliteInbox(writes, writes)
    gate = await held_up(writes)  # so that the next three are in one commit
    puts = asyncio.gather(
        inbox.put("s", say("small")),
        inbox.put("s", say("big", "x" * 1_000_000)),
        inbox.put("s", say("small too")),
        return_exceptions=True,
    )
    await asyncio.sleep(0)
    gate.set()
    answers = await puts
    assert all(isinstance(answer, StoreError) for answer in answers)
    assert "disk is full" in str(answers[0])
    assert str(tmp_path / "hark.db") in str(answers[0])
    assert await inbox.after("s", 0) == []
    assert await inbox.put("s", say("small")) == Accepted(1, is_new=True)
    await writes.close()


async def test_an_entry_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "hark.db"
    store = await SqliteStore.open(path, "me", TestClock())
    lease = await owned(store)
    for n in range(3):
        await store.inbox.put("s", say(str(n)))
        await store.journal.append(lease, n, [record(str(n))], Summary())
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE journal SET body = ? WHERE seq = 2", (b'{"type":"from the future"}',))
        connection.execute("UPDATE inbox SET body = ? WHERE seq = 3", (b"\xff\xfe",))
    connection.close()
    with pytest.raises(StoreUnusable, match="Entry 2 of the journal of session 's'"):
        await store.journal.read("s")
    with pytest.raises(StoreUnusable, match="Entry 3 of the inbox of session 's'"):
        await store.inbox.after("s", 0)
    assert await store.journal.read("s", after=2) == [record("2")]
    await store.close()


async def test_half_a_surrogate_pair_does_not_stop_a_message(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "hark.db", "me", TestClock())
    await store.inbox.put("s", say("a", "cut \ud83d emoji, zürich"))
    [entry] = await store.inbox.after("s", 0)
    assert entry.command == say("a", "cut ? emoji, zürich")
    with pytest.raises(UnicodeError):
        await store.inbox.put("\ud83d", say("a"))
    assert await store.inbox.put("s", say("b")) == Accepted(2, is_new=True)
    await store.close()


async def test_close_commits_what_was_submitted_and_ends_the_threads(tmp_path: Path) -> None:
    before = threading.active_count()
    store = await SqliteStore.open(tmp_path / "hark.db", "me", TestClock())
    assert threading.active_count() == before + 2
    puts = [asyncio.ensure_future(store.inbox.put("s", say(str(n)))) for n in range(100)]
    await asyncio.sleep(0)
    await store.close()
    await store.close()
    assert [put.result().seq for put in puts] == list(range(1, 101))
    assert threading.active_count() == before
    assert names_in(tmp_path) == ["hark.db", "run"]
    assert names_in(tmp_path / "run") == []
    with pytest.raises(StoreError, match="closed"):
        await store.inbox.put("s", say("late"))


async def test_close_does_not_wait_for_a_wedged_write(tmp_path: Path) -> None:
    writes = CommitThread(lambda: connect(tmp_path / "hark.db"))
    leases = SqliteLeases(writes, "me", TestClock(), lambda _: True, 10.0)
    store = SqliteStore(writes, writes, leases, LocalBus(tmp_path, "me"), close_seconds=0.05)
    gate = await held_up(writes)
    put = asyncio.ensure_future(store.inbox.put("s", say("a")))
    await asyncio.sleep(0)
    await store.close()
    assert not put.done()
    gate.set()
    assert await put == Accepted(1, is_new=True)
    await writes.close()


async def test_an_operation_that_breaks_the_thread_fails_those_who_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken: list[type[BaseException]] = []
    monkeypatch.setattr(threading, "excepthook", lambda seen: broken.append(seen.exc_type))  # type: ignore[reportUnknownLambdaType]
    writes = CommitThread(lambda: connect(tmp_path / "hark.db"))
    inbox = SqliteInbox(writes, writes)
    await inbox.put("s", say("a"))
    bad = writes.submit(lambda _: 1 // 0)
    behind = asyncio.ensure_future(inbox.put("s", say("b")))
    with pytest.raises(StoreError, match="broke down"):
        await bad
    with pytest.raises(StoreError, match="broke down"):
        await behind
    with pytest.raises(StoreError, match="broke down"):
        await inbox.put("s", say("c"))
    await writes.close()
    assert broken == [ZeroDivisionError]
    store = await SqliteStore.open(tmp_path / "hark.db", "me", TestClock())
    assert [entry.command.id for entry in await store.inbox.after("s", 0)] == ["a"]
    await store.close()
