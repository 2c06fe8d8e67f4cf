"""The whole of the fire test: people, platforms, model and speech, around a gateway that is killed again and again."""

import asyncio
import random
import socket
import sqlite3
import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hark.app.clock import SystemClock
from hark.store.sqlite import SqliteStore
from tests.fakes.slack_words import APP_TOKEN, BOT_TOKEN
from tests.fakes.telegram_words import TOKEN
from tests.fire.api import ApiClient, ApiSeat
from tests.fire.book import Book
from tests.fire.gateway import Addresses, Gateway, settings
from tests.fire.model import Model
from tests.fire.person import Pace, Person, live
from tests.fire.slack import SlackSeat, SlackTown, slack_town
from tests.fire.speech import Speech, running_speech
from tests.fire.telegram import FIRST_CHAT, TelegramSeat, TelegramTown, telegram_town

UNCONFIRMED_EACH = 1.5  # things that a person has written and that are not taken; then all wait
QUIET_SECONDS = 240.0
STOP_AFTER_SECONDS = 4.0


@dataclass(frozen=True, slots=True)
class Plan:
    """How large the fire is; after so many seconds nobody writes any more."""

    chats: int
    messages: int
    kill_seconds: float
    per_second: float
    seed: int
    seconds: float = float("inf")


@dataclass(slots=True)
class World:
    """All that outlives the gateway."""

    plan: Plan
    home: Path
    book: Book
    model: Model
    speech: Speech
    telegram: TelegramTown
    slack: SlackTown
    api: ApiClient
    gateway: Gateway
    people: list[Person]
    connect_seconds: list[float] = field(default_factory=list[float])
    is_wedged: bool = False

    @property
    def database(self) -> Path:
        return self.home / "hark.db"

    @property
    def ledger(self) -> Path:
        return self.home / "gateway.db"

    @property
    def backlog(self) -> int:
        return self.telegram.unconfirmed + len(self.slack.unacked)


async def burn(world: World, tell: Callable[[str], None]) -> None:
    """Have all people act while the gateway is killed; then let it come to rest."""
    plan = world.plan
    chance = random.Random(plan.seed + 1)
    pace = Pace(world.book, plan.messages, len(world.people) / plan.per_second, plan.seed + 2)
    lasting = asyncio.get_running_loop().call_later(min(plan.seconds, threading.TIMEOUT_MAX), pace.end)
    acting = [asyncio.create_task(live(person, pace)) for person in world.people]
    watching = asyncio.create_task(_watch(world, pace))
    try:
        await world.gateway.start()
        while not pace.is_over:
            await _at_work(world)
            await asyncio.sleep(chance.uniform(0.3, 1.7) * plan.kill_seconds)
            await world.gateway.kill()
            tell(f"{len(world.book.written)} messages, {world.gateway.kills} kills, {world.backlog} not yet taken")
            if chance.random() < 0.2:  # one more, before it is up
                starting = asyncio.create_task(world.gateway.start())
                await asyncio.wait([starting], timeout=chance.uniform(0.2, 2.0))
                await world.gateway.kill()
                starting.cancel()
                await asyncio.gather(starting, return_exceptions=True)
            await world.gateway.start()
        await asyncio.gather(*acting)
    finally:
        lasting.cancel()
        for task in (*acting, watching):
            task.cancel()
        await asyncio.gather(*acting, watching, return_exceptions=True)
    tell(f"{len(world.book.written)} messages written; waiting until all is dealt with")
    await _rest(world, tell)


async def _at_work(world: World) -> None:
    """Return when the gateway has connected everywhere: on a busy machine that takes its time."""
    polls = world.telegram.pollers
    began = time.monotonic()
    await world.telegram.until(lambda: world.telegram.pollers > polls and bool(world.slack.sockets))
    world.connect_seconds.append(time.monotonic() - began)


async def _watch(world: World, pace: Pace) -> None:
    """Hold the people while too much of what they wrote is not taken."""
    while True:
        if world.backlog > UNCONFIRMED_EACH * len(world.people):
            pace.has_room.clear()
        else:
            pace.has_room.set()
        await asyncio.sleep(0.05)


