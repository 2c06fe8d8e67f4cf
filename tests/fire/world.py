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
from hark.protocol.records import TurnEnded
from hark.store.sqlite import SqliteStore
from tests.fakes.discord_server import TOKEN as DISCORD_TOKEN
from tests.fakes.discord_words import DIRECT, GENERAL
from tests.fakes.slack_words import APP_TOKEN, BOT_TOKEN
from tests.fakes.telegram_words import TOKEN
from tests.fire.api import ApiClient, ApiSeat
from tests.fire.book import ASIDE, Book
from tests.fire.discord import DiscordSeat, DiscordTown, discord_town
from tests.fire.gateway import Addresses, Gateway, settings
from tests.fire.model import Model
from tests.fire.person import Pace, Person, live
from tests.fire.seat import Seat
from tests.fire.slack import SlackSeat, SlackTown, slack_town
from tests.fire.speech import Speech, running_speech
from tests.fire.telegram import FIRST_CHAT, FIRST_GROUP, TelegramSeat, TelegramTown, telegram_town
from tests.fire.trap import MOMENTS, Trap

UNCONFIRMED_EACH = 1.5  # things that a person has written and that are not taken; then all wait
STILL_SECONDS = 40.0  # without any change: then it is wedged
STOP_AFTER_SECONDS = 4.0
TRAP_SHARE = 0.6  # of the kills wait for a moment
TRAP_SECONDS = 5.0
CONNECT_SECONDS = 180.0
IN_A_GROUP = 3  # people
ASKING = ("ask", "choose")


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
    discord: DiscordTown
    api: ApiClient
    gateway: Gateway
    trap: Trap
    people: list[Person]
    connect_seconds: list[float] = field(default_factory=list[float])
    wedged: str = ""

    @property
    def chats(self) -> dict[str, Person]:
        """One person of each chat, by its session."""
        return {person.seat.session: person for person in self.people}

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
    await world.gateway.start()
    await _at_work(world)
    lasting = asyncio.get_running_loop().call_later(min(plan.seconds, threading.TIMEOUT_MAX), pace.end)
    acting = [asyncio.create_task(live(person, pace)) for person in world.people]
    watching = asyncio.create_task(_watch(world, pace))
    try:
        while not pace.is_over:
            await asyncio.sleep(chance.uniform(0.3, 1.7) * plan.kill_seconds)
            if chance.random() < TRAP_SHARE:
                await world.trap.set(chance.choice(MOMENTS), world.gateway.strike, TRAP_SECONDS)
            await world.gateway.kill()
            tell(f"{len(world.book.written)} messages, {world.gateway.kills} kills, {world.backlog} not yet taken")
            if chance.random() < 0.2:  # one more, before it is up
                starting = asyncio.create_task(world.gateway.start())
                await asyncio.wait([starting], timeout=chance.uniform(0.2, 2.0))
                await world.gateway.kill()
                starting.cancel()
                await asyncio.gather(starting, return_exceptions=True)
            await world.gateway.start()
            await _at_work(world)
        await asyncio.gather(*acting)
    finally:
        lasting.cancel()
        for task in (*acting, watching):
            task.cancel()
        await asyncio.gather(*acting, watching, return_exceptions=True)
    tell(f"{len(world.book.written)} messages written; waiting until all is dealt with")
    world.telegram.is_calm = world.slack.is_calm = world.discord.is_calm = True
    await _rest(world, tell)
    for person in world.chats.values():
        await person.greet()
    tell("a last word in each chat")
    await _rest(world, tell)


