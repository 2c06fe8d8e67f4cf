"""The schedules of a home, in a small database of their own."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import msgspec

from hark.protocol.schedules import Schedule
from hark.protocol.store import StoreError
from hark.store.committer import CommitThread
from hark.store.database_file import connect_with

_SCHEMA = "CREATE TABLE IF NOT EXISTS schedules (name TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID"
_DECODER = msgspec.json.Decoder(Schedule)


class SqliteScheduleBook:
    """A ScheduleBook in a file. Each change reads and writes in one transaction, so none is lost to another process."""

    def __init__(self, path: Path) -> None:
        """Open it with the first operation; an error of it is every operation's."""
        self._thread = CommitThread(lambda: connect_with(path, _SCHEMA))

    async def close(self) -> None:
        """Finish what was begun."""
        await self._thread.close()

    async def all(self) -> list[Schedule]:
        """Return the schedules, by name."""

        def read(connection: sqlite3.Connection) -> list[Schedule]:
            rows = connection.execute("SELECT body FROM schedules ORDER BY name")
            return [_decoded(body) for (body,) in rows]

        return await self._thread.submit(read)

    async def add(self, schedule: Schedule, most: int) -> str:
        """Keep one more; return "", or why not."""

        def insert(connection: sqlite3.Connection) -> str:
            if _find(connection, schedule.name) is not None:
                return "exists"
            [count] = connection.execute("SELECT count(*) FROM schedules").fetchone()
            if count >= most:
                return "full"
            connection.execute("INSERT INTO schedules VALUES (?, ?)", (schedule.name, msgspec.json.encode(schedule)))
            return ""

        return await self._thread.submit(insert)

    async def change(self, name: str, change: Callable[[Schedule], Schedule]) -> Schedule | None:
        """Put what `change` makes of a schedule in its place. Nothing is written when that is the same."""

        def update(connection: sqlite3.Connection) -> Schedule | None:
            old = _find(connection, name)
            if old is None:
                return None
            new = change(old)
            if new != old:
                connection.execute("UPDATE schedules SET body = ? WHERE name = ?", (msgspec.json.encode(new), name))
            return new

        return await self._thread.submit(update)

    async def remove(self, name: str) -> Schedule | None:
        """Forget a schedule; return what it was."""

        def delete(connection: sqlite3.Connection) -> Schedule | None:
            old = _find(connection, name)
            connection.execute("DELETE FROM schedules WHERE name = ?", (name,))
            return old

        return await self._thread.submit(delete)


def _find(connection: sqlite3.Connection, name: str) -> Schedule | None:
    row = connection.execute("SELECT body FROM schedules WHERE name = ?", (name,)).fetchone()
    return _decoded(row[0]) if row else None


def _decoded(body: bytes) -> Schedule:
    try:
        return _DECODER.decode(body)
    except msgspec.DecodeError as error:
        raise StoreError(f"A schedule can't be read ({error}): a newer Hark may have written it. Upgrade.") from error