async def _rest(world: World, tell: Callable[[str], None]) -> None:
    """Wait until nothing is under way; a turn that waits for an answer is stopped by its person."""
    world.telegram.is_calm = world.slack.is_calm = True
    store = await SqliteStore.open(world.database, "fire", SystemClock())
    deadline = time.monotonic() + QUIET_SECONDS
    stopped: dict[str, float] = {}
    last = ""
    try:
        while reason := await _unrest(world, store, stopped):
            if time.monotonic() > deadline:
                world.is_wedged = True
                tell(f"it does not come to rest: {reason}")
                break
            if reason != last:
                tell(f"not over yet: {reason}")
            last = reason
            await asyncio.sleep(0.5)
    finally:
        await store.close()


async def _unrest(world: World, store: SqliteStore, stopped: dict[str, float]) -> str:
    """Return why it is not over yet."""
    if world.backlog:
        return f"{world.backlog} updates are not taken"
    if not all(person.seat.is_at_rest for person in world.people if isinstance(person.seat, ApiSeat)):
        return "requests to the API are not answered"
    if world.model.open:
        return f"{len(world.model.open)} replies are being said"
    if unfinished := await store.inbox.unfinished():
        await _stop_some(world, unfinished, stopped)
        return f"{', '.join(unfinished[:5])} have work"
    if waiting := undealt(world.ledger):
        return f"{waiting} things in the ledger are not dealt with"
    for person in world.people:
        if await _is_owed(world, store, person.seat.session):
            return f"{person.seat.session} is owed a reply"
    return ""


async def _stop_some(world: World, unfinished: list[str], stopped: dict[str, float]) -> None:
    now = time.monotonic()
    for session in unfinished:
        if now - stopped.setdefault(session, now) > STOP_AFTER_SECONDS:
            stopped[session] = now
            person = next(person for person in world.people if person.seat.session == session)
            await person.stop("word")


def undealt(ledger: Path) -> int:
    """Return how much came in and is not dealt with."""
    with sqlite3.connect(f"file:{ledger}?mode=ro", uri=True) as connection:
        return int(connection.execute("SELECT count(*) FROM incoming WHERE body IS NOT NULL").fetchone()[0])


async def _is_owed(world: World, store: SqliteStore, session: str) -> bool:
    from hark.protocol.records import TurnEnded

    if session.startswith("api-"):
        return False
    ends = [record.turn for record in await store.journal.read(session) if isinstance(record, TurnEnded)]
    with sqlite3.connect(f"file:{world.ledger}?mode=ro", uri=True) as connection:
        row = connection.execute("SELECT delivered FROM lines WHERE session = ?", (session,)).fetchone()
    return bool(ends) and (row is None or int(ends[-1].rpartition(".t")[2]) > row[0])


@asynccontextmanager
async def opened(folder: Path, plan: Plan) -> AsyncGenerator[World]:
    """Set the world up: of the chats, six in ten are Telegram's, three Slack's, one the API's."""
    book = Book()
    home = folder / "hark"
    home.mkdir(parents=True)
    slacks, apis = max(1, plan.chats * 3 // 10), max(1, plan.chats // 10)
    telegrams = plan.chats - slacks - apis
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(Model(book))
        speech, hearing = await stack.enter_async_context(running_speech(book, plan.seed))
        telegram = await stack.enter_async_context(telegram_town(telegrams, plan.seed))
        slack = await stack.enter_async_context(slack_town(slacks, plan.seed))
        at = Addresses(telegram.address, slack.url, model.address, hearing, _free_port())
        (home / "config.toml").write_text(settings(at))
        client = ApiClient(f"http://127.0.0.1:{at.port}")
        stack.push_async_callback(client.close)
        secrets = {"FIRE_TELEGRAM": TOKEN, "FIRE_SLACK": BOT_TOKEN, "FIRE_SLACK_APP": APP_TOKEN}
        seats = [
            *(TelegramSeat(telegram, FIRST_CHAT + number) for number in range(telegrams)),
            *(SlackSeat(slack, number) for number in range(slacks)),
            *(ApiSeat(client, book, number) for number in range(apis)),
        ]
        people = [Person(seat, book, plan.seed + 100 + number) for number, seat in enumerate(seats)]
        gateway = Gateway(home, secrets)
        yield World(plan, home, book, model, speech, telegram, slack, client, gateway, people)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
