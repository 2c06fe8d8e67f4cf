"""Texts that a user sends while a question is open, and the meaning of each text for each kind of question."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from hark.protocol.events import Notice
from hark.protocol.messages import CallResult, Note, UserMessage
from hark.protocol.provider import CallChunk, Request
from hark.protocol.session import Session
from hark.providers.scripted import ScriptedProvider, ScriptStep
from tests.waiting import until

APPROVAL, CHOICES, OPEN = KINDS = "approval", "choices", "open"
APPROVAL_CHOICES = ("yes", "session", "always", "no")
COLOURS = ("red", "blue")
RANGE_TEXT = "Choose a number from 1 to "
MAX_REPLIES = 1000

# The meanings of a text. Any other value in the table is the answer that the text gives.
FREE = "<free>"  # an answer if it is directed at the question, or if the chat is private and there are no choices
MESSAGE = "<message>"  # an answer only if it is directed at the question
RANGE = "<range>"
STOP = "<stop>"
COMMAND = "<command>"


class AnswerCase(NamedTuple):
    """A text, and its meaning at an approval, at the choices red and blue, and at a question without choices."""

    text: str
    approval: str = FREE
    choices: str = FREE
    open: str = FREE


class Result(NamedTuple):
    """The effect of a text: "answer", "message", "refused", "command" or "stop", and the text that the model reads."""

    effect: str
    text: str = ""


CASES: tuple[AnswerCase, ...] = (
    # Numbers.
    *(AnswerCase(text, "yes", "red") for text in ("1", "01", " 1", "1.", "1!", "１")),
    *(AnswerCase(text, "session", "blue") for text in ("2", "2.", " 2 ", "٢", "２。")),
    *(AnswerCase(text, choice, RANGE) for text, choice in (("3", "always"), ("4", "no"))),
    *(AnswerCase(text, RANGE, RANGE) for text in ("0", "5", "7", "42", "-1", "+1", "00", "7.", "9" * 30)),
    *(AnswerCase(text) for text in ("²", "2)", "(1)", "#2", "1 2", "1.5", "1,2", "1st", "two")),
    *(AnswerCase(text) for text in ("2️⃣", "①", "1\n2", "0x1")),
    # Letters.
    *(AnswerCase(text, choice) for text, choice in (("y", "yes"), ("Y", "yes"), ("s", "session"), ("a", "always"))),
    *(AnswerCase(text, "no") for text in ("n", "N.", "no", "No!", "NO")),
    *(AnswerCase(text, FREE, choice) for text, choice in (("r", "red"), ("B", "blue"))),
    *(AnswerCase(text) for text in ("x", "I", "yy", "é", "j")),
    # Whole texts.
    *(AnswerCase(text, "yes") for text in ("yes", "YES", "Yes.", "yes!!")),
    *(AnswerCase(text, text.casefold()) for text in ("Session", "always")),
    *(AnswerCase(text, FREE, "red") for text in ("red", "Red.", "  RED  ")),
    *(AnswerCase(text, FREE, "blue") for text in ("blue", "BLUE!")),
    # Other text.
    *(AnswerCase(text) for text in ("yes please", "yes, and add tests", "yes?", "yesterday", "y/n", "no way")),
    *(AnswerCase(text) for text in ("a nicer colour is green", "n/a", "red or blue", "redd", "red\nthen blue")),
    *(AnswerCase(text) for text in ("blue?", "👍", "👎🏽", "🟥", "-", "...", "?", "ye", "да", "yes\nno")),
    *(AnswerCase(text) for text in ("why do you ask?", "continue", "/etc/hosts")),
    *(AnswerCase(text, open=MESSAGE) for text in ("/unknown thing", "/tmp")),
    # Stops and commands.
    *(AnswerCase(text, STOP, STOP, STOP) for text in ("stop", "STOP!", "wait", "please stop", "stopp", "/stop")),
    *(AnswerCase(text) for text in ("stop that and use blue", "don't stop", "no stop")),
    *(AnswerCase(text, COMMAND, COMMAND, COMMAND) for text in ("/status", "/queue", "/STATUS")),
    AnswerCase("/approve", "yes", COMMAND, COMMAND),
    AnswerCase("/deny it is wrong", "it is wrong", COMMAND, COMMAND),
)  # fmt: skip
SAMPLE = tuple(case for case in CASES if case.text in {"2", "7", "no", "blue", "yes please", "stop", "/status", "👍"})


def expected_result(case: AnswerCase, kind: str, *, is_directed: bool, is_private: bool) -> Result:
    """Return the effect that the rule gives a text at a question of this kind."""
    meaning = getattr(case, kind)
    text = case.text.strip()
    match meaning:
        case "<free>" | "<message>":
            is_free = meaning == FREE and kind == OPEN and is_private
            return Result("answer" if is_directed or is_free else "message", text)
        case "<range>":
            return Result("refused")
        case "<stop>":
            return Result("stop")
        case "<command>":
            return Result("command")
        case _:
            is_allowed = kind == APPROVAL and meaning in APPROVAL_CHOICES[:3]
            return Result("answer", "allowed" if is_allowed else meaning)


class AskingModel:
    """A model that asks a question at each message "go", and records the answers and the other messages."""

    def __init__(self, kind: str) -> None:
        self.results: list[Result] = []
        self.provider = ScriptedProvider([self._reply] * MAX_REPLIES)
        self.kind = kind
        self.asked = 0

    def _reply(self, request: Request) -> Sequence[ScriptStep]:
        last = [message for message in request.messages if not isinstance(message, Note)][-1]
        if isinstance(last, UserMessage) and last.text.endswith("go"):
            self.asked += 1
            return [self._call()]
        if isinstance(last, UserMessage):
            self.results.append(Result("message", last.text))
        elif isinstance(last, CallResult):
            _, _, declined = last.text.partition("Their answer: ")
            allowed = "allowed" if self.kind == APPROVAL else last.text
            self.results.append(Result("answer", declined or allowed))
        return ["done"]

    def _call(self) -> CallChunk:
        arguments: dict[str, object] = {"command": f"touch made-{self.asked}"}
        if self.kind != APPROVAL:
            arguments = {"question": "Which colour?", "choices": COLOURS if self.kind == CHOICES else ()}
        name = "shell" if self.kind == APPROVAL else "ask"
        return CallChunk(0, f"call-{self.asked}", name, json.dumps(arguments))


def has_question(session: Session) -> bool:
    """Return whether the running turn of a session waits for an answer."""
    running = session.running_turn()
    return running is not None and bool(running.questions)


class Conversation(NamedTuple):
    """A user's side of a session. `begin` sends "go", `send` sends a text, `shown` returns all texts shown so far."""

    session: Session
    begin: Callable[[], Awaitable[object]]
    send: Callable[[str], Awaitable[object]]
    shown: Callable[[], Awaitable[str]]


