"""A turn's trace as OpenTelemetry spans: the turn, its steps, and their model calls, tool calls and pauses."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context

from hark.protocol.names import session_of_turn
from hark.protocol.outcomes import Completed, Failed, Interrupted, LimitReached, Outcome, Usage
from hark.text.cleanup import truncate_middle
from hark.trace.turn_trace import COMPACTION, MODEL, TOOL, Segment, TurnTrace

MAX_TEXT_CHARACTERS = 10_000

Attributes = dict[str, str | int | float | bool]
RedactText = Callable[[str], str]
ResolveModel = Callable[[str], tuple[str, str]]  # a route name -> the OpenTelemetry name of its API, and its model


class SpanWriter:
    """Writes the spans of turns. Text from users, models and tools is included only if `redact` is given.

    `redact` removes the secrets from a text.
    """

    def __init__(self, tracer: Tracer, resolve_model: ResolveModel, redact: RedactText | None) -> None:
        self._tracer = tracer
        self._resolve_model = resolve_model
        self._redact = redact

    def write(self, trace: TurnTrace) -> None:
        """Write the spans of an ended turn. Never waits."""
        outcome = trace.outcome
        assert outcome is not None, "only turns that ended are exported"
        session = session_of_turn(trace.turn)
        began = trace.ended_at - (trace.total / 1000 if trace.is_measured else 0.0)
        attributes: Attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "hark",
            "gen_ai.conversation.id": session,
            "hark.session": session,
            "hark.turn": trace.turn,
            "hark.outcome": str(outcome.__struct_config__.tag),
            **_usage_attributes(trace.usage),
            **({} if trace.cost is None else {"hark.cost_usd": trace.cost}),
            **_outcome_attributes(outcome),
            **self._text_attributes(
                {"gen_ai.input.messages": _encode_prompt(trace), "error.message": _error_message(outcome)}
            ),
        }
        turn = self._start_span("invoke_agent hark", Context(), began, attributes)
        if trace.interrupted_at is not None:
            source = outcome.source if isinstance(outcome, Interrupted) else ""
            interrupt: Attributes = {"hark.interrupt.source": source, "hark.interrupt.settle_ms": trace.settle}
            turn.add_event("interrupt", interrupt, _to_nanoseconds(began + trace.interrupted_at / 1000))
        _set_status(turn, _outcome_error(outcome), is_ok=isinstance(outcome, Completed))
        for number, segments in enumerate(_split_steps(trace), 1):
            start, end = began + segments[0].start / 1000, began + max(part.end for part in segments) / 1000
            step = self._start_span(f"step {number}", set_span_in_context(turn), start, {"hark.step": number})
            for part in segments:
                self._write_segment(part, set_span_in_context(step), began)
            step.end(_to_nanoseconds(end))
        turn.end(_to_nanoseconds(trace.ended_at))

    def _write_segment(self, segment: Segment, parent: Context, turn_start: float) -> None:
        name, attributes, error = self._describe_segment(segment)
        if segment.settle:
            attributes["hark.settle_ms"] = segment.settle
        if error:
            attributes["error.type"] = error
        kind = SpanKind.CLIENT if segment.kind in (MODEL, COMPACTION) else SpanKind.INTERNAL
        span = self._start_span(name, parent, turn_start + segment.start / 1000, attributes, kind)
        _set_status(span, error)
        span.end(_to_nanoseconds(turn_start + segment.end / 1000))

    def _describe_segment(self, segment: Segment) -> tuple[str, Attributes, str | None]:
        """Return a segment's span name and attributes, and its error or None."""
        if segment.kind == TOOL:
            error = "tool_error" if segment.is_bad else None
            return f"execute_tool {segment.name}", self._tool_attributes(segment), error
        if segment.kind in (MODEL, COMPACTION):
            system, model = self._resolve_model(segment.name)
            error = "model_failed" if segment.is_bad else None
            return f"chat {model}", self._model_attributes(segment, system, model), error
        return f"{segment.kind} {segment.name}", {"hark.waits_for": segment.kind}, None

    def _model_attributes(self, segment: Segment, system: str, model: str) -> Attributes:
        attributes: Attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.system": system,
            "gen_ai.provider.name": system,
            "gen_ai.request.model": model,
            "hark.route": segment.name,
            **({"hark.is_compaction": True} if segment.kind == COMPACTION else {}),
        }
        if segment.reply is not None:
            attributes |= {**_usage_attributes(segment.reply.usage), "hark.is_cut": segment.reply.message.is_partial}
            attributes |= self._text_attributes({"gen_ai.output.messages": segment.reply.message.text})
        return attributes

    def _tool_attributes(self, segment: Segment) -> Attributes:
        attributes: Attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": segment.name}
        if segment.request is not None:
            attributes["gen_ai.tool.call.id"] = segment.call
            attributes |= self._text_attributes({"gen_ai.tool.call.arguments": segment.request.arguments})
        if segment.result is not None:
            attributes["hark.effect"] = str(segment.result.effect)
            attributes |= self._text_attributes({"gen_ai.tool.call.result": segment.result.text})
        return attributes

    def _text_attributes(self, texts: Mapping[str, str]) -> Attributes:
        """Return text from users, models and tools as attributes, or no attributes if text must not be exported."""
        if self._redact is None:
            return {}
        return {name: self._redact(truncate_middle(text, MAX_TEXT_CHARACTERS)) for name, text in texts.items() if text}

    def _start_span(
        self, name: str, parent: Context, start: float, attributes: Attributes, kind: SpanKind = SpanKind.INTERNAL
    ) -> Span:
        return self._tracer.start_span(name, parent, kind, attributes, start_time=_to_nanoseconds(start))


