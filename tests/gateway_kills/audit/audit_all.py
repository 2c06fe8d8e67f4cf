"""The audit of the whole environment after all work has ended."""

import sqlite3
from collections import Counter

from hark.app.clock import SystemClock
from hark.store.sqlite import SqliteStore
from tests.crash.audit import AuditResults
from tests.crash.leftovers import find_leftover_processes
from tests.gateway_kills.audit.chat_case import LATE_SECONDS, ChatCase, read_sent_messages
from tests.gateway_kills.audit.journal import JournalFacts
from tests.gateway_kills.audit.messages import MessageAudit
from tests.gateway_kills.audit.replies import ReplyAudit
from tests.gateway_kills.audit.stops import StopAudit
from tests.gateway_kills.environment import GatewayEnvironment
from tests.gateway_kills.platforms.api import ApiFixture
from tests.gateway_kills.quiesce import count_unprocessed, read_accept_times


async def audit_all(environment: GatewayEnvironment) -> tuple[AuditResults, list[float]]:
    """Return the audit's results, and how many seconds each reply continued after an accepted stop."""
    findings = AuditResults()
    seconds: list[float] = []
    with sqlite3.connect(f"file:{environment.ledger}?mode=ro", uri=True) as connection:
        sent = read_sent_messages(connection)
    _read_accept_times(environment)
    late = max(LATE_SECONDS, *environment.gateway.ready_seconds)
    store = await SqliteStore.open(environment.database, "auditor", SystemClock())
    try:
        for session, person in environment.chats.items():
            facts = JournalFacts(await store.journal.read(session))
            prompt = environment.model.prompts.get(session, Counter())
            fixture = person.fixture
            delivered = fixture.stream.delivered if isinstance(fixture, ApiFixture) else Counter[str]()
            case = ChatCase(
                findings,
                session,
                environment.expectations,
                facts,
                fixture.visible_messages(),
                sent.get(session, {}),
                prompt,
                delivered,
                late,
            )
            MessageAudit(case).run()
            ReplyAudit(case).run()
            stops = StopAudit(case, environment.model.requests)
            stops.run()
            seconds += stops.seconds
        if environment.stuck_work:
            pending = f"{await store.inbox.unfinished_sessions()}, {count_unprocessed(environment.ledger)} undealt"
            findings.add_problem("wedged", f"{environment.stuck_work}: {pending}")
    finally:
        await store.close()
    _check_prompts(findings, environment)
    _check_effects(findings, environment)
    for process in find_leftover_processes(environment.gateway.dead):
        findings.add_problem("left running", process)
    return findings, seconds


def _read_accept_times(environment: GatewayEnvironment) -> None:
    """Set the acceptance times of actions from the ledger if their platform doesn't report them."""
    times = read_accept_times(environment.ledger)
    for action in environment.expectations.actions():
        if action.name is not None:
            action.accepted_at = times.get(action.name)


def _check_prompts(findings: AuditResults, environment: GatewayEnvironment) -> None:
    findings.counts["model requests"] = len(environment.model.requests)
    findings.counts["recordings transcribed"] = environment.speech.requests
    for complaint in environment.model.problems:
        findings.add_problem("wrong prompt", complaint)


def _check_effects(findings: AuditResults, environment: GatewayEnvironment) -> None:
    path = environment.home.parent / "effects"
    marks = Counter(path.read_text().split() if path.exists() else [])
    findings.counts["commands run"] = len(marks)
    for mark, times in marks.items():
        if times > 1:
            findings.add_problem("effect twice", f"the command of {mark} ran {times} times")