async def _at_work(world: World) -> None:
    """Return when the gateway has connected everywhere: on a busy machine that takes its time."""
    polls = world.telegram.pollers
    began = time.monotonic()
    async with asyncio.timeout(CONNECT_SECONDS):
        await world.telegram.until(lambda: world.telegram.pollers > polls and bool(world.slack.sockets))
        await world.discord.until(lambda: world.discord.gateway.is_ready)
        # Before, Discord knows nobody to whom it could replay what is said.
        while not (world.home / "discord.json").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
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
    store = await SqliteStore.open(world.database, "fire", SystemClock())
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
    if not all(person.seat.is_at_rest for person in world.people if isinstance(person.seat, ApiSeat)):
        return "requests to the API are not answered"
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
    seat = world.chats[session].seat
    if isinstance(seat, ApiSeat):
        return not seat.stream.delivered.keys() >= set(ends)
    with sqlite3.connect(f"file:{world.ledger}?mode=ro", uri=True) as connection:
        row = connection.execute("SELECT delivered FROM lines WHERE session = ?", (session,)).fetchone()
    return bool(ends) and (row is None or int(ends[-1].rpartition(".t")[2]) > row[0])


@asynccontextmanager
async def opened(folder: Path, plan: Plan) -> AsyncGenerator[World]:
    """Set the world up."""
    book, trap = Book(), Trap()
    home = folder / "hark"
    home.mkdir(parents=True)
    share = Share.of(plan.chats)
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(Model(book, trap))
        speech, hearing = await stack.enter_async_context(running_speech(book, trap, plan.seed))
        telegram = await stack.enter_async_context(telegram_town(share.telegram, share.groups, plan.seed, trap))
        slack = await stack.enter_async_context(slack_town(share.slack, plan.seed, trap))
        discord = await stack.enter_async_context(discord_town(share.discord, plan.seed, trap))
        at = Addresses(telegram.address, slack.url, discord.base, model.address, hearing, _free_port())
        (home / "config.toml").write_text(settings(at))
        client = ApiClient(f"http://127.0.0.1:{at.port}", plan.seed)
        stack.push_async_callback(client.close)
        secrets = {"FIRE_TELEGRAM": TOKEN, "FIRE_SLACK": BOT_TOKEN, "FIRE_SLACK_APP": APP_TOKEN}
        gateway = Gateway(home, secrets | {"FIRE_DISCORD": DISCORD_TOKEN})
        seats: list[Seat] = [*share.telegram_seats(telegram), *share.discord_seats(discord)]
        seats += [SlackSeat(slack, number) for number in range(share.slack)]
        seats += [ApiSeat(client, book, number) for number in range(share.api)]
        await stack.enter_async_context(_listening([seat for seat in seats if isinstance(seat, ApiSeat)]))
        people = [Person(seat, book, plan.seed + 100 + number) for number, seat in enumerate(seats)]
        yield World(plan, home, book, model, speech, telegram, slack, discord, client, gateway, trap, people)


@dataclass(frozen=True, slots=True)
class Share:
    """How many chats are where: of ten, four are Telegram's, some of them groups, two Discord's, three Slack's."""

    telegram: int
    groups: int
    discord: int
    slack: int
    api: int

    @staticmethod
    def of(chats: int) -> "Share":
        groups, discord, slack, api = (max(1, chats * part // 100) for part in (6, 20, 25, 10))
        return Share(max(1, chats - groups - discord - slack - api), groups, discord, slack, api)

    def telegram_seats(self, town: TelegramTown) -> list[TelegramSeat]:
        alone = [FIRST_CHAT + number for number in range(self.telegram)]
        groups = [FIRST_GROUP - number for number in range(self.groups)]
        together = [TelegramSeat(town, group, FIRST_CHAT + who) for group in groups for who in range(IN_A_GROUP)]
        return [*(TelegramSeat(town, person, person) for person in alone), *together]

    def discord_seats(self, town: DiscordTown) -> list[DiscordSeat]:
        """One of the chats is a channel, in which several people are."""
        alone = [DiscordSeat(town, number, f"{DIRECT}{number}") for number in range(self.discord - 1)]
        return [*alone, *(DiscordSeat(town, number, GENERAL) for number in range(IN_A_GROUP))]


@asynccontextmanager
async def _listening(seats: list[ApiSeat]) -> AsyncGenerator[None]:
    """Have the programs read along."""
    reading = [asyncio.create_task(seat.stream.run()) for seat in seats]
    try:
        yield
    finally:
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