def _split_steps(trace: TurnTrace) -> Iterator[Sequence[Segment]]:
    """Yield the segments of each step. A step starts with the model request that follows the previous step's tools."""
    step: list[Segment] = []
    for segment in trace.parts if trace.is_measured else ():
        if not segment.is_started:
            continue
        if segment.kind in (MODEL, COMPACTION) and any(one.kind == TOOL for one in step):
            yield step
            step = []
        step.append(segment)
    if step:
        yield step


def _set_status(span: Span, error: str | None, *, is_ok: bool = False) -> None:
    if error is not None:
        span.set_status(Status(StatusCode.ERROR, error))
    elif is_ok:
        span.set_status(Status(StatusCode.OK))


def _outcome_attributes(outcome: Outcome) -> Attributes:
    match outcome:
        case Completed():
            return {}
        case Interrupted(source, left):
            return {"hark.interrupt.source": source, **({"hark.left_running": ", ".join(left)} if left else {})}
        case Failed(error):
            return {"error.type": error.code}
        case LimitReached(limit):
            return {"error.type": "limit_reached", "hark.limit": limit}


def _outcome_error(outcome: Outcome) -> str | None:
    """Return the reason why a turn failed, or None if it did not fail. An interrupt is not an error."""
    match outcome:
        case Failed(error):
            return error.code
        case LimitReached(limit):
            return f"limit reached: {limit}"
        case _:
            return None


def _error_message(outcome: Outcome) -> str:
    return outcome.error.message if isinstance(outcome, Failed) else ""


def _encode_prompt(trace: TurnTrace) -> str:
    texts = [arrival.text for arrival in trace.arrivals if arrival.how == "prompt"]
    parts = [{"role": "user", "parts": [{"type": "text", "content": text}]} for text in texts]
    return msgspec.json.encode(parts).decode() if parts else ""


def _usage_attributes(usage: Usage) -> Attributes:
    if not usage.input_tokens and not usage.output_tokens:
        return {}
    cached: Attributes = {"gen_ai.usage.cache_read.input_tokens": usage.cached_tokens} if usage.cached_tokens else {}
    return {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        **cached,
    }


def _to_nanoseconds(seconds: float) -> int:
    return round(seconds * 1_000_000_000)
