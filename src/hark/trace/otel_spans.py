"""A turn as a trace: its steps, and in them model calls, tools and pauses, in the words of OpenTelemetry."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from hark.protocol.names import session_of
from hark.protocol.outcomes import Completed, Failed, Interrupted, LimitReached, Outcome, Usage
from hark.text.clean import cut_middle
from hark.trace.turn_trace import COMPACTION, MODEL, TOOL, Segment, TurnTrace

SHOWN_CHARACTERS = 10_000

Attributes = dict[str, str | int | float | bool]
ModelName = Callable[[str], tuple[str, str]]  # a route's API, as OpenTelemetry names it, and its model


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """Something that happened at a moment, in Unix seconds."""

    name: str
    at: float
    attributes: Attributes


@dataclass(frozen=True, slots=True)
class TraceSpan:
    """A stretch of time, in Unix seconds. `error` says why it failed, if it did; `is_ok`: it surely went well."""

    name: str
    start: float
    end: float
    attributes: Attributes
    error: str | None = None
    is_ok: bool = False
    is_client: bool = False
    events: tuple[TraceEvent, ...] = ()
    children: tuple["TraceSpan", ...] = ()


class Masked:
    """What may be exported: no texts unless `has_content`, and each only as `hide` returns it, without secrets."""

    def __init__(self, hide: Callable[[str], str], *, has_content: bool = False) -> None:
        self._hide = hide
        self._has_content = has_content

    def content(self, texts: Mapping[str, str]) -> Attributes:
        """Return texts of people, models and tools as attributes, if they may be exported."""
        if not self._has_content:
            return {}
        return {name: self._hide(cut_middle(text, SHOWN_CHARACTERS)) for name, text in texts.items() if text}


def trace_of(trace: TurnTrace, masked: Masked, model_name: ModelName) -> TraceSpan:
    """Return the span of a turn that ended, with its steps inside."""
    outcome = trace.outcome
    assert outcome is not None, "only what ended is told"
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
        **masked.content({"gen_ai.input.messages": _said(trace), "error.message": _message(outcome)}),
    }
    return TraceSpan(
        "invoke_agent hark",
        began,
        trace.ended_at,
        attributes,
        _error(outcome),
        isinstance(outcome, Completed),
        events=tuple(_interrupt(outcome, trace, began)),
        children=tuple(_SegmentSpans(masked, model_name, began).steps(trace)),
    )


class _SegmentSpans:
    """Makes a span of each segment, and sorts them into steps."""

    def __init__(self, masked: Masked, model_name: ModelName, began: float) -> None:
        self._masked = masked
        self._model_name = model_name
        self._began = began

    def steps(self, trace: TurnTrace) -> Iterator[TraceSpan]:
        """Yield the steps: one begins when the model is asked after the tools of the one before."""
        number, has_tools, children = 1, False, list[TraceSpan]()
        for part in trace.parts if trace.is_measured else ():
            if not part.is_started:
                continue
            if has_tools and part.kind in (MODEL, COMPACTION):
                yield _step(number, children)
                number, has_tools, children = number + 1, False, []
            has_tools |= part.kind == TOOL
            children.append(self._part(part))
        if children:
            yield _step(number, children)

    def _part(self, part: Segment) -> TraceSpan:
        if part.kind == TOOL:
            return self._tool(part)
        if part.kind in (MODEL, COMPACTION):
            return self._model(part)
        return self._span(part, f"{part.kind} {part.name}", {"hark.waits_for": part.kind})

    def _model(self, part: Segment) -> TraceSpan:
        system, model = self._model_name(part.name)
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
            attributes |= self._masked.content({"gen_ai.output.messages": part.reply.message.text})
        return self._span(part, f"chat {model}", attributes, "model_failed" if part.is_bad else None, is_client=True)

    def _tool(self, part: Segment) -> TraceSpan:
        attributes: Attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": part.name}
        if part.request is not None:
            attributes["gen_ai.tool.call.id"] = part.call
            attributes |= self._masked.content({"gen_ai.tool.call.arguments": part.request.arguments})
        if part.result is not None:
            attributes["hark.effect"] = str(part.result.effect)
            attributes |= self._masked.content({"gen_ai.tool.call.result": part.result.text})
        return self._span(part, f"execute_tool {part.name}", attributes, "tool_error" if part.is_bad else None)

    def _span(
        self, part: Segment, name: str, attributes: Attributes, error: str | None = None, *, is_client: bool = False
    ) -> TraceSpan:
        settle: Attributes = {"hark.settle_ms": part.settle} if part.settle else {}
        failure: Attributes = {"error.type": error} if error else {}
        start, end = self._began + part.start / 1000, self._began + part.end / 1000
        return TraceSpan(name, start, end, {**attributes, **settle, **failure}, error, is_client=is_client)


def _step(number: int, children: Sequence[TraceSpan]) -> TraceSpan:
    start, end = min(one.start for one in children), max(one.end for one in children)
    return TraceSpan(f"step {number}", start, end, {"hark.step": number}, children=tuple(children))


def _interrupt(outcome: Outcome, trace: TurnTrace, began: float) -> Iterator[TraceEvent]:
    """Yield where the interrupt fell, and how long it took until the turn was over."""
    if trace.interrupted_at is not None:
        source = outcome.source if isinstance(outcome, Interrupted) else ""
        told: Attributes = {"hark.interrupt.source": source, "hark.interrupt.settle_ms": trace.settle}
        yield TraceEvent("interrupt", began + trace.interrupted_at / 1000, told)


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
