"""The model of the gateway kill test. It records its requests, and a message's first word selects the reply."""

import asyncio
import json
import re
import secrets
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

from tests.fakes.models.behaviours import Exchange, call, delta
from tests.fakes.models.history_rules import check_openai_chat
from tests.fakes.models.server import ModelServer
from tests.gateway_kills.expectations import Expectations, find_tokens, message_of
from tests.gateway_kills.kill_points import MODEL_FINISHED, MODEL_REQUESTED, KillPoint

REQUESTS = 1_000_000
WORD_SECONDS = 0.01
LONG_WORDS = 30
LONG_WORD_SECONDS = 0.1
HUGE_WORDS = 600
PLANS = ("talk", "long", "huge", "shell", "ask", "choose")
_PLAN = re.compile(rf"\b({'|'.join(PLANS)}) m\d")


@dataclass(slots=True)
class ModelRequest:
    """One request, with the start and end times of its reply."""

    reply: str
    chat: str
    began: float
    plan: str = "talk"
    ended: float | None = None
    is_complete: bool = False


class KillTestModel:
    """A fake model that records its requests across all processes of the gateway."""

    def __init__(self, book: Expectations, kill_point: KillPoint) -> None:
        self.prompts: dict[str, Counter[str]] = {}  # the messages in the last prompt of each chat
        self.requests: list[ModelRequest] = []
        self.open: dict[str, ModelRequest] = {}
        self.problems: list[str] = []
        self._expectations = book
        self._kill_point = kill_point
        self._server = ModelServer([self._answer] * REQUESTS)

    @property
    def address(self) -> str:
        return self._server.base_url

    async def __aenter__(self) -> "KillTestModel":
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop()

    async def _answer(self, exchange: Exchange) -> None:
        # a long run has many requests, and each contains the whole history
        body, exchange.request.body = exchange.request.body, {}
        messages: list[dict[str, Any]] = body["messages"]
        self._check(body)
        user_texts = [message_text(message) for message in messages if message["role"] == "user"]
        all_texts = [message_text(message) for message in messages if message["role"] in ("user", "tool")]
        found = [token for text in all_texts for token in find_tokens(text)]
        self._check_duplicates(found)
        one = self._expectations.find(found[-1]) if found else None
        plans = _PLAN.findall(user_texts[-1]) if user_texts and messages[-1]["role"] == "user" else []
        plan = plans[-1] if plans else "talk"
        request = ModelRequest(f"r{len(self.requests)}", one.chat if one else "", time.time(), plan)
        self.requests.append(request)
        self.open[request.reply] = request
        if one is not None:
            self.prompts[one.chat] = Counter(message_of(token) for token in found)
        self._kill_point.reach(MODEL_REQUESTED)
        try:
            await _send_reply(exchange, request.reply, plan)
            self._kill_point.reach(MODEL_FINISHED)
            await exchange.end()
            request.is_complete = True
        finally:
            request.ended = time.time()
            del self.open[request.reply]

    def _check(self, body: dict[str, Any]) -> None:
        try:
            check_openai_chat(body)
        except AssertionError as error:
            self.problems.append(str(error))

    def _check_duplicates(self, found: list[str]) -> None:
        for token, times in Counter(found).items():
            if times > 1:
                self.problems.append(f"{token} was {times} times in one prompt")


def message_text(message: dict[str, Any]) -> str:
    """Return the text of a message in wire format."""
    content = message["content"]
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or ())


async def _send_reply(exchange: Exchange, reply: str, plan: str) -> None:
    await exchange.begin()
    await exchange.send_events(delta(content=f"This is {reply}. "))
    count, pause = (LONG_WORDS, LONG_WORD_SECONDS) if plan == "long" else (5, WORD_SECONDS)
    for number in range(count):
        await asyncio.sleep(pause)
        await exchange.send_events(delta(content=f"word{number} "))
    if plan == "huge":
        await exchange.send_events(delta(content=" ".join(f"more{number}" for number in range(HUGE_WORDS))))
    tool_call = _tool_call(plan, reply)
    if tool_call is not None:
        await exchange.send_events(delta(tool_calls=[tool_call]))
    await exchange.send_events(delta("tool_calls" if tool_call else "stop"))


def _tool_call(plan: str, reply: str) -> Any:
    """Return the tool call for a plan, or None. A shell command appends a line to a file, to count its runs."""
    match plan:
        case "shell":
            name, arguments = "shell", {"command": f'echo {reply} >> "$HOME/effects"'}
        case "ask":
            name, arguments = "ask", {"question": f"What about {reply}?"}
        case "choose":
            name, arguments = "ask", {"question": f"Which of {reply}?", "choices": ["red", "blue"]}
        case _:
            return None
    return call(0, f"call_{secrets.token_hex(8)}", name, json.dumps(arguments))
