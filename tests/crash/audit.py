"""Holds the journal and the effects against what was posted and told: nothing lost, nothing doubled."""

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
from tests.crash.messages import Posted
from tests.fakes.models.history_rules import check_openai_chat

ENDPOINT = Endpoint("http://127.0.0.1/v1", "crash")
MARKS = ("mark", "mark_in_child")


@dataclass(slots=True)
class Findings:
    """Counts of what was found, and everything that is wrong."""

    counts: Counter[str] = field(default_factory=Counter[str])
    problems: list[str] = field(default_factory=list[str])

    def wrong(self, kind: str, what: str) -> None:
        self.counts[kind] += 1
        self.problems.append(f"{kind}: {what}")


class Fate:
    """What one session's journal says of messages, turns and calls."""

    def __init__(self, session: str, records: Sequence[AnyRecord]) -> None:
        self.session = session
        self.state = SessionState()
        self.places: dict[str, list[str]] = {}
        self.texts: dict[str, str] = {}
        self.ends: dict[str, list[TurnEnded]] = {}
        self.started: list[str] = []
        self.asked: dict[str, str] = {}
        self.results: dict[str, list[CallResult]] = {}
        for record in records:
            self.state.apply(record)
            self._note(record)
        for waiting in self.state.queue:
            self._place(waiting.message.id, "queue", waiting.message.text)

    def _note(self, record: AnyRecord) -> None:
        match record:
            case TurnStarted() | Steered():
                self.ends.setdefault(record.turn, [])
                for message in record.messages:
                    self._place(message.id, record.turn, message.text)
            case Withdrawn():
                self._place(record.message, "withdrawn", record.text)
            case Replied():
                self.asked.update((call.id, call.name) for call in record.message.calls)
            case CallStarted():
                self.started.append(record.call)
            case CallEnded():
                self.results.setdefault(record.result.call, []).append(record.result)
            case TurnEnded():
                self.ends.setdefault(record.turn, []).append(record)
            case _:
                pass

    def _place(self, message: str, place: str, text: str) -> None:
        self.places.setdefault(message, []).append(place)
        self.texts[message] = text


async def audit(store: Store, posted: Iterable[Posted], effects: Sequence[str]) -> Findings:
    """Check all sessions of a home on which nothing runs any more."""
    findings = Findings()
    book: dict[str, dict[str, Posted]] = {}
    for one in posted:
        book.setdefault(one.session, {})[one.id] = one
    marked = Counter(effects)
    for call, times in marked.items():
        if times > 1:
            findings.wrong("effect twice", f"{call}, {times} times")
    for session, messages in book.items():
        fate = Fate(session, await store.journal.read(session))
        accepted = [entry.command for entry in await store.inbox.after(session, 0)]
        _messages(findings, fate, messages, {command.id for command in accepted if isinstance(command, Say)})
        _turns(findings, fate)
        _calls(findings, fate, marked)
        _transcript(findings, fate)
        if fate.state.cursor != len(accepted):
            findings.wrong("unread", f"{session}: {len(accepted)} in the inbox, read up to {fate.state.cursor}")
    if unfinished := await store.inbox.unfinished():
        findings.wrong("unfinished", ", ".join(unfinished))
    findings.counts["marks"] = len(marked)
    return findings


def _messages(findings: Findings, fate: Fate, messages: Mapping[str, Posted], accepted: set[str]) -> None:
    counts = findings.counts
    for name in accepted - messages.keys():
        findings.wrong("invented", f"{name} was never posted")
    for name in fate.places.keys() - accepted:
        findings.wrong("invented", f"{name} is in the journal of {fate.session} and not in its inbox")
    for one in messages.values():
        counts["posted"] += 1
        counts["posts"] += one.posts
        places = fate.places.get(one.id, [])
        if one.has_receipt and one.id not in accepted:
            findings.wrong("lost", f"{one.id} has a receipt and is not in the inbox")
        elif one.id in accepted and not places:
            findings.wrong("lost", f"{one.id} was accepted and is nowhere; told {one.receipts}")
        elif len(places) > 1:
            findings.wrong("doubled", f"{one.id} is in {places}")
        elif places:
            counts[places[0] if places[0] in ("queue", "withdrawn") else "in a turn"] += 1
            _told(findings, one, places[0], fate.texts[one.id])


def _told(findings: Findings, one: Posted, place: str, text: str) -> None:
    """Check that what was told of a message is true."""
    if one.is_withdrawn and place != "withdrawn":
        findings.wrong("dishonest", f"{one.id} was said to be withdrawn and is in {place}")
    if not one.may_read(text):
        findings.wrong("dishonest", f"{one.id} ran as {text!r}, last said to be {one.edited!r}")
    if one.started_in() - {place}:
        findings.wrong("dishonest", f"{one.id} was said to start {one.started_in()} and is in {place}")


def _turns(findings: Findings, fate: Fate) -> None:
    for turn, ends in fate.ends.items():
        findings.counts["turns"] += 1
        if len(ends) != 1:
            findings.wrong("open turn" if not ends else "turn ended twice", f"{turn} has {len(ends)} ends")
        elif isinstance(outcome := ends[0].outcome, Interrupted):
            findings.counts["crashed turns" if outcome.source == "crash" else "interrupted turns"] += 1
        else:
            kind = "completed turns" if type(outcome).__name__ == "Completed" else "failed turns"
            findings.counts[kind] += 1
            if kind == "failed turns":
                findings.problems.append(f"failed: {turn}: {outcome}")


def _calls(findings: Findings, fate: Fate, marked: Mapping[str, int]) -> None:
    for call, times in Counter(fate.started).items():
        if times > 1:
            findings.wrong("call started twice", f"{call} in {fate.session}")
    for call, name in fate.asked.items():
        results = fate.results.get(call, [])
        findings.counts["calls"] += 1
        if len(results) != 1:
            findings.wrong("call without one result", f"{call} in {fate.session} has {len(results)}")
            continue
        effect = results[0].effect
        findings.counts[f"calls {effect}"] += 1
        if effect is not Effect.NOT_STARTED and call not in fate.started:
            findings.wrong("false effect", f"{call} is {effect}, and was never started")
        if effect is Effect.NOT_STARTED and call in marked:
            findings.wrong("false effect", f"{call} is said not to have started, but left its mark")
        if effect is Effect.COMPLETED and name in MARKS and call not in marked:
            findings.wrong("false effect", f"{call} is said to be completed, but left no mark")
        is_crash = results[0].text.startswith("[the program crashed")
        if is_crash and call in fate.started and effect is not Effect.UNKNOWN:
            findings.wrong("false effect", f"{call} was cut by a crash and is {effect}")


def _transcript(findings: Findings, fate: Fate) -> None:
    if not fate.state.transcript.messages:
        return
    body = encode_request(Request("system", fate.state.transcript.messages), ENDPOINT)
    try:
        check_openai_chat(json.loads(body))
    except AssertionError as error:
        findings.wrong("invalid transcript", f"{fate.session}: {error}")
    findings.counts["transcripts checked"] += 1
