"""The parts of a turn: each measured stretch, with what the records say about it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import msgspec

from hark.protocol.messages import Call
from hark.protocol.outcomes import Failed, Span, Timings, Usage
from hark.protocol.records import (
    AnyRecord,
    CallEnded,
    CallStarted,
    Progress,
    Quarantined,
    Queued,
    Replied,
    Steered,
    TurnEnded,
    TurnStarted,
    Withdrawn,
)
from hark.text.clean import clean, cut_middle
from hark.text.status_text import call_title, effect_words
from hark.trace.turn_trace import COMPACTION, MODEL, PAUSE, TOOL, Segment, time_words, token_words

Own = Steered | Replied | Progress | CallStarted | CallEnded | TurnEnded
SHOWN_CHARACTERS = 2_000
Details = tuple[tuple[str, str], ...]


class TurnRecords:
    """One turn's records, and those of messages that met it; by id where they have one."""

    def __init__(self, turn: str, records: Iterable[AnyRecord]) -> None:
        self.turn = turn
        self.start = TurnStarted(turn=turn, messages=())
        self.end: TurnEnded | None = None
        self.replies: list[Replied] = []
        self.calls: dict[str, Call] = {}
        self.call_starts: dict[str, float] = {}
        self.call_ends: dict[str, CallEnded] = {}
        self.late: dict[str, str] = {}
        self.queued: dict[str, Queued] = {}
        self.steered: dict[str, Steered] = {}
        self.started_by: dict[str, str] = {}
        self.withdrawn: dict[str, str] = {}
        self._times: list[float] = []
        for record in records:
            self._take(record)

    @property
    def timings(self) -> Timings | None:
        """What was measured. A crash leaves nothing, and a running turn has nothing yet."""
        return self.end.timings if self.end and self.end.timings.total > 0 else None

    @property
    def usage(self) -> Usage:
        """The tokens of all its replies."""
        return self.end.usage if self.end else sum((reply.usage for reply in self.replies), Usage())

    @property
    def known_total(self) -> float:
        """The ms from its start to the last sign of life; what settled a crash came later, from another process."""
        is_crash = self.end is not None and self.timings is None
        end_at = self.end.at if self.end and is_crash else float("inf")
        return max((self.since(at) for at in self._times if at < end_at), default=0.0)

    def since(self, at: float) -> float:
        """Return the ms from the turn's start."""
        return max(0.0, (at - self.start.at) * 1000)

    def _take(self, record: AnyRecord) -> None:
        match record:
            case Queued(message=message):
                self.queued[message.id] = record
            case Withdrawn(message=name, reason=reason):
                self.withdrawn[name] = reason
            case TurnStarted(turn=turn, messages=messages):
                self.started_by.update((message.id, turn) for message in messages)
                if turn == self.turn:
                    self.start = record
            case Quarantined(turn=turn, call=call, text=text):
                if turn == self.turn:
                    self.late[call] = text
            case Steered() | Replied() | Progress() | CallStarted() | CallEnded() | TurnEnded():
                if record.turn == self.turn:
                    self._take_own(record)
            case _:
                pass

    def _take_own(self, record: Own) -> None:
        match record:
            case Steered(messages=messages):
                self.steered.update((message.id, record) for message in messages)
            case Replied(message=message):
                self.replies.append(record)
                self.calls.update((call.id, call) for call in message.calls)
            case CallStarted(call=call, at=at):
                self.call_starts[call] = at
            case CallEnded(result=result):
                self.call_ends[result.call] = record
            case TurnEnded():
                self.end = record
            case Progress():
                pass
        self._times.append(record.at)


def parts_of(records: TurnRecords) -> list[Segment]:
    """Return the parts in the order of their starts; calls that never started are there with no length."""
    timings = records.timings
    parts = _measured(records, timings.spans) if timings else _guessed(records)
    if timings and timings.first_chunk is not None:
        parts = _with_first_chunk(parts, timings.first_chunk)
    parts.extend(_never_started(records))
    return sorted(parts, key=lambda part: part.start)


def _measured(records: TurnRecords, spans: Sequence[Span]) -> list[Segment]:
    """Give each span what is known of it: replies and calls come in the order in which they were begun."""
    replies = iter(records.replies)
    calls = [records.calls[name] for name in records.call_starts if name in records.calls]
    parts: list[Segment] = []
    for place, span in enumerate(spans):
        following = spans[place + 1] if place + 1 < len(spans) else None
        bare = Segment(span.kind, span.name, span.start, span.end, span.settle)
        if span.kind == TOOL:
            call = next((call for call in calls if call.name == span.name), None)
            if call is not None:
                calls.remove(call)
            parts.append(_called(bare, records, call))
        elif span.kind == MODEL and not _gave_way(span, following):
            parts.append(_replied(bare, next(replies, None), records))
        else:
            parts.append(_other(bare, is_failed=_gave_way(span, following)))
    return parts


