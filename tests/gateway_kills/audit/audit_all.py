"""The audit of a whole world that has come to rest."""

import sqlite3
from collections import Counter

from hark.app.clock import SystemClock
from hark.store.sqlite import SqliteStore
from tests.crash.audit import Findings
from tests.crash.leftovers import leftovers
from tests.gateway_kills.audit.chat_case import LATE_SECONDS, Case, sent_of
from tests.gateway_kills.audit.journal import Story
from tests.gateway_kills.audit.messages import MessageAudit
from tests.gateway_kills.audit.replies import ReplyAudit
from tests.gateway_kills.audit.stops import StopAudit
from tests.gateway_kills.environment import World
from tests.gateway_kills.platforms.api import ApiFixture
from tests.gateway_kills.quiesce import times_of, undealt


async def inquire(world: World) -> tuple[Findings, list[float]]:
    """Return what is wrong, the counts, and how long replies went on after a stop was taken."""
    findings = Findings()
    seconds: list[float] = []
    with sqlite3.connect(f"file:{world.ledger}?mode=ro", uri=True) as connection:
        sent = sent_of(connection)
    _note_taken(world)
    late = max(LATE_SECONDS, *world.gateway.ready_seconds)
    store = await SqliteStore.open(world.database, "auditor", SystemClock())
    try:
        for session, person in world.chats.items():
            story = Story(await store.journal.read(session))
            prompt = world.model.prompts.get(session, Counter())
            fixture = person.fixture
            told = fixture.stream.delivered if isinstance(fixture, ApiFixture) else Counter[str]()
            case = Case(
                findings, session, world.book, story, fixture.shown(), sent.get(session, {}), prompt, told, late
            )
            MessageAudit(case).run()
            ReplyAudit(case).run()
            stops = StopAudit(case, world.model.asked)
            stops.run()
            seconds += stops.seconds
        if world.wedged:
            left = f"{await store.inbox.unfinished()}, {undealt(world.ledger)} undealt"
            findings.wrong("wedged", f"{world.wedged}: {left}")
    finally:
        await store.close()
    _prompts(findings, world)
    _effects(findings, world)
    for process in leftovers(world.gateway.dead):
        findings.wrong("left running", process)
    return findings, seconds


def _note_taken(world: World) -> None:
    """Where no platform hears that something was taken, the ledger knows when it was."""
    times = times_of(world.ledger)
    for deed in world.book.deeds():
        if deed.name is not None:
            deed.taken = times.get(deed.name)


def _prompts(findings: Findings, world: World) -> None:
    findings.counts["model requests"] = len(world.model.asked)
    findings.counts["recordings heard"] = world.speech.requests
    for complaint in world.model.complaints:
        findings.wrong("wrong prompt", complaint)


def _effects(findings: Findings, world: World) -> None:
    path = world.home.parent / "effects"
    marks = Counter(path.read_text().split() if path.exists() else [])
    findings.counts["commands run"] = len(marks)
    for mark, times in marks.items():
        if times > 1:
            findings.wrong("effect twice", f"the command of {mark} ran {times} times")
