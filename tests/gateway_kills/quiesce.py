"""Waits until a world has come to rest, and says why it has not."""

import asyncio
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from hark.app.clock import SystemClock
from hark.protocol.records import TurnEnded
from hark.store.sqlite import SqliteStore
from tests.gateway_kills.audit.journal import QUEUE, Story
from tests.gateway_kills.environment import World
from tests.gateway_kills.expectations import ASIDE
from tests.gateway_kills.platforms.api import ApiFixture
from tests.gateway_kills.platforms.webhook import WebhookFixture

STILL_SECONDS = 90.0  # without any change: then it is wedged
STOP_AFTER_SECONDS = 4.0
ASKING = ("ask", "choose")


async def rest(world: World, tell: Callable[[str], None]) -> None:
    """Wait until nothing is under way; a turn that waits for an answer is stopped by its person."""
    store = await SqliteStore.open(world.database, "kills", SystemClock())
    deadline = time.monotonic() + STILL_SECONDS
    stopped: dict[str, float] = {}
    last = ""
    try:
        while reason := await _unrest(world, store, stopped):
            if time.monotonic() > deadline:
                world.wedged = reason
                tell(f"it does not come to rest: {reason}")
                break
            if reason != last:
                deadline = time.monotonic() + STILL_SECONDS
                tell(f"not over yet: {reason}")
            last = reason
            await asyncio.sleep(0.5)
    finally:
        await store.close()


async def _unrest(world: World, store: SqliteStore, stopped: dict[str, float]) -> str:
    """Return why it is not over yet."""
    if world.backlog:
        return f"{world.backlog} updates are not taken"
    if not all(
        person.fixture.is_at_rest for person in world.people if isinstance(person.fixture, ApiFixture | WebhookFixture)
    ):
        return "requests of programs are not answered"
    if missing := _unheard(world):
        return f"{missing} messages of Discord are not taken"
    if world.model.open:
        return f"{len(world.model.open)} replies are being said"
    if unfinished := await store.inbox.unfinished():
        await _stop_some(world, unfinished, stopped)
        return f"{', '.join(unfinished[:5])} have work"
    if waiting := undealt(world.ledger):
        return f"{waiting} things in the ledger are not dealt with"
    for session in world.chats:
        if await _is_owed(world, store, session):
            return f"{session} is owed a reply"
    return ""


async def holding(world: World) -> list[str]:
    """Return the sessions in which messages wait."""
    store = await SqliteStore.open(world.database, "kills", SystemClock())
    try:
        stories = {session: Story(await store.journal.read(session)) for session in world.chats}
    finally:
        await store.close()
    return [name for name, story in stories.items() if any(place.where == QUEUE for place in story.places)]


def _unheard(world: World) -> int:
    """Return how many messages were written at Discord that the ledger does not know."""
    names = {one.deed.name for one in world.book.written.values() if one.deed.name and one.kind != ASIDE}
    return len(names - times_of(world.ledger).keys())


async def _stop_some(world: World, unfinished: list[str], stopped: dict[str, float]) -> None:
    """Have those stopped who wait for an answer: any other turn comes to its end by itself."""
    now = time.monotonic()
    for session in unfinished:
        asked = next((one for one in reversed(world.model.asked) if one.chat == session), None)
        is_asking = asked is not None and asked.plan in ASKING
        if is_asking and now - stopped.setdefault(session, now) > STOP_AFTER_SECONDS:
            stopped[session] = now
            await world.chats[session].stop("word")


def times_of(ledger: Path) -> dict[tuple[str, str, str], float]:
    """Return when the ledger took what came in: kind, id, and of an edit its text."""
    with sqlite3.connect(f"file:{ledger}?mode=ro", uri=True) as connection:
        rows = connection.execute("SELECT name, at FROM incoming").fetchall()
    found: dict[tuple[str, str, str], float] = {}
    for name, at in rows:
        kind, _, message, text = str(name).split("|", 3)
        found[(kind, message, text.partition("|")[2])] = at
    return found


def undealt(ledger: Path) -> int:
    """Return how much came in and is not dealt with."""
    with sqlite3.connect(f"file:{ledger}?mode=ro", uri=True) as connection:
        return int(connection.execute("SELECT count(*) FROM incoming WHERE body IS NOT NULL").fetchone()[0])


async def _is_owed(world: World, store: SqliteStore, session: str) -> bool:
    ends = [record.turn for record in await store.journal.read(session) if isinstance(record, TurnEnded)]
    fixture = world.chats[session].fixture
    if isinstance(fixture, ApiFixture):
        return not fixture.stream.delivered.keys() >= set(ends)
    with sqlite3.connect(f"file:{world.ledger}?mode=ro", uri=True) as connection:
        row = connection.execute("SELECT delivered FROM lines WHERE session = ?", (session,)).fetchone()
    return bool(ends) and (row is None or int(ends[-1].rpartition(".t")[2]) > row[0])
