"""The schedules of a home, in their own small database."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import msgspec

from hark.protocol.schedules import Schedule
from hark.protocol.store import StoreError
from hark.store.commit_thread import CommitThread
from hark.store.database_file import connect_with_schema

_SCHEMA = "CREATE TABLE IF NOT EXISTS schedules (name TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID"
_DECODER = msgspec.json.Decoder(Schedule)


class SqliteScheduleStore:
    """A ScheduleStore in a file. Each change is one transaction, so processes don't overwrite each other's changes."""

    def __init__(self, path: Path) -> None:
        """Open the file on the first operation. If it can't be opened, every operation raises that error."""
        self._thread = CommitThread(lambda: connect_with_schema(path, _SCHEMA))

    async def close(self) -> None:
        """Finish the submitted operations and close the database."""
        await self._thread.close()

    async def all(self) -> list[Schedule]:
        """Return the schedules, sorted by name."""

        def read(connection: sqlite3.Connection) -> list[Schedule]:
            rows = connection.execute("SELECT body FROM schedules ORDER BY name")
            return [_decode_schedule(body) for (body,) in rows]

        return await self._thread.submit(read)

    async def add(self, schedule: Schedule, max_count: int) -> str:
        """Store a schedule. Return "", or the reason for a refusal: "exists" or "full"."""

        def insert(connection: sqlite3.Connection) -> str:
            if _find_schedule(connection, schedule.name) is not None:
                return "exists"
            [count] = connection.execute("SELECT count(*) FROM schedules").fetchone()
            if count >= max_count:
                return "full"
            connection.execute("INSERT INTO schedules VALUES (?, ?)", (schedule.name, msgspec.json.encode(schedule)))
            return ""

        return await self._thread.submit(insert)

    async def change(self, name: str, change: Callable[[Schedule], Schedule]) -> Schedule | None:
        """Atomically replace a schedule with `change(schedule)`. Return None if it does not exist."""

        def update(connection: sqlite3.Connection) -> Schedule | None:
            old = _find_schedule(connection, name)
            if old is None:
                return None
            new = change(old)
            if new != old:
                connection.execute("UPDATE schedules SET body = ? WHERE name = ?", (msgspec.json.encode(new), name))
            return new

        return await self._thread.submit(update)

    async def remove(self, name: str) -> Schedule | None:
        """Delete a schedule and return it, or None if it does not exist."""

        def delete(connection: sqlite3.Connection) -> Schedule | None:
            old = _find_schedule(connection, name)
            connection.execute("DELETE FROM schedules WHERE name = ?", (name,))
            return old

        return await self._thread.submit(delete)


def _find_schedule(connection: sqlite3.Connection, name: str) -> Schedule | None:
    row = connection.execute("SELECT body FROM schedules WHERE name = ?", (name,)).fetchone()
    return _decode_schedule(row[0]) if row else None


def _decode_schedule(body: bytes) -> Schedule:
    try:
        return _DECODER.decode(body)
    except msgspec.DecodeError as error:
        raise StoreError(
            f"A schedule can't be read ({error}). A newer Hark may have written it: upgrade Hark."
        ) from error