async def check_texts(
    user: Conversation, model: AskingModel, cases: Sequence[AnswerCase], *, is_directed: bool, is_private: bool
) -> None:
    """Send each text at an open question, and compare its effect with the rule."""
    for case in cases:
        expected = expected_result(case, model.kind, is_directed=is_directed, is_private=is_private)
        assert await send_at_question(user, model, case.text) == expected, case.text


async def send_at_question(user: Conversation, model: AskingModel, text: str) -> Result:
    """Let the model ask, send one text, and return its effect. Afterwards no turn is running."""
    session, begin, send, shown = user
    await begin()
    await until(lambda: has_question(session))
    results, ranges, notices = len(model.results), (await shown()).count(RANGE_TEXT), list[Notice]()
    reading = asyncio.create_task(_collect_notices(session, notices))
    await asyncio.sleep(0)
    await send(text)

    async def is_refused() -> bool:
        return (await shown()).count(RANGE_TEXT) > ranges

    async def is_settled() -> bool:
        is_kept = has_question(session) and (bool(notices) or await is_refused())
        return is_kept or session.running_turn() is None

    await until(is_settled, shows=lambda: model.results)
    is_open, was_refused = has_question(session), await is_refused()
    await session.interrupt()
    await session.idle()
    reading.cancel()
    if model.results[results:]:
        [result] = model.results[results:]
        return result._replace(text=result.text.strip())
    return Result("stop") if not is_open else Result("refused") if was_refused else Result("command")


async def _collect_notices(session: Session, notices: list[Notice]) -> None:
    async for event in session.events():
        notices.extend([event] if isinstance(event, Notice) else [])
