"""The OpenAI-compatible API: one turn as a chat completion."""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from hark.protocol.agent import GatewayState
from hark.protocol.events import ReasoningDelta, ReplyDelta, ReplyRestarted, StepStart, TurnEnd
from hark.protocol.store import StoreError
from hark.surfaces.web.api.context import WebContext
from hark.surfaces.web.api.errors import ApiError, error_body, json_response
from hark.surfaces.web.live.stream import SseResponse, respond_while_connected
from hark.surfaces.web.openai.turn import CompletionTurn
from hark.surfaces.web.openai.types import (
    CompletionPrompt,
    CompletionRequest,
    failure_details,
    finish_reason,
    format_usage,
    read_prompt,
)

DEFAULT_MODEL = "hark"
OPENAI_SURFACE = "v1"
SESSION_HEADER = "X-Hark-Session"
PATH = "/v1/chat/completions"
_RESTARTED_TEXT = "\n\n[The stream broke; the reply starts again.]\n\n"
_CLOSED = ("closed", "The agent stopped before the reply was complete.")


class ModelEntry(Struct, frozen=True):
    """A route as an entry of OpenAI's model list."""

    id: str
    object: str = "model"
    created: int = 0
    owned_by: str = "hark"


class ModelList(Struct, frozen=True):
    """The models that a request can name."""

    data: list[ModelEntry]
    object: str = "list"


async def list_models(web: WebContext, request: Request) -> ModelList:
    """List the models: the routes, and `hark`, which lets the agent choose the route."""
    names = [DEFAULT_MODEL, *(row.name for row in web.agent.routes() if row.name != DEFAULT_MODEL)]
    return ModelList([ModelEntry(name) for name in names])


async def create_completion(web: WebContext, request: Request, body: CompletionRequest) -> Response:
    """Run a turn as a chat completion, streamed if `stream` is set. A client that disconnects interrupts the turn."""
    prompt = read_prompt(body)
    route = _find_route(web, body.model)
    if web.agent.state is GatewayState.PAUSED:
        raise ApiError(503, "paused", "The agent is paused. Try again later.", {"Retry-After": "60"})
    if web.agent.state is not GatewayState.READY:
        raise ApiError(503, "draining", "The agent is about to restart. Try again in 5 s.", {"Retry-After": "5"})
    name = request.headers.get(SESSION_HEADER, "")
    session = web.session_named(name or f"api-{web.agent.new_id()}", OPENAI_SURFACE)
    if prompt.past:
        await web.agent.import_history(session.id, prompt.past)  # before the session is opened
    web.feeds.get_or_start(session)
    if route:
        refusal = await session.choose_route(route)
        if refusal is not None:
            raise ApiError(503, refusal.code, refusal.message)
    turn = CompletionTurn(session, web.agent.new_id(), is_own_session=not name)
    reply = _CompletionResponse(turn, session.id, body.model or DEFAULT_MODEL)
    if body.stream:
        wants_usage = body.stream_options is not None and body.stream_options.include_usage
        return SseResponse(reply.stream(prompt, wants_usage=wants_usage))
    return await respond_while_connected(request, lambda: reply.respond(prompt))


def _find_route(web: WebContext, model: str) -> str:
    """Return the route that a model name selects, or "" for the default order.

    Raises:
        ApiError: No route has that name or model.
    """
    if model in ("", DEFAULT_MODEL):
        return ""
    for row in web.agent.routes():
        if model in (row.name, row.model):
            return row.name
    raise ApiError(404, "model_not_found", f"No model named {model[:80]!r}. GET /v1/models lists them.")