def _gave_way(span: Span, following: Span | None) -> bool:
    """Tell whether a request failed: it is asked again after a pause, or another route is asked at once."""
    if following is None or span.kind not in (MODEL, COMPACTION):
        return False
    return following.kind == PAUSE or (following.kind == span.kind and following.name != span.name)


def _other(part: Segment, *, is_failed: bool) -> Segment:
    match part.kind:
        case "model" | "compaction" if is_failed:
            return replace(part, note="failed, asked again", is_bad=True)
        case "compaction":
            return replace(part, title="summarises what is old")
        case "pause":
            return replace(part, title="before the next try")
        case "question":
            return replace(part, title=f"waits for a person: may {part.name} run?")
        case "snapshot":
            return replace(part, title="keeps files for undo")
        case _:
            return part


def _replied(part: Segment, reply: Replied | None, records: TurnRecords) -> Segment:
    if reply is None:
        is_failed = records.end is not None and isinstance(records.end.outcome, Failed)
        return replace(part, note="failed" if is_failed else "cut before it said anything", is_bad=is_failed)
    message = reply.message
    asked = ", ".join(call_title(call.name, call.arguments) for call in message.calls)
    details: Details = (
        ("step", str(reply.step)),
        ("route", reply.route or part.name),
        ("tokens", token_words(reply.usage)),
        ("said", _shown(message.text)),
        ("asked for", _shown("\n".join(call_title(call.name, call.arguments) for call in message.calls))),
    )
    title = " ".join(message.text.split())[:200] or (f"asks for {asked}" if asked else "")
    note = "cut" if message.is_partial else ""
    return replace(part, title=title, note=note, details=_filled(details), reply=reply)


def _called(part: Segment, records: TurnRecords, call: Call | None) -> Segment:
    if call is None:
        return part
    title = call_title(call.name, call.arguments).removeprefix(call.name).strip()
    end = records.call_ends.get(call.id)
    words = effect_words(end.result.effect, is_error=end.result.is_error) if end else "it runs"
    details: Details = (
        ("arguments", _shown(_laid_out(call.arguments))),
        ("effect", words),
        ("result", _shown(end.result.text if end else "")),
        ("said after the turn was over", _shown(records.late.get(call.id, ""))),
    )
    part = replace(part, title=title, details=_filled(details), call=call.id, request=call)
    if end is None:
        return part
    return replace(part, note="" if words == "done" else words, is_bad=end.result.is_error, result=end.result)


def _never_started(records: TurnRecords) -> Iterator[Segment]:
    for name, end in records.call_ends.items():
        if name not in records.call_starts and name in records.calls:
            at = records.since(end.at)
            if records.timings:
                at = min(at, records.timings.total)
            yield _called(Segment(TOOL, end.result.name, at, at, is_started=False), records, records.calls[name])


def _guessed(records: TurnRecords) -> list[Segment]:
    """Return parts by the times of the records alone: for a turn that runs, or that a crash cut."""
    total = records.known_total
    parts: list[Segment] = []
    edge = 0.0
    for reply in records.replies:
        at = min(records.since(reply.at), total)
        parts.append(_replied(Segment(MODEL, reply.route or MODEL, edge, max(edge, at)), reply, records))
        edge = at
        for call in reply.message.calls:
            if call.id in records.call_starts:
                start = records.since(records.call_starts[call.id])
                end = records.call_ends.get(call.id)
                until = min(records.since(end.at), total) if end else total
                parts.append(_called(Segment(TOOL, call.name, start, max(start, until)), records, call))
                edge = max(edge, until)
    if total > edge:
        parts.append(Segment(MODEL, MODEL, edge, total))
    return parts


def _with_first_chunk(parts: list[Segment], first: float) -> list[Segment]:
    """Mark where the model's first sign of life fell."""
    for place, part in enumerate(parts):
        if part.kind == MODEL and part.start <= first <= part.end:
            waited = (("first sign of life", f"after {time_words(first - part.start)}"),)
            parts[place] = replace(part, first=first, details=(*part.details, *waited))
            break
    return parts


def _laid_out(arguments: str) -> str:
    try:
        return msgspec.json.format(arguments, indent=2)
    except msgspec.DecodeError:
        return arguments


def _shown(text: str) -> str:
    return cut_middle(clean(text), SHOWN_CHARACTERS)


def _filled(details: Details) -> Details:
    return tuple((name, text) for name, text in details if text)
