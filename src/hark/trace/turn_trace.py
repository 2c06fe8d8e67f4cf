"""A turn's trace: its segments with start and end times, the messages that arrived, and the outcome.

Every renderer works from this value: terminal text, HTML, OpenTelemetry and JSON.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from hark.protocol.messages import Call, CallResult
from hark.protocol.names import short_name
from hark.protocol.outcomes import Completed, Failed, Outcome, Usage
from hark.protocol.records import Replied

MODEL, TOOL, QUESTION, PAUSE, SNAPSHOT, COMPACTION = "model", "tool", "question", "pause", "snapshot", "compaction"
WAITS = (QUESTION, PAUSE, SNAPSHOT)


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a turn, in ms from its start. `settle` is what came of it after the interrupt.

    `first` is when its first sign of life came, if that is known; `depth` is 1 for a child's part, 2 for its child's.
    `reply`, `request` and `result` are what the journal has about it; they are not part of the JSON.
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
    def took(self) -> float:
        """How long it was."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class MessageArrival:
    """A message that met the turn: when, as what (prompt, steer, interrupt, queue), and what became of it."""

    at: float
    how: str
    text: str
    became: str


@dataclass(frozen=True, slots=True)
class TurnTrace:
    """One turn. Without an `outcome` it still runs. One that was not measured is told by its records' times alone."""

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
        """Its name within its session."""
        return short_name(self.turn)

    @property
    def prompt(self) -> str:
        """What the turn was asked."""
        return " / ".join(arrival.text for arrival in self.arrivals if arrival.how == "prompt")

    @property
    def result(self) -> str:
        """How it ended, in a word: runs, good, wrong or cut."""
        match self.outcome:
            case None:
                return "runs"
            case Completed():
                return "good"
            case Failed():
                return "wrong"
            case _:
                return "cut"

    def took(self, *kinds: str) -> float:
        """Return how long the turn's own parts of these kinds were together."""
        return sum(part.took for part in self.parts if part.kind in kinds and not part.depth)

    def facts(self) -> list[tuple[str, str]]:
        """Return what the turn's time, tokens and money went into, with a name each."""
        facts = [("model", time_words(self.took(MODEL, COMPACTION)))]
        if tools := self.took(TOOL):
            facts.append(("tools", time_words(tools)))
        if waits := self.took(*WAITS):
            facts.append(("waits", time_words(waits)))
        if tokens := token_words(self.usage):
            facts.append(("tokens", tokens))
        if self.cost is not None:
            facts.append(("cost", f"${self.cost:.4f}"))
        return facts

    def rows(self) -> Iterator[Segment | MessageArrival]:
        """Yield segments and messages in the order of time. A child's segments follow the call that they belong to."""
        arrivals = list(self.arrivals)
        for part in self.parts:
            while arrivals and not part.depth and arrivals[0].at <= part.start:
                yield arrivals.pop(0)
            yield part
        yield from arrivals

    def how_measured(self) -> str:
        """Return why the times are only those of the records; "" when they were measured."""
        if self.is_measured:
            return ""
        why = "It still runs" if self.outcome is None else "The process ended before the turn did"
        return f"{why}: the times are those of its records."

    def settling(self) -> list[Segment]:
        """Return the turn's own parts that the interrupt had to end."""
        return [part for part in self.parts if part.settle > 0 and not part.depth]


def as_json(trace: TurnTrace) -> dict[str, Any]:
    """Return a trace as data for JSON: what is shown of it, without the records behind it."""
    bare = tuple(replace(part, reply=None, request=None, result=None) for part in trace.parts)
    data: dict[str, Any] = msgspec.to_builtins(replace(trace, parts=bare))
    del data["ended_at"]
    for part in data["parts"]:
        for name in ("reply", "request", "result", "is_started"):
            del part[name]
    return data


def time_words(milliseconds: float) -> str:
    """Return a stretch of time, as short as it can be read."""
    if milliseconds < 9.95:
        return f"{milliseconds:.1f} ms"
    if milliseconds < 999.5:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 59.95:
        return f"{seconds:.2f} s" if seconds < 9.995 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02} h"


def token_words(usage: Usage) -> str:
    """Return the tokens of a turn or a reply; "" when nobody counted them."""
    if not usage.input_tokens and not usage.output_tokens:
        return ""
    cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
    return f"{usage.input_tokens:,} in{cached}, {usage.output_tokens:,} out"


def label(part: Segment) -> str:
    """Return what a part is, in a few words."""
    match part.kind:
        case "tool":
            return f"{part.name} {part.title}".rstrip()
        case "question":
            return f"approval {part.name}"
        case "snapshot":
            return "snapshot"
        case _ if part.kind == part.name:
            return part.kind
        case _:
            return f"{part.kind} {part.name}"


def settle_words(story: TurnTrace) -> str:
    """Return what the interrupt cost, part by part."""
    parts = ", ".join(f"{part.name} {time_words(part.settle)}" for part in story.settling())
    return f"settled in {time_words(story.settle)}" + (f" ({parts})" if parts else "")


def ticks(total: float, most: int) -> list[float]:
    """Return at most so many round times within `total`, from 0 on, evenly apart."""
    for step in _steps():
        if int(total / step) < most:
            return [step * number for number in range(int(total / step) + 1)]
    return [0.0]


def tick_words(milliseconds: float) -> str:
    """Return a round time."""
    if not milliseconds:
        return "0"
    if milliseconds < 1000:
        return f"{milliseconds:g} ms"
    return f"{milliseconds / 1000:g} s" if milliseconds < 60_000 else time_words(milliseconds)


def _steps() -> Iterable[float]:
    yield from (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)
    seconds = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 18000, 86400)
    yield from (second * 1000 for second in seconds)
