"""The inline committer commits in submission order, when the simulation allows it."""

import asyncio
import sqlite3

import pytest

from hark.protocol.store import PutResult, StoreError
from hark.store.database_file import migrate
from hark.store.sqlite import SqliteInbox
from tests.store.inline_committer import InlineCommitter
from tests.store.store_fixtures import make_say


def create_database() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection, "memory")
    return connection


async def test_operations_are_neither_stored_nor_acknowledged_before_the_commit() -> None:
    connection = create_database()
    commit = asyncio.Event()

    async def wait_for_commit() -> None:
        await commit.wait()

    committer = InlineCommitter(connection, wait_for_commit)
    inbox = SqliteInbox(committer, committer)
    puts = [asyncio.ensure_future(inbox.put("s", make_say(name))) for name in "abc"]
    for _ in range(5):
        await asyncio.sleep(0)
    assert not any(put.done() for put in puts)
    assert connection.execute("SELECT count(*) FROM inbox").fetchone() == (0,)
    puts[1].cancel()
    commit.set()
    assert await puts[2] == PutResult(3, is_new=True)
    assert puts[1].cancelled()
    assert connection.execute("SELECT id FROM inbox ORDER BY seq").fetchall() == [("a",), ("b",), ("c",)]
    await committer.close()
    connection.close()


async def test_a_failed_commit_stores_nothing_and_the_next_commit_can_succeed() -> None:
    connection = create_database()
    failures = [StoreError("the disk is full")]

    async def fail_once() -> None:
        if failures:
            raise failures.pop()

    committer = InlineCommitter(connection, fail_once)
    inbox = SqliteInbox(committer, committer)
    with pytest.raises(StoreError, match="disk is full"):
        await inbox.put("s", make_say("a"))
    assert await inbox.put("s", make_say("b")) == PutResult(1, is_new=True)
    await committer.close()
    with pytest.raises(StoreError, match="closed"):
        await inbox.put("s", make_say("c"))
    connection.close()
