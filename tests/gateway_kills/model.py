"""The model of the gateway kill test: it remembers what it was asked, and replies as a message's first word says."""

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
from tests.gateway_kills.expectations import Book, message_of, tokens
from tests.gateway_kills.kill_points import ASKED, SAID, KillPoint

REQUESTS = 1_000_000
WORD_SECONDS = 0.01
LONG_WORDS = 30
LONG_WORD_SECONDS = 0.1
HUGE_WORDS = 600
PLANS = ("talk", "long", "huge", "shell", "ask", "choose")
_PLAN = re.compile(rf"\b({'|'.join(PLANS)}) m\d")


@dataclass(slots=True)
class Asked:
    """One request, and how long its reply was being said."""

    reply: str
    chat: str
    began: float
    plan: str = "talk"
    ended: float | None = None
    is_whole: bool = False


class Model:
    """What it saw, over all lives of the gateway."""

    def __init__(self, book: Book, kill_point: KillPoint) -> None:
        self.prompts: dict[str, Counter[str]] = {}  # the messages in the last prompt of each chat
        self.asked: list[Asked] = []
        self.open: dict[str, Asked] = {}
        self.complaints: list[str] = []
        self._book = book
        self._kill_point = kill_point
        self._server = ModelServer([self._answer] * REQUESTS)

    @property
    def address(self) -> str:
        return self._server.base_url

    async def __aenter__(self) -> "Model":
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop()

    def is_open(self, chat: str) -> bool:
        return any(one.chat == chat for one in self.open.values())

    async def _answer(self, exchange: Exchange) -> None:
        body, exchange.seen.body = exchange.seen.body, {}  # a long run has many, and each has the whole history
        messages: list[dict[str, Any]] = body["messages"]
        self._check(body)
        said = [words(message) for message in messages if message["role"] == "user"]
        heard = [words(message) for message in messages if message["role"] in ("user", "tool")]
        found = [token for text in heard for token in tokens(text)]
        self._note(found)
        one = self._book.of(found[-1]) if found else None
        plans = _PLAN.findall(said[-1]) if said and messages[-1]["role"] == "user" else []
        plan = plans[-1] if plans else "talk"
        asked = Asked(f"r{len(self.asked)}", one.chat if one else "", time.time(), plan)
        self.asked.append(asked)
        self.open[asked.reply] = asked
        if one is not None:
            self.prompts[one.chat] = Counter(message_of(token) for token in found)
        self._kill_point.at(ASKED)
        try:
            await _reply(exchange, asked.reply, plan)
            self._kill_point.at(SAID)
            await exchange.end()
            asked.is_whole = True
        finally:
            asked.ended = time.time()
            del self.open[asked.reply]

    def _check(self, body: dict[str, Any]) -> None:
        try:
            check_openai_chat(body)
        except AssertionError as error:
            self.complaints.append(str(error))

    def _note(self, found: list[str]) -> None:
        for token, times in Counter(found).items():
            if times > 1:
                self.complaints.append(f"{token} was {times} times in one prompt")


def words(message: dict[str, Any]) -> str:
    """Return the text of a message on the wire."""
    content = message["content"]
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or ())


async def _reply(exchange: Exchange, reply: str, plan: str) -> None:
    await exchange.begin()
    await exchange.events(delta(content=f"This is {reply}. "))
    count, pause = (LONG_WORDS, LONG_WORD_SECONDS) if plan == "long" else (5, WORD_SECONDS)
    for number in range(count):
        await asyncio.sleep(pause)
        await exchange.events(delta(content=f"word{number} "))
    if plan == "huge":
        await exchange.events(delta(content=" ".join(f"more{number}" for number in range(HUGE_WORDS))))
    wish = _call(plan, reply)
    if wish is not None:
        await exchange.events(delta(tool_calls=[wish]))
    await exchange.events(delta("tool_calls" if wish else "stop"))


def _call(plan: str, reply: str) -> Any:
    """Return the call that a plan asks for; a command leaves its mark, so that it can be counted."""
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
