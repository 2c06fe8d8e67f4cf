"""A turn's trace: its segments with start and end times, the messages that arrived, and the outcome.

All renderers use this value: terminal text, HTML, OpenTelemetry and JSON.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from hark.protocol.messages import Call, CallResult
from hark.protocol.names import short_turn_name
from hark.protocol.outcomes import Completed, Failed, Outcome, Usage
from hark.protocol.records import Replied

MODEL, TOOL, QUESTION, PAUSE, SNAPSHOT, COMPACTION = "model", "tool", "question", "pause", "snapshot", "compaction"
WAITING_KINDS = (QUESTION, PAUSE, SNAPSHOT)


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a turn, with times in ms from the turn's start.

    `settle` is the time that the segment took to stop after the interrupt. `first` is the time of its first chunk, if
    known. `depth` is 1 for a segment of a child session, 2 for a segment of that session's child. `reply`, `request`
    and `result` come from the journal and are not part of the JSON.
    """

    kind: str
    name: str
    start: float
    end: float
    settle: float = 0.0
    title: str = ""
    note: str = ""
    details: tuple[tuple[str, str], ...] = ()
    is_bad: bool = False
    first: float | None = None
    depth: int = 0
    call: str = ""
    reply: Replied | None = None
    request: Call | None = None
    result: CallResult | None = None
    is_started: bool = True

    @property
    def duration(self) -> float:
        """The segment's duration in ms."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class MessageArrival:
    """A message that arrived for the turn: its time, its kind (prompt, steer, interrupt, queue) and its outcome."""

    at: float
    how: str
    text: str
    became: str


@dataclass(frozen=True, slots=True)
class TurnTrace:
    """The trace of one turn. A running turn has no `outcome`. Times not measured come from the journal's records."""

    turn: str
    began_at: float
    total: float
    parts: tuple[Segment, ...]
    arrivals: tuple[MessageArrival, ...]
    outcome: Outcome | None = None
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    interrupted_at: float | None = None
    settle: float = 0.0
    is_measured: bool = True
    ended_at: float = 0.0

    @property
    def number(self) -> str:
        """The turn's short name within its session, such as `t4`."""
        return short_turn_name(self.turn)

    @property
    def prompt(self) -> str:
        """The text of the messages that started the turn."""
        return " / ".join(arrival.text for arrival in self.arrivals if arrival.how == "prompt")

    @property
    def outcome_kind(self) -> str:
        """The outcome's category: `runs` (still running), `good`, `wrong` (failed) or `cut` (stopped or limited)."""
        match self.outcome:
            case None:
                return "runs"
            case Completed():
                return "good"
            case Failed():
                return "wrong"
            case _:
                return "cut"

    def total_duration(self, *kinds: str) -> float:
        """Return the total duration in ms of the turn's segments of these kinds, without child sessions."""
        return sum(part.duration for part in self.parts if part.kind in kinds and not part.depth)

    def facts(self) -> list[tuple[str, str]]:
        """Return the turn's duration, tokens and cost as pairs of label and text."""
        facts = [("model", format_duration(self.total_duration(MODEL, COMPACTION)))]
        if tools := self.total_duration(TOOL):
            facts.append(("tools", format_duration(tools)))
        if waits := self.total_duration(*WAITING_KINDS):
            facts.append(("wait", format_duration(waits)))
        if tokens := format_tokens(self.usage):
            facts.append(("tokens", tokens))
        if self.cost is not None:
            facts.append(("cost", f"${self.cost:.4f}"))
        return facts

    def rows(self) -> Iterator[Segment | MessageArrival]:
        """Yield segments and messages in chronological order. A child's segments follow the call that started it."""
        arrivals = list(self.arrivals)
        for part in self.parts:
            while arrivals and not part.depth and arrivals[0].at <= part.start:
                yield arrivals.pop(0)
            yield part
        yield from arrivals

    def measurement_note(self) -> str:
        """Return a note that explains why the times come from the records, or "" if they were measured."""
        if self.is_measured:
            return ""
        why = "The turn is still running" if self.outcome is None else "The process ended before the turn did"
        return f"{why}. Its times are taken from the journal."

    def stopped_segments(self) -> list[Segment]:
        """Return the turn's segments that the interrupt had to stop, without child sessions."""
        return [part for part in self.parts if part.settle > 0 and not part.depth]


def as_json(trace: TurnTrace) -> dict[str, Any]:
    """Convert a trace to JSON-serializable data, without the journal records."""
    bare = tuple(replace(part, reply=None, request=None, result=None) for part in trace.parts)
    data: dict[str, Any] = msgspec.to_builtins(replace(trace, parts=bare))
    del data["ended_at"]
    for part in data["parts"]:
        for name in ("reply", "request", "result", "is_started"):
            del part[name]
    return data


def format_duration(milliseconds: float) -> str:
    """Format a duration for display, such as `12 ms` or `3.45 s`."""
    if milliseconds < 9.95:
        return f"{milliseconds:.1f} ms"
    if milliseconds < 999.5:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 59.95:
        return f"{seconds:.2f} s" if seconds < 9.995 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02} h"


def format_tokens(usage: Usage) -> str:
    """Format the token usage of a turn or a reply for display, or return "" if tokens were not counted."""
    if not usage.input_tokens and not usage.output_tokens:
        return ""
    cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
    return f"{usage.input_tokens:,} in{cached}, {usage.output_tokens:,} out"


def segment_label(segment: Segment) -> str:
    """Return a short label for a segment."""
    match segment.kind:
        case "tool":
            return f"{segment.name} {segment.title}".rstrip()
        case "question":
            return f"approval {segment.name}"
        case "snapshot":
            return "snapshot"
        case _ if segment.kind == segment.name:
            return segment.kind
        case _:
            return f"{segment.kind} {segment.name}"


def format_stop_time(trace: TurnTrace) -> str:
    """Format the time that the turn took to stop, in total and for each segment."""
    parts = ", ".join(f"{part.name} {format_duration(part.settle)}" for part in trace.stopped_segments())
    return f"stopped in {format_duration(trace.settle)}" + (f" ({parts})" if parts else "")


def axis_ticks(total_ms: float, max_count: int) -> list[float]:
    """Return at most `max_count` round, evenly spaced times from 0 to `total_ms`."""
    for step in _tick_steps():
        if int(total_ms / step) < max_count:
            return [step * number for number in range(int(total_ms / step) + 1)]
    return [0.0]


def format_tick(milliseconds: float) -> str:
    """Format the time of an axis tick."""
    if not milliseconds:
        return "0"
    if milliseconds < 1000:
        return f"{milliseconds:g} ms"
    return f"{milliseconds / 1000:g} s" if milliseconds < 60_000 else format_duration(milliseconds)


def _tick_steps() -> Iterable[float]:
    yield from (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)
    seconds = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 18000, 86400)
    yield from (second * 1000 for second in seconds)
