"""A turn's trace as OpenTelemetry spans: the turn, its steps, and in them model calls, tools and pauses."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context

from hark.protocol.names import session_of
from hark.protocol.outcomes import Completed, Failed, Interrupted, LimitReached, Outcome, Usage
from hark.text.clean import cut_middle
from hark.trace.turn_trace import COMPACTION, MODEL, TOOL, Segment, TurnTrace

SHOWN_CHARACTERS = 10_000

Attributes = dict[str, str | int | float | bool]
Hide = Callable[[str], str]
ModelName = Callable[[str], tuple[str, str]]  # a route's API, as OpenTelemetry names it, and its model


class SpanWriter:
    """Writes the spans of turns. Texts of people, models and tools are left out unless there is a `hide`.

    `hide` returns a text without secrets.
    """

    def __init__(self, tracer: Tracer, model_name: ModelName, hide: Hide | None) -> None:
        self._tracer = tracer
        self._model_name = model_name
        self._hide = hide

    def write(self, trace: TurnTrace) -> None:
        """Write the spans of a turn that ended; waits for nothing."""
        outcome = trace.outcome
        assert outcome is not None, "only turns that ended are exported"
        session = session_of(trace.turn)
        began = trace.ended_at - (trace.total / 1000 if trace.is_measured else 0.0)
        attributes: Attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "hark",
            "gen_ai.conversation.id": session,
            "hark.session": session,
            "hark.turn": trace.turn,
            "hark.outcome": str(outcome.__struct_config__.tag),
            **_usage(trace.usage),
            **({} if trace.cost is None else {"hark.cost_usd": trace.cost}),
            **_outcome(outcome),
            **self._content({"gen_ai.input.messages": _said(trace), "error.message": _message(outcome)}),
        }
        turn = self._start("invoke_agent hark", Context(), began, attributes)
        if trace.interrupted_at is not None:
            source = outcome.source if isinstance(outcome, Interrupted) else ""
            told: Attributes = {"hark.interrupt.source": source, "hark.interrupt.settle_ms": trace.settle}
            turn.add_event("interrupt", told, _nanoseconds(began + trace.interrupted_at / 1000))
        _set_status(turn, _error(outcome), is_ok=isinstance(outcome, Completed))
        for number, parts in enumerate(_steps(trace), 1):
            start, end = began + parts[0].start / 1000, began + max(part.end for part in parts) / 1000
            step = self._start(f"step {number}", set_span_in_context(turn), start, {"hark.step": number})
            for part in parts:
                self._part(part, set_span_in_context(step), began)
            step.end(_nanoseconds(end))
        turn.end(_nanoseconds(trace.ended_at))

    def _part(self, part: Segment, parent: Context, began: float) -> None:
        name, attributes, error = self._described(part)
        if part.settle:
            attributes["hark.settle_ms"] = part.settle
        if error:
            attributes["error.type"] = error
        kind = SpanKind.CLIENT if part.kind in (MODEL, COMPACTION) else SpanKind.INTERNAL
        span = self._start(name, parent, began + part.start / 1000, attributes, kind)
        _set_status(span, error)
        span.end(_nanoseconds(began + part.end / 1000))

    def _described(self, part: Segment) -> tuple[str, Attributes, str | None]:
        """Return a segment's name, its attributes, and why it failed."""
        if part.kind == TOOL:
            return f"execute_tool {part.name}", self._tool(part), "tool_error" if part.is_bad else None
        if part.kind in (MODEL, COMPACTION):
            system, model = self._model_name(part.name)
            return f"chat {model}", self._model(part, system, model), "model_failed" if part.is_bad else None
        return f"{part.kind} {part.name}", {"hark.waits_for": part.kind}, None

    def _model(self, part: Segment, system: str, model: str) -> Attributes:
        attributes: Attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.system": system,
            "gen_ai.provider.name": system,
            "gen_ai.request.model": model,
            "hark.route": part.name,
            **({"hark.is_compaction": True} if part.kind == COMPACTION else {}),
        }
        if part.reply is not None:
            attributes |= {**_usage(part.reply.usage), "hark.is_cut": part.reply.message.is_partial}
            attributes |= self._content({"gen_ai.output.messages": part.reply.message.text})
        return attributes

    def _tool(self, part: Segment) -> Attributes:
        attributes: Attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": part.name}
        if part.request is not None:
            attributes["gen_ai.tool.call.id"] = part.call
            attributes |= self._content({"gen_ai.tool.call.arguments": part.request.arguments})
        if part.result is not None:
            attributes["hark.effect"] = str(part.result.effect)
            attributes |= self._content({"gen_ai.tool.call.result": part.result.text})
        return attributes

    def _content(self, texts: Mapping[str, str]) -> Attributes:
        """Return texts of people, models and tools as attributes, if they may be exported."""
        if self._hide is None:
            return {}
        return {name: self._hide(cut_middle(text, SHOWN_CHARACTERS)) for name, text in texts.items() if text}

    def _start(
        self, name: str, parent: Context, start: float, attributes: Attributes, kind: SpanKind = SpanKind.INTERNAL
    ) -> Span:
        return self._tracer.start_span(name, parent, kind, attributes, start_time=_nanoseconds(start))


def _steps(trace: TurnTrace) -> Iterator[Sequence[Segment]]:
    """Yield the segments of each step. A step begins when the model is asked after the tools of the one before."""
    step: list[Segment] = []
    for part in trace.parts if trace.is_measured else ():
        if not part.is_started:
            continue
        if part.kind in (MODEL, COMPACTION) and any(one.kind == TOOL for one in step):
            yield step
            step = []
        step.append(part)
    if step:
        yield step


def _set_status(span: Span, error: str | None, *, is_ok: bool = False) -> None:
    if error is not None:
        span.set_status(Status(StatusCode.ERROR, error))
    elif is_ok:
        span.set_status(Status(StatusCode.OK))


def _outcome(outcome: Outcome) -> Attributes:
    match outcome:
        case Completed():
            return {}
        case Interrupted(source, left):
            return {"hark.interrupt.source": source, **({"hark.left_running": ", ".join(left)} if left else {})}
        case Failed(error):
            return {"error.type": error.code}
        case LimitReached(limit):
            return {"error.type": "limit_reached", "hark.limit": limit}


def _error(outcome: Outcome) -> str | None:
    """Return why a turn failed. An interrupt is no error."""
    match outcome:
        case Failed(error):
            return error.code
        case LimitReached(limit):
            return f"limit reached: {limit}"
        case _:
            return None


def _message(outcome: Outcome) -> str:
    return outcome.error.message if isinstance(outcome, Failed) else ""


def _said(trace: TurnTrace) -> str:
    texts = [arrival.text for arrival in trace.arrivals if arrival.how == "prompt"]
    parts = [{"role": "user", "parts": [{"type": "text", "content": text}]} for text in texts]
    return msgspec.json.encode(parts).decode() if parts else ""


def _usage(usage: Usage) -> Attributes:
    if not usage.input_tokens and not usage.output_tokens:
        return {}
    cached: Attributes = {"gen_ai.usage.cache_read.input_tokens": usage.cached_tokens} if usage.cached_tokens else {}
    return {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        **cached,
    }


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1_000_000_000)
