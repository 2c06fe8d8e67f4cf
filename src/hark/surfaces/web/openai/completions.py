"""The OpenAI-compatible API: an agent's turn as a chat completion."""

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
from hark.surfaces.web.live.stream import SseResponse, while_connected
from hark.surfaces.web.openai.turn import CompletionTurn
from hark.surfaces.web.openai.types import (
    CompletionPrompt,
    CompletionRequest,
    failure,
    finish_reason,
    read_prompt,
    usage_words,
)

USUAL_MODEL = "hark"
V1 = "v1"
SESSION_HEADER = "X-Hark-Session"
PATH = "/v1/chat/completions"
_AGAIN = "\n\n[the connection to the model broke; the reply begins anew]\n\n"
_CLOSED = ("closed", "The agent ended before the reply was complete.")


class ModelEntry(Struct, frozen=True):
    """A route, in OpenAI's list of models."""

    id: str
    object: str = "model"
    created: int = 0
    owned_by: str = "hark"


class ModelList(Struct, frozen=True):
    """The routes that a request can name as its model."""

    data: list[ModelEntry]
    object: str = "list"


async def models(web: WebContext, request: Request) -> ModelList:
    """List the models: the routes, and `hark`, which leaves the choice to the agent."""
    names = [USUAL_MODEL, *(row.name for row in web.agent.routes() if row.name != USUAL_MODEL)]
    return ModelList([ModelEntry(name) for name in names])


async def complete(web: WebContext, request: Request, body: CompletionRequest) -> Response:
    """Run a turn as a chat completion, streamed if `stream` is set. A client that disconnects interrupts the turn."""
    prompt = read_prompt(body)
    route = _route(web, body.model)
    if web.agent.state is not GatewayState.READY:
        raise ApiError(503, "draining", "The agent is about to restart; try again soon.", {"Retry-After": "5"})
    name = request.headers.get(SESSION_HEADER, "")
    session = web.named(name or f"api-{web.agent.new_id()}", V1)
    if prompt.past:
        await web.agent.import_history(session.id, prompt.past)  # before anybody has the session open
    web.feeds.of(session)
    if route:
        refusal = await session.choose_route(route)
        if refusal is not None:
            raise ApiError(503, refusal.code, refusal.message)
    turn = CompletionTurn(session, web.agent.new_id(), is_own_session=not name)
    reply = _Reply(turn, session.id, body.model or USUAL_MODEL)
    if body.stream:
        wants_usage = body.stream_options is not None and body.stream_options.include_usage
        return SseResponse(reply.stream(prompt, wants_usage=wants_usage))
    return await while_connected(request, lambda: reply.whole(prompt))


def _route(web: WebContext, model: str) -> str:
    """Return the route that a model's name means; "" for the usual ones."""
    if model in ("", USUAL_MODEL):
        return ""
    for row in web.agent.routes():
        if model in (row.name, row.model):
            return row.name
    raise ApiError(404, "model_not_found", f"There is no model {model[:80]!r}; GET /v1/models lists them.")


class _Reply:
    """A turn's reply in OpenAI's words, as it comes or as a whole."""

    def __init__(self, turn: CompletionTurn, session: str, model: str) -> None:
        self._turn = turn
        self._session = session
        self._head: dict[str, Any] = {
            "id": f"chatcmpl-{session}",
            "created": int(time.time()),
            "model": model,
        }

    async def whole(self, prompt: CompletionPrompt) -> Response:
        """Return the reply when it is complete."""
        steps: list[str] = [""]
        thoughts: list[str] = []
        end: TurnEnd | None = None
        async with self._turn.said(prompt.text, prompt.author, prompt.attachments):
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
        failed = failure(end.outcome) if end else _CLOSED
        if end is None or failed:
            raise ApiError(502, *(failed or _CLOSED))
        message: dict[str, Any] = {"role": "assistant", "content": "\n\n".join(filter(None, steps)), "refusal": None}
        if thoughts:
            message["reasoning_content"] = "".join(thoughts)
        choice = {"index": 0, "message": message, "finish_reason": finish_reason(end.outcome), "logprobs": None}
        body = {**self._head, "object": "chat.completion", "choices": [choice], "usage": usage_words(end.usage)}
        return json_response({**body, "hark": self._facts(end)})

    async def stream(self, prompt: CompletionPrompt, *, wants_usage: bool) -> AsyncGenerator[bytes]:
        """Yield the reply as it comes."""
        try:
            async with self._turn.said(prompt.text, prompt.author, prompt.attachments):
                yield self._chunk({"role": "assistant", "content": ""})
                async with aclosing(self._pieces(wants_usage=wants_usage)) as pieces:
                    async for piece in pieces:
                        yield piece
        except ApiError as error:
            yield _line(error_body(error.status, error.code, error.message, PATH))
        except StoreError as error:
            yield _line(error_body(503, "store", str(error), PATH))

    async def _pieces(self, *, wants_usage: bool) -> AsyncGenerator[bytes]:
        has_text = is_new_step = False
        async for event in self._turn.events():
            match event:
                case StepStart():
                    is_new_step = has_text
                case ReplyRestarted():
                    yield self._chunk({"content": _AGAIN})
                case ReplyDelta(text=text):
                    yield self._chunk({"content": f"\n\n{text}" if is_new_step else text})
                    has_text, is_new_step = True, False
                case ReasoningDelta(text=text):
                    yield self._chunk({"reasoning_content": text})
                case TurnEnd():
                    yield self._ending(event, wants_usage=wants_usage)
                    return
                case _:
                    pass
        raise ApiError(502, *_CLOSED)

    def _ending(self, end: TurnEnd, *, wants_usage: bool) -> bytes:
        failed = failure(end.outcome)
        if failed:
            return _line(error_body(502, *failed, PATH))
        last = self._chunk({}, finish_reason(end.outcome), {"hark": self._facts(end)})
        usage = b""
        if wants_usage:
            choices: list[Any] = []
            head = {**self._head, "object": "chat.completion.chunk"}
            usage = _line({**head, "choices": choices, "usage": usage_words(end.usage)})
        return last + usage + b"data: [DONE]\n\n"

    def _chunk(self, delta: dict[str, Any], reason: str | None = None, more: dict[str, Any] | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}
        return _line({**self._head, "object": "chat.completion.chunk", "choices": [choice], **(more or {})})

    def _facts(self, end: TurnEnd) -> dict[str, Any]:
        return {"session": self._session, "turn": end.turn, "outcome": end.outcome, "cost": end.cost}


def _line(value: object) -> bytes:
    return b"data: %b\n\n" % msgspec.json.encode(value)
