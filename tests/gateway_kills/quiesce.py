"""Waits until all work has ended, and reports the reason if it does not."""

import asyncio
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from hark.app.clock import SystemClock
from hark.protocol.records import TurnEnded
from hark.store.sqlite import SqliteStore
from tests.gateway_kills.audit.journal import QUEUE, JournalFacts
from tests.gateway_kills.environment import GatewayEnvironment
from tests.gateway_kills.expectations import ASIDE
from tests.gateway_kills.platforms.api import ApiFixture
from tests.gateway_kills.platforms.webhook import WebhookFixture

STUCK_SECONDS = 90.0  # without any change: the work is stuck
STOP_AFTER_SECONDS = 4.0
ASKING_PLANS = ("ask", "choose")


async def wait_until_idle(environment: GatewayEnvironment, log: Callable[[str], None]) -> None:
    """Wait until no work is in progress. Turns that wait for an answer are stopped, as a user would stop them."""
    store = await SqliteStore.open(environment.database, "kills", SystemClock())
    deadline = time.monotonic() + STUCK_SECONDS
    stopped: dict[str, float] = {}
    last = ""
    try:
        while reason := await _busy_reason(environment, store, stopped):
            if time.monotonic() > deadline:
                environment.stuck_work = reason
                log(f"the work does not end: {reason}")
                break
            if reason != last:
                deadline = time.monotonic() + STUCK_SECONDS
                log(f"still busy: {reason}")
            last = reason
            await asyncio.sleep(0.5)
    finally:
        await store.close()


async def _busy_reason(environment: GatewayEnvironment, store: SqliteStore, stopped: dict[str, float]) -> str:
    """Return why work is still in progress, or "" if all work has ended."""
    if environment.backlog:
        return f"{environment.backlog} updates are not accepted"
    if not all(
        person.fixture.is_idle
        for person in environment.users
        if isinstance(person.fixture, ApiFixture | WebhookFixture)
    ):
        return "requests of programs are not answered"
    if missing := _count_missing_discord(environment):
        return f"{missing} Discord messages are not accepted"
    if environment.model.open:
        return f"{len(environment.model.open)} replies are streaming"
    if unfinished := await store.inbox.unfinished_sessions():
        await _stop_asking_turns(environment, unfinished, stopped)
        return f"{', '.join(unfinished[:5])} have work"
    if waiting := count_unprocessed(environment.ledger):
        return f"{waiting} ledger entries are not processed"
    for session in environment.chats:
        if await _has_undelivered_reply(environment, store, session):
            return f"{session} has an undelivered reply"
    return ""


async def sessions_with_queue(environment: GatewayEnvironment) -> list[str]:
    """Return the sessions with queued messages."""
    store = await SqliteStore.open(environment.database, "kills", SystemClock())
    try:
        facts_by_session = {session: JournalFacts(await store.journal.read(session)) for session in environment.chats}
    finally:
        await store.close()
    return [
        name for name, story in facts_by_session.items() if any(place.location == QUEUE for place in story.locations)
    ]


def _count_missing_discord(environment: GatewayEnvironment) -> int:
    """Return the number of Discord messages that are missing from the ledger."""
    names = {
        one.action.name for one in environment.expectations.messages.values() if one.action.name and one.kind != ASIDE
    }
    return len(names - read_accept_times(environment.ledger).keys())


async def _stop_asking_turns(environment: GatewayEnvironment, unfinished: list[str], stopped: dict[str, float]) -> None:
    """Stop turns that wait for an answer. All other turns end on their own."""
    now = time.monotonic()
    for session in unfinished:
        request = next((one for one in reversed(environment.model.requests) if one.chat == session), None)
        is_asking = request is not None and request.plan in ASKING_PLANS
        if is_asking and now - stopped.setdefault(session, now) > STOP_AFTER_SECONDS:
            stopped[session] = now
            await environment.chats[session].stop("word")


def read_accept_times(ledger: Path) -> dict[tuple[str, str, str], float]:
    """Return the time at which the ledger accepted each incoming event, by kind, id, and the text of an edit."""
    with sqlite3.connect(f"file:{ledger}?mode=ro", uri=True) as connection:
        rows = connection.execute("SELECT name, at FROM incoming").fetchall()
    found: dict[tuple[str, str, str], float] = {}
    for name, at in rows:
        kind, _, message, text = str(name).split("|", 3)
        found[(kind, message, text.partition("|")[2])] = at
    return found


def count_unprocessed(ledger: Path) -> int:
    """Return the number of incoming events that have not been processed."""
    with sqlite3.connect(f"file:{ledger}?mode=ro", uri=True) as connection:
        return int(connection.execute("SELECT count(*) FROM incoming WHERE body IS NOT NULL").fetchone()[0])


async def _has_undelivered_reply(environment: GatewayEnvironment, store: SqliteStore, session: str) -> bool:
    ends = [record.turn for record in await store.journal.read(session) if isinstance(record, TurnEnded)]
    fixture = environment.chats[session].fixture
    if isinstance(fixture, ApiFixture):
        return not fixture.stream.delivered.keys() >= set(ends)
    with sqlite3.connect(f"file:{environment.ledger}?mode=ro", uri=True) as connection:
        row = connection.execute("SELECT delivered FROM lines WHERE session = ?", (session,)).fetchone()
    return bool(ends) and (row is None or int(ends[-1].rpartition(".t")[2]) > row[0])