class _CompletionResponse:
    """A turn's reply in OpenAI's format, streamed or complete."""

    def __init__(self, turn: CompletionTurn, session: str, model: str) -> None:
        self._turn = turn
        self._session = session
        self._base_fields: dict[str, Any] = {
            "id": f"chatcmpl-{session}",
            "created": int(time.time()),
            "model": model,
        }

    async def respond(self, prompt: CompletionPrompt) -> Response:
        """Wait until the turn has ended and return the complete reply.

        Raises:
            ApiError: The turn failed, or the agent stopped.
        """
        steps: list[str] = [""]
        thoughts: list[str] = []
        end: TurnEnd | None = None
        async with self._turn.submit(prompt.text, prompt.author, prompt.attachments):
            async for event in self._turn.events():
                match event:
                    case StepStart():
                        steps.append("")
                    case ReplyRestarted():
                        steps[-1] = ""
                    case ReplyDelta(text=text):
                        steps[-1] += text
                    case ReasoningDelta(text=text):
                        thoughts.append(text)
                    case TurnEnd():
                        end = event
                    case _:
                        pass
        failed = failure_details(end.outcome) if end else _CLOSED
        if end is None or failed:
            raise ApiError(502, *(failed or _CLOSED))
        message: dict[str, Any] = {"role": "assistant", "content": "\n\n".join(filter(None, steps)), "refusal": None}
        if thoughts:
            message["reasoning_content"] = "".join(thoughts)
        choice = {"index": 0, "message": message, "finish_reason": finish_reason(end.outcome), "logprobs": None}
        body = {**self._base_fields, "object": "chat.completion", "choices": [choice], "usage": format_usage(end.usage)}
        return json_response({**body, "hark": self._hark_fields(end)})

    async def stream(self, prompt: CompletionPrompt, *, wants_usage: bool) -> AsyncGenerator[bytes]:
        """Yield the reply as server-sent chunks. Errors become a final chunk."""
        try:
            async with self._turn.submit(prompt.text, prompt.author, prompt.attachments):
                yield self._make_chunk({"role": "assistant", "content": ""})
                async with aclosing(self._encode_events(wants_usage=wants_usage)) as pieces:
                    async for piece in pieces:
                        yield piece
        except ApiError as error:
            yield _encode_chunk(error_body(error.status, error.code, error.message, PATH))
        except StoreError as error:
            yield _encode_chunk(error_body(503, "store", str(error), PATH))

    async def _encode_events(self, *, wants_usage: bool) -> AsyncGenerator[bytes]:
        has_text = is_new_step = False
        async for event in self._turn.events():
            match event:
                case StepStart():
                    is_new_step = has_text
                case ReplyRestarted():
                    yield self._make_chunk({"content": _RESTARTED_TEXT})
                case ReplyDelta(text=text):
                    yield self._make_chunk({"content": f"\n\n{text}" if is_new_step else text})
                    has_text, is_new_step = True, False
                case ReasoningDelta(text=text):
                    yield self._make_chunk({"reasoning_content": text})
                case TurnEnd():
                    yield self._encode_end(event, wants_usage=wants_usage)
                    return
                case _:
                    pass
        raise ApiError(502, *_CLOSED)

    def _encode_end(self, end: TurnEnd, *, wants_usage: bool) -> bytes:
        failed = failure_details(end.outcome)
        if failed:
            return _encode_chunk(error_body(502, *failed, PATH))
        last = self._make_chunk({}, finish_reason(end.outcome), {"hark": self._hark_fields(end)})
        usage = b""
        if wants_usage:
            choices: list[Any] = []
            base = {**self._base_fields, "object": "chat.completion.chunk"}
            usage = _encode_chunk({**base, "choices": choices, "usage": format_usage(end.usage)})
        return last + usage + b"data: [DONE]\n\n"

    def _make_chunk(
        self, delta: dict[str, Any], reason: str | None = None, extra: dict[str, Any] | None = None
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}
        return _encode_chunk(
            {**self._base_fields, "object": "chat.completion.chunk", "choices": [choice], **(extra or {})}
        )

    def _hark_fields(self, end: TurnEnd) -> dict[str, Any]:
        return {"session": self._session, "turn": end.turn, "outcome": end.outcome, "cost": end.cost}


def _encode_chunk(value: object) -> bytes:
    return b"data: %b\n\n" % msgspec.json.encode(value)
