"""Compares the journal and the effects with the sent messages and receipts: nothing is lost or duplicated."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hark.engine.session.state import SessionState
from hark.protocol.commands import Say
from hark.protocol.messages import CallResult, Effect
from hark.protocol.outcomes import Interrupted
from hark.protocol.provider import Request
from hark.protocol.records import (
    AnyRecord,
    CallEnded,
    CallStarted,
    Replied,
    Steered,
    TurnEnded,
    TurnStarted,
    Withdrawn,
)
from hark.protocol.store import Store
from hark.providers.endpoint import Endpoint
from hark.providers.openai.chat import encode_request
from tests.crash.messages import SentMessage
from tests.fakes.models.history_rules import check_openai_chat

ENDPOINT = Endpoint("http://127.0.0.1/v1", "crash")
MARKS = ("mark", "mark_in_child")


@dataclass(slots=True)
class AuditResults:
    """The counts and the problems that the audit found."""

    counts: Counter[str] = field(default_factory=Counter[str])
    problems: list[str] = field(default_factory=list[str])

    def add_problem(self, kind: str, detail: str) -> None:
        self.counts[kind] += 1
        self.problems.append(f"{kind}: {detail}")


class SessionFacts:
    """The state of messages, turns and calls according to one session's journal."""

    def __init__(self, session: str, records: Sequence[AnyRecord]) -> None:
        self.session = session
        self.state = SessionState()
        self.locations: dict[str, list[str]] = {}
        self.texts: dict[str, str] = {}
        self.ends: dict[str, list[TurnEnded]] = {}
        self.started: list[str] = []
        self.requested_calls: dict[str, str] = {}
        self.results: dict[str, list[CallResult]] = {}
        for record in records:
            self.state.apply(record)
            self._apply(record)
        for queued in self.state.queue:
            self._add_location(queued.message.id, "queue", queued.message.text)

    def _apply(self, record: AnyRecord) -> None:
        match record:
            case TurnStarted() | Steered():
                self.ends.setdefault(record.turn, [])
                for message in record.messages:
                    self._add_location(message.id, record.turn, message.text)
            case Withdrawn():
                self._add_location(record.message, "withdrawn", record.text)
            case Replied():
                self.requested_calls.update((call.id, call.name) for call in record.message.calls)
            case CallStarted():
                self.started.append(record.call)
            case CallEnded():
                self.results.setdefault(record.result.call, []).append(record.result)
            case TurnEnded():
                self.ends.setdefault(record.turn, []).append(record)
            case _:
                pass

    def _add_location(self, message: str, location: str, text: str) -> None:
        self.locations.setdefault(message, []).append(location)
        self.texts[message] = text


async def audit(store: Store, sent_messages: Iterable[SentMessage], effects: Sequence[str]) -> AuditResults:
    """Check all sessions in a store that no process is using."""
    findings = AuditResults()
    by_session: dict[str, dict[str, SentMessage]] = {}
    for one in sent_messages:
        by_session.setdefault(one.session, {})[one.id] = one
    effect_counts = Counter(effects)
    for call, times in effect_counts.items():
        if times > 1:
            findings.add_problem("effect twice", f"{call}, {times} times")
    for session, messages in by_session.items():
        facts = SessionFacts(session, await store.journal.read(session))
        accepted = [entry.command for entry in await store.inbox.entries_after(session, 0)]
        _check_messages(findings, facts, messages, {command.id for command in accepted if isinstance(command, Say)})
        _check_turns(findings, facts)
        _check_calls(findings, facts, effect_counts)
        _check_transcript(findings, facts)
        if facts.state.cursor != len(accepted):
            findings.add_problem("unread", f"{session}: {len(accepted)} in the inbox, read up to {facts.state.cursor}")
    if unfinished := await store.inbox.unfinished_sessions():
        findings.add_problem("unfinished", ", ".join(unfinished))
    findings.counts["marks"] = len(effect_counts)
    return findings


