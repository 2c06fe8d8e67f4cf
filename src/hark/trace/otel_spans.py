"""A turn as a trace: its steps, and in them model calls, tools and pauses, in the words of OpenTelemetry."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from hark.app.log_format import HIDDEN, LEAST_SECRET
from hark.engine.turn.routes import Routes
from hark.protocol.messages import Call
from hark.protocol.names import session_of
from hark.protocol.outcomes import Completed, Failed, Interrupted, LimitReached, Outcome, Span, Timings, Usage
from hark.protocol.records import Replied
from hark.text.clean import cut_middle
from hark.trace.segments import gave_way
from hark.trace.turn_records import TurnRecords
from hark.trace.turn_trace import COMPACTION, MODEL, TOOL

SHOWN_CHARACTERS = 10_000

Attributes = dict[str, str | int | float | bool]


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
    """What may be told: no texts unless `has_content`, and never a secret that is known."""

    def __init__(self, secrets: Iterable[str] = (), *, has_content: bool = False) -> None:
        # The longest first: a shorter one may be a part of it.
        self._secrets = sorted({secret for secret in secrets if len(secret) >= LEAST_SECRET}, key=len, reverse=True)
        self._has_content = has_content

    def content(self, texts: Mapping[str, str]) -> Attributes:
        """Return texts of people, models and tools as attributes, if they may be told."""
        if not self._has_content:
            return {}
        return {name: self._hide(cut_middle(text, SHOWN_CHARACTERS)) for name, text in texts.items() if text}

    def _hide(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return text


def trace_of(records: TurnRecords, routes: Routes, masked: Masked) -> TraceSpan:
    """Return the trace of a turn that ended."""
    end = records.end
    assert end is not None, "only what ended is told"
    timings, session = end.timings, session_of(records.turn)
    began = end.at - timings.total / 1000
    attributes: Attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "hark",
        "gen_ai.conversation.id": session,
        "hark.session": session,
        "hark.turn": records.turn,
        "hark.outcome": str(end.outcome.__struct_config__.tag),
        **_usage(end.usage),
        **({} if end.cost is None else {"hark.cost_usd": end.cost}),
        **_outcome(end.outcome),
        **masked.content({"gen_ai.input.messages": _said(records), "error.message": _message(end.outcome)}),
    }
    steps = _Steps(records, routes, masked, began)
    return TraceSpan(
        "invoke_agent hark",
        began,
        end.at,
        attributes,
        _error(end.outcome),
        isinstance(end.outcome, Completed),
        events=tuple(_interrupt(end.outcome, timings, began)),
        children=tuple(steps.all()),
    )


@dataclass(slots=True)
class _Step:
    number: int
    children: list[TraceSpan] = field(default_factory=list[TraceSpan])
    has_tools: bool = False


class _Steps:
    """Sorts what was measured into steps, and finds what the records say of it."""

    def __init__(self, records: TurnRecords, routes: Routes, masked: Masked, began: float) -> None:
        self._routes = routes
        self._records = records
        self._masked = masked
        self._began = began
        self._replies = iter(records.replies)
        self._calls = [records.calls[name] for name in records.call_starts if name in records.calls]

    def all(self) -> Iterator[TraceSpan]:
        """Yield the steps: one begins when the model is asked after the tools of the one before."""
        spans = self._records.end.timings.spans if self._records.end else ()
        step = _Step(1)
        for place, span in enumerate(spans):
            if step.has_tools and span.kind in (MODEL, COMPACTION):
                yield self._whole(step)
                step = _Step(step.number + 1)
            step.has_tools |= span.kind == TOOL
            step.children.append(self._part(span, spans[place + 1] if place + 1 < len(spans) else None))
        if step.children:
            yield self._whole(step)

    def _whole(self, step: _Step) -> TraceSpan:
        start, end = min(one.start for one in step.children), max(one.end for one in step.children)
        name = f"step {step.number}"
        return TraceSpan(name, start, end, {"hark.step": step.number}, children=tuple(step.children))

    def _part(self, span: Span, following: Span | None) -> TraceSpan:
        if span.kind == TOOL:
            return self._tool(span)
        if span.kind in (MODEL, COMPACTION):
            has_failed = gave_way(span, following)
            reply = next(self._replies, None) if span.kind == MODEL and not has_failed else None
            return self._model(span, reply, has_failed=has_failed)
        return self._span(span, f"{span.kind} {span.name}", {"hark.waits_for": span.kind})

    def _model(self, span: Span, reply: Replied | None, *, has_failed: bool) -> TraceSpan:
        route = self._routes.known(span.name)
        model = (route.model if route else "") or span.name
        system = _system(type(route.provider).__name__ if route else "")
        attributes: Attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.system": system,
            "gen_ai.provider.name": system,
            "gen_ai.request.model": model,
            "hark.route": span.name,
            **({"hark.is_compaction": True} if span.kind == COMPACTION else {}),
        }
        if reply is not None:
            attributes |= {**_usage(reply.usage), "hark.is_cut": reply.message.is_partial}
            attributes |= self._masked.content({"gen_ai.output.messages": reply.message.text})
        is_last = self._records.end is not None and isinstance(self._records.end.outcome, Failed) and reply is None
        error = "model_failed" if has_failed or (is_last and span.kind == MODEL) else None
        return self._span(span, f"chat {model}", attributes, error, is_client=True)

    def _tool(self, span: Span) -> TraceSpan:
        call = next((call for call in self._calls if call.name == span.name), None)
        attributes: Attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": span.name}
        error = None
        if call is not None:
            self._calls.remove(call)
            told, error = self._call(call)
            attributes |= told
        return self._span(span, f"execute_tool {span.name}", attributes, error)

    def _call(self, call: Call) -> tuple[Attributes, str | None]:
        end = self._records.call_ends.get(call.id)
        result = end.result if end else None
        attributes: Attributes = {"gen_ai.tool.call.id": call.id}
        if result is not None:
            attributes["hark.effect"] = str(result.effect)
        texts = {"gen_ai.tool.call.arguments": call.arguments, "gen_ai.tool.call.result": result.text if result else ""}
        error = "tool_error" if result is not None and result.is_error else None
        return attributes | self._masked.content(texts), error

    def _span(
        self, span: Span, name: str, attributes: Attributes, error: str | None = None, *, is_client: bool = False
    ) -> TraceSpan:
        settle: Attributes = {"hark.settle_ms": span.settle} if span.settle else {}
        failure: Attributes = {"error.type": error} if error else {}
        start, end = self._began + span.start / 1000, self._began + span.end / 1000
        return TraceSpan(name, start, end, {**attributes, **settle, **failure}, error, is_client=is_client)


def _interrupt(outcome: Outcome, timings: Timings, began: float) -> Iterator[TraceEvent]:
    """Yield where the interrupt fell, and how long it took until the turn was over."""
    if timings.interrupted_at is not None:
        source = outcome.source if isinstance(outcome, Interrupted) else ""
        told: Attributes = {"hark.interrupt.source": source, "hark.interrupt.settle_ms": timings.settle}
        yield TraceEvent("interrupt", began + timings.interrupted_at / 1000, told)


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


def _said(records: TurnRecords) -> str:
    parts = [{"role": "user", "parts": [{"type": "text", "content": one.text}]} for one in records.start.messages]
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


def _system(provider: str) -> str:
    """Return the API that is spoken, as OpenTelemetry names it."""
    known = {"OpenAIChat": "openai", "OpenAIResponses": "openai", "Anthropic": "anthropic", "LocalModel": "hark.local"}
    return known.get(provider, "_OTHER")
