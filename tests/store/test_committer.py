"""The committer without a thread: commits happen when the simulation says so, in the order of submission."""

import asyncio
import sqlite3

import pytest

from hark.protocol.store import Accepted, StoreError
from hark.store.database_file import migrate
from hark.store.sqlite import SqliteInbox
from tests.store.inline_committer import InlineCommitter
from tests.store.store_fixtures import say


def database() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection, "memory")
    return connection


async def test_nothing_is_in_the_database_or_answered_before_the_commit() -> None:
    connection = database()
    commit = asyncio.Event()

    async def wait_for_commit() -> None:
        await commit.wait()

    committer = InlineCommitter(connection, wait_for_commit)
    inbox = SqliteInbox(committer, committer)
    puts = [asyncio.ensure_future(inbox.put("s", say(name))) for name in "abc"]
    for _ in range(5):
        await asyncio.sleep(0)
    assert not any(put.done() for put in puts)
    assert connection.execute("SELECT count(*) FROM inbox").fetchone() == (0,)
    puts[1].cancel()
    commit.set()
    assert await puts[2] == Accepted(3, is_new=True)
    assert puts[1].cancelled()
    assert connection.execute("SELECT id FROM inbox ORDER BY seq").fetchall() == [("a",), ("b",), ("c",)]
    await committer.close()
    connection.close()


async def test_a_commit_that_fails_leaves_nothing_and_the_next_may_pass() -> None:
    connection = database()
    failures = [StoreError("the disk is full")]

    async def fail_once() -> None:
        if failures:
            raise failures.pop()

    committer = InlineCommitter(connection, fail_once)
    inbox = SqliteInbox(committer, committer)
    with pytest.raises(StoreError, match="disk is full"):
        await inbox.put("s", say("a"))
    assert await inbox.put("s", say("b")) == Accepted(1, is_new=True)
    await committer.close()
    with pytest.raises(StoreError, match="closed"):
        await inbox.put("s", say("c"))
    connection.close()
