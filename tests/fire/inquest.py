"""The audit of a whole world that has come to rest."""

import sqlite3
from collections import Counter

from hark.app.clock import SystemClock
from hark.store.sqlite import SqliteStore
from tests.crash.audit import Findings
from tests.crash.leftovers import leftovers
from tests.fire.audit import ChatAudit, Story, sent_of
from tests.fire.world import World, undealt


async def inquire(world: World) -> tuple[Findings, list[float]]:
    """Return what is wrong, the counts, and how long replies went on after a stop was taken."""
    findings = Findings()
    seconds: list[float] = []
    with sqlite3.connect(f"file:{world.ledger}?mode=ro", uri=True) as connection:
        sent = sent_of(connection)
    store = await SqliteStore.open(world.database, "auditor", SystemClock())
    try:
        for person in world.people:
            session = person.seat.session
            story = Story(await store.journal.read(session))
            audit = ChatAudit(findings, session, story, person.seat.shown())
            audit.messages(world.book)
            audit.turns()
            if not session.startswith("api-"):
                audit.replies(sent.get(session, {}))
            seconds += audit.stops(world.book, world.model.asked)
        if world.is_wedged:
            findings.wrong("wedged", f"{await store.inbox.unfinished()}, {undealt(world.ledger)} undealt")
    finally:
        await store.close()
    _prompts(findings, world)
    _effects(findings, world)
    for process in leftovers(world.gateway.dead):
        findings.wrong("left running", process)
    return findings, seconds


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
