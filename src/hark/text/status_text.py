"""Shared wording for outcomes, effects, calls and counts."""

import json
from typing import Any, cast

from hark.protocol.commands import PAUSE
from hark.protocol.events import TurnEnd
from hark.protocol.messages import Effect
from hark.protocol.names import short_turn_name
from hark.protocol.outcomes import Completed, Failed, Interrupted, LimitReached, Outcome, Span
from hark.text.safe_text import sanitize_line

MAX_TITLE_CHARACTERS = 120
_EFFECTS = {
    Effect.NOT_STARTED: "not started",
    Effect.CANCELLED: "cancelled",
    Effect.UNKNOWN: "effect unknown",
    Effect.CONTINUES: "continues in the background",
}
_MAIN_ARGUMENTS = ("command", "path", "pattern", "url", "query", "goal", "question", "code", "action", "name", "text")


def turn_number(turn: str | None) -> str:
    """Return a turn's number within its session."""
    return short_turn_name(turn or "").removeprefix("t")


def format_count(number: int, noun: str) -> str:
    """Format a number with its noun in singular or plural, such as `3 files`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def describe_turn_end(event: TurnEnd) -> str:
    """Describe how a turn ended, with its duration, tokens and cost."""
    timings = event.timings
    took = f"{timings.total / 1000:.1f} s"
    tokens = event.usage.input_tokens + event.usage.output_tokens
    spent = f" · {tokens:,} tokens" if tokens else ""
    cost = f" · ${event.cost:.4f}" if event.cost else ""
    match event.outcome:
        case Completed():
            return f"done in {took}{spent}{cost}"
        case Interrupted(source) if source == PAUSE:
            return f"paused after {took}{spent}{cost}; /continue resumes it"
        case Interrupted(source, left):
            parts = ", ".join(f"{_span_name(span)} {span.settle:.0f}" for span in timings.spans if span.settle >= 0.5)
            why = "" if source in ("user", "new message") else f" by {source}"
            still = f" · still running: {', '.join(left)}" if left else ""
            settle = format_milliseconds(timings.settle)
            return f"stopped{why} in {settle}{f' ({parts})' if parts else ''}{spent}{cost}{still}"
        case Failed(error):
            return f"failed: {error.message}"
        case LimitReached(_, message):
            return message


def describe_incomplete_turn(event: TurnEnd) -> str:
    """Return one line that explains why a turn did not complete, or "" if it completed."""
    match event.outcome:
        case Completed():
            return ""
        case Interrupted(source) if source == PAUSE:
            return "paused; /continue resumes it"
        case Interrupted(source):
            return f"stopped by {source} in {event.timings.settle:.1f} ms"
        case Failed(error):
            return f"failed: {error.message}"
        case LimitReached(_, message):
            return message


def describe_outcome(outcome: Outcome | None) -> str:
    """Return a short description of a turn's outcome."""
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


def format_milliseconds(milliseconds: float) -> str:
    """Format a short duration for display, such as `4.2 ms` or `12 ms`."""
    return f"{milliseconds:.1f} ms" if milliseconds < 10 else f"{milliseconds:.0f} ms"


def _span_name(span: Span) -> str:
    return span.kind if span.kind == "model" else span.name or span.kind


def format_call_title(name: str, arguments: str) -> str:
    """Format a call as one line: the tool's name and its most informative argument."""
    try:
        given: Any = json.loads(arguments)
    except (ValueError, RecursionError):  # not JSON, or nested too deeply
        given = None
    values = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    main_argument = next((values[key] for key in _MAIN_ARGUMENTS if isinstance(values.get(key), str)), "")
    return f"{sanitize_line(name, 80)} {sanitize_line(str(main_argument), MAX_TITLE_CHARACTERS)}".rstrip()


def describe_effect(effect: Effect, *, is_error: bool) -> str:
    """Describe the known effect of a call in a short text, such as `done` or `cancelled`."""
    return _EFFECTS.get(effect) or ("failed" if is_error else "done")
