"""The wording of outcomes, effects, calls and counts, shared by every output."""

import json
from typing import Any, cast

from hark.protocol.events import TurnEnd
from hark.protocol.messages import Effect
from hark.protocol.names import short_name
from hark.protocol.outcomes import Completed, Failed, Interrupted, LimitReached, Outcome, Span
from hark.text.safe_text import safe_line

TITLE_CHARACTERS = 120
_MAIN_ARGUMENTS = ("command", "path", "pattern", "url", "query", "goal", "question", "code", "action", "name", "text")


def turn_number(turn: str | None) -> str:
    """Return a turn's number in its session."""
    return short_name(turn or "").removeprefix("t")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def end_words(event: TurnEnd) -> str:
    """Return how a turn ended, with what it took."""
    timings = event.timings
    took = f"{timings.total / 1000:.1f} s"
    tokens = event.usage.input_tokens + event.usage.output_tokens
    spent = f" · {tokens:,} tokens" if tokens else ""
    cost = f" · ${event.cost:.4f}" if event.cost else ""
    match event.outcome:
        case Completed():
            return f"done in {took}{spent}{cost}"
        case Interrupted(source, left):
            parts = ", ".join(f"{_span_name(span)} {span.settle:.0f}" for span in timings.spans if span.settle >= 0.5)
            why = "" if source in ("user", "new message") else f" by {source}"
            still = f" · still running: {', '.join(left)}" if left else ""
            return f"stopped{why} in {milliseconds(timings.settle)}{f' ({parts})' if parts else ''}{spent}{cost}{still}"
        case Failed(error):
            return f"failed: {error.message}"
        case LimitReached(_, message):
            return f"limit reached: {message}"


def outcome_words(outcome: Outcome | None) -> str:
    """Return how a turn ended, in a few words."""
    match outcome:
        case None:
            return "still running"
        case Completed():
            return "completed"
        case Interrupted(source, left):
            return f"interrupted by {source}" + (f"; left running: {', '.join(left)}" if left else "")
        case Failed(error):
            return f"failed: {error.message}"
        case LimitReached(limit, _):
            return f"limit reached: {limit}"


def milliseconds(number: float) -> str:
    """Return a short time as it is."""
    return f"{number:.1f} ms" if number < 10 else f"{number:.0f} ms"


def _span_name(span: Span) -> str:
    return span.kind if span.kind == "model" else span.name or span.kind


def call_title(name: str, arguments: str) -> str:
    """Return a call in one line: its name, and the argument that tells most."""
    try:
        given: Any = json.loads(arguments)
    except ValueError:
        return safe_line(name, 80)
    if not isinstance(given, dict):
        return safe_line(name, 80)
    values = cast("dict[str, Any]", given)
    main = next((values[key] for key in _MAIN_ARGUMENTS if isinstance(values.get(key), str)), "")
    return f"{safe_line(name, 80)} {safe_line(str(main), TITLE_CHARACTERS)}".rstrip()


def effect_words(effect: Effect, *, is_error: bool) -> str:
    """Return what is known of a call's doing, in a word."""
    match effect:
        case Effect.COMPLETED:
            return "failed" if is_error else "done"
        case Effect.NOT_STARTED:
            return "not started"
        case Effect.CANCELLED:
            return "cancelled"
        case Effect.UNKNOWN:
            return "effect unknown"