def _check_messages(
    findings: AuditResults, facts: SessionFacts, messages: Mapping[str, SentMessage], accepted: set[str]
) -> None:
    counts = findings.counts
    for name in accepted - messages.keys():
        findings.add_problem("invented", f"{name} was never posted")
    for name in facts.locations.keys() - accepted:
        findings.add_problem("invented", f"{name} is in the journal of {facts.session} and not in its inbox")
    for one in messages.values():
        counts["posted"] += 1
        counts["posts"] += one.send_count
        locations = facts.locations.get(one.id, [])
        if one.has_receipt and one.id not in accepted:
            findings.add_problem("lost", f"{one.id} has a receipt and is not in the inbox")
        elif one.id in accepted and not locations:
            findings.add_problem("lost", f"{one.id} was accepted and is nowhere; told {one.receipts}")
        elif len(locations) > 1:
            findings.add_problem("doubled", f"{one.id} is in {locations}")
        elif locations:
            counts[locations[0] if locations[0] in ("queue", "withdrawn") else "in a turn"] += 1
            _check_receipts(findings, one, locations[0], facts.texts[one.id])


def _check_receipts(findings: AuditResults, one: SentMessage, location: str, text: str) -> None:
    """Check that a message's receipts match its location and text in the journal."""
    if one.is_withdrawn and location != "withdrawn":
        findings.add_problem("dishonest", f"{one.id} was said to be withdrawn and is in {location}")
    if not one.may_have_text(text):
        findings.add_problem("dishonest", f"{one.id} ran as {text!r}, last said to be {one.edited!r}")
    if one.started_turns() - {location}:
        findings.add_problem("dishonest", f"{one.id} was said to start {one.started_turns()} and is in {location}")


def _check_turns(findings: AuditResults, facts: SessionFacts) -> None:
    for turn, ends in facts.ends.items():
        findings.counts["turns"] += 1
        if len(ends) != 1:
            findings.add_problem("open turn" if not ends else "turn ended twice", f"{turn} has {len(ends)} ends")
        elif isinstance(outcome := ends[0].outcome, Interrupted):
            findings.counts["crashed turns" if outcome.source == "crash" else "interrupted turns"] += 1
        else:
            kind = "completed turns" if type(outcome).__name__ == "Completed" else "failed turns"
            findings.counts[kind] += 1
            if kind == "failed turns":
                findings.problems.append(f"failed: {turn}: {outcome}")


def _check_calls(findings: AuditResults, facts: SessionFacts, effect_counts: Mapping[str, int]) -> None:
    for call, times in Counter(facts.started).items():
        if times > 1:
            findings.add_problem("call started twice", f"{call} in {facts.session}")
    for call, name in facts.requested_calls.items():
        results = facts.results.get(call, [])
        findings.counts["calls"] += 1
        if len(results) != 1:
            findings.add_problem("call without one result", f"{call} in {facts.session} has {len(results)}")
            continue
        effect = results[0].effect
        findings.counts[f"calls {effect}"] += 1
        if effect is not Effect.NOT_STARTED and call not in facts.started:
            findings.add_problem("false effect", f"{call} is {effect}, and was never started")
        if effect is Effect.NOT_STARTED and call in effect_counts:
            findings.add_problem("false effect", f"{call} is said not to have started, but left its mark")
        if effect is Effect.COMPLETED and name in MARKS and call not in effect_counts:
            findings.add_problem("false effect", f"{call} is said to be completed, but left no mark")
        is_crash = results[0].text.startswith("[the program crashed")
        if is_crash and call in facts.started and effect is not Effect.UNKNOWN:
            findings.add_problem("false effect", f"{call} was cut by a crash and is {effect}")


def _check_transcript(findings: AuditResults, facts: SessionFacts) -> None:
    if not facts.state.transcript.messages:
        return
    body = encode_request(Request("system", facts.state.transcript.messages), ENDPOINT)
    try:
        check_openai_chat(json.loads(body))
    except AssertionError as error:
        findings.add_problem("invalid transcript", f"{facts.session}: {error}")
    findings.counts["transcripts checked"] += 1
