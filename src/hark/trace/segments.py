"""The segments of a turn: each measured span with its details from the journal."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import msgspec

from hark.protocol.messages import Call
from hark.protocol.outcomes import Failed, Span, Timings, Usage
from hark.protocol.records import (
    AnyRecord,
    CallEnded,
    CallStarted,
    Quarantined,
    Queued,
    Replied,
    ReplyTextSaved,
    Steered,
    TurnEnded,
    TurnStarted,
    Withdrawn,
)
from hark.text.cleanup import replace_surrogates, truncate_middle
from hark.text.graphemes import shorten
from hark.text.status_text import describe_effect, format_call_title
from hark.trace.turn_trace import COMPACTION, MODEL, PAUSE, TOOL, Segment, format_duration, format_tokens

TurnRecord = Steered | Replied | ReplyTextSaved | CallStarted | CallEnded | TurnEnded
MAX_DETAIL_CHARACTERS = 2_000
Details = tuple[tuple[str, str], ...]


class TurnRecords:
    """The records of one turn and of its messages. Records with an id are indexed by it."""

    def __init__(self, turn: str, records: Iterable[AnyRecord]) -> None:
        self.turn = turn
        self.start = TurnStarted(turn=turn, messages=())
        self.end: TurnEnded | None = None
        self.replies: list[Replied] = []
        self.calls: dict[str, Call] = {}
        self.call_starts: dict[str, float] = {}
        self.call_ends: dict[str, CallEnded] = {}
        self.late_outputs: dict[str, str] = {}
        self.queued: dict[str, Queued] = {}
        self.steered: dict[str, Steered] = {}
        self.turn_by_message: dict[str, str] = {}
        self.withdrawn: dict[str, str] = {}
        self._record_times: list[float] = []
        for record in records:
            self._add_record(record)

    @property
    def timings(self) -> Timings | None:
        """The measured timings, or None if the turn is still running or was ended by a crash."""
        return self.end.timings if self.end and self.end.timings.total > 0 else None

    @property
    def usage(self) -> Usage:
        """The token usage of all replies in the turn."""
        return self.end.usage if self.end else sum((reply.usage for reply in self.replies), Usage())

    @property
    def recorded_ms(self) -> float:
        """The time in ms from the turn's start to its last record. Ignores the record that closes a crashed turn."""
        is_crash = self.end is not None and self.timings is None
        end_at = self.end.at if self.end and is_crash else float("inf")
        return max((self.ms_since_start(at) for at in self._record_times if at < end_at), default=0.0)

    def ms_since_start(self, at: float) -> float:
        """Return the time in ms from the turn's start to `at`."""
        return max(0.0, (at - self.start.at) * 1000)

    def _add_record(self, record: AnyRecord) -> None:
        match record:
            case Queued(message=message):
                self.queued[message.id] = record
            case Withdrawn(message=name, reason=reason):
                self.withdrawn[name] = reason
            case TurnStarted(turn=turn, messages=messages):
                self.turn_by_message.update((message.id, turn) for message in messages)
                if turn == self.turn:
                    self.start = record
            case Quarantined(turn=turn, call=call, text=text):
                if turn == self.turn:
                    self.late_outputs[call] = text
            case Steered() | Replied() | ReplyTextSaved() | CallStarted() | CallEnded() | TurnEnded():
                if record.turn == self.turn:
                    self._add_turn_record(record)
            case _:
                pass

    def _add_turn_record(self, record: TurnRecord) -> None:
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
            case ReplyTextSaved():
                pass
        self._record_times.append(record.at)


def build_segments(records: TurnRecords) -> list[Segment]:
    """Return a turn's segments in order of their start. Calls that never started have zero duration."""
    timings = records.timings
    segments = _measured_segments(records, timings.spans) if timings else _estimated_segments(records)
    if timings and timings.first_chunk is not None:
        segments = _mark_first_chunk(segments, timings.first_chunk)
    segments.extend(_unstarted_calls(records))
    return sorted(segments, key=lambda part: part.start)


def _measured_segments(records: TurnRecords, spans: Sequence[Span]) -> list[Segment]:
    """Return a segment for each span. Spans are matched to replies and calls in the order in which they started."""
    replies = iter(records.replies)
    calls = [records.calls[name] for name in records.call_starts if name in records.calls]
    segments: list[Segment] = []
    for index, span in enumerate(spans):
        following = spans[index + 1] if index + 1 < len(spans) else None
        segment = Segment(span.kind, span.name, span.start, span.end, span.settle)
        if span.kind == TOOL:
            call = next((call for call in calls if call.name == span.name), None)
            if call is not None:
                calls.remove(call)
            segments.append(_describe_call(segment, records, call))
        elif span.kind == MODEL and not _has_failed(span, following):
            segments.append(_describe_reply(segment, next(replies, None), records))
        else:
            segments.append(_describe_other(segment, is_failed=_has_failed(span, following)))
    return segments


def _has_failed(span: Span, following: Span | None) -> bool:
    """Return whether a model request failed: the next span is a pause or a request to another route."""
    if following is None or span.kind not in (MODEL, COMPACTION):
        return False
    return (following.kind, following.name) == (PAUSE, "retry") or (
        following.kind == span.kind and following.name != span.name
    )


def _describe_other(segment: Segment, *, is_failed: bool) -> Segment:
    match segment.kind:
        case "model" | "compaction" if is_failed:
            return replace(segment, note="failed, retried", is_bad=True)
        case "compaction":
            return replace(segment, title="summarising older messages")
        case "pause" if segment.name == "tools":
            return replace(segment, title="waiting for MCP servers")
        case "pause":
            return replace(segment, title="before the next attempt")
        case "question":
            return replace(segment, title=f"waiting for approval of {segment.name}")
        case "snapshot":
            return replace(segment, title="saving files for undo")
        case _:
            return segment


def _describe_reply(segment: Segment, reply: Replied | None, records: TurnRecords) -> Segment:
    if reply is None:
        is_failed = records.end is not None and isinstance(records.end.outcome, Failed)
        return replace(segment, note="failed" if is_failed else "interrupted before the first token", is_bad=is_failed)
    message = reply.message
    titles = [format_call_title(call.name, call.arguments) for call in message.calls]
    details: Details = (
        ("step", str(reply.step)),
        ("route", reply.route or segment.name),
        ("tokens", format_tokens(reply.usage)),
        ("text", _clean_and_truncate(message.text)),
        ("tool calls", _clean_and_truncate("\n".join(titles))),
    )
    title = shorten(" ".join(message.text.split()), 200) or (f"calls {', '.join(titles)}" if titles else "")
    note = "interrupted" if message.is_partial else ""
    return replace(segment, title=title, note=note, details=_drop_empty(details), reply=reply)


def _describe_call(segment: Segment, records: TurnRecords, call: Call | None) -> Segment:
    if call is None:
        return segment
    title = format_call_title(call.name, call.arguments).removeprefix(call.name).strip()
    end = records.call_ends.get(call.id)
    effect = describe_effect(end.result.effect, is_error=end.result.is_error) if end else "running"
    details: Details = (
        ("arguments", _clean_and_truncate(_format_json(call.arguments))),
        ("effect", effect),
        ("result", _clean_and_truncate(end.result.text if end else "")),
        ("output after the turn ended", _clean_and_truncate(records.late_outputs.get(call.id, ""))),
    )
    segment = replace(segment, title=title, details=_drop_empty(details), call=call.id, request=call)
    if end is None:
        return segment
    return replace(segment, note="" if effect == "done" else effect, is_bad=end.result.is_error, result=end.result)


def _unstarted_calls(records: TurnRecords) -> Iterator[Segment]:
    for name, end in records.call_ends.items():
        if name not in records.call_starts and name in records.calls:
            at = records.ms_since_start(end.at)
            if records.timings:
                at = min(at, records.timings.total)
            yield _describe_call(Segment(TOOL, end.result.name, at, at, is_started=False), records, records.calls[name])


def _estimated_segments(records: TurnRecords) -> list[Segment]:
    """Return segments estimated from record timestamps, for a turn that is running or was ended by a crash."""
    total = records.recorded_ms
    segments: list[Segment] = []
    previous_end = 0.0
    for reply in records.replies:
        at = min(records.ms_since_start(reply.at), total)
        segment = Segment(MODEL, reply.route or MODEL, previous_end, max(previous_end, at))
        segments.append(_describe_reply(segment, reply, records))
        previous_end = at
        for call in reply.message.calls:
            if call.id in records.call_starts:
                start = records.ms_since_start(records.call_starts[call.id])
                end = records.call_ends.get(call.id)
                until = min(records.ms_since_start(end.at), total) if end else total
                segments.append(_describe_call(Segment(TOOL, call.name, start, max(start, until)), records, call))
                previous_end = max(previous_end, until)
    if total > previous_end:
        segments.append(Segment(MODEL, MODEL, previous_end, total))
    return segments


def _mark_first_chunk(segments: list[Segment], first_chunk_ms: float) -> list[Segment]:
    """Set the time of the first chunk on the model segment that received it."""
    for index, segment in enumerate(segments):
        if segment.kind == MODEL and segment.start <= first_chunk_ms <= segment.end:
            waited = (("first chunk", f"after {format_duration(first_chunk_ms - segment.start)}"),)
            segments[index] = replace(segment, first=first_chunk_ms, details=(*segment.details, *waited))
            break
    return segments


def _format_json(arguments: str) -> str:
    try:
        return msgspec.json.format(arguments, indent=2)
    except (msgspec.DecodeError, RecursionError):  # not JSON, or nested too deeply
        return arguments


def _clean_and_truncate(text: str) -> str:
    return truncate_middle(replace_surrogates(text), MAX_DETAIL_CHARACTERS)


def _drop_empty(details: Details) -> Details:
    return tuple((name, text) for name, text in details if text)
