"""Questions that a turn asks a person: open until answered, out of time, or withdrawn with the turn."""

import asyncio
from collections.abc import Callable

from hark.engine.session.fanout import Fanout
from hark.protocol.clock import Clock
from hark.protocol.events import QuestionAsked, QuestionClosed
from hark.protocol.tool import NobodyToAsk, Question


class Questions:
    """A session's open questions. A message is never taken for an answer: an answer names its question."""

    def __init__(self, fanout: Fanout, clock: Clock, *, can_ask: bool) -> None:
        self._fanout = fanout
        self._clock = clock
        self._can_ask = can_ask
        self._open: dict[str, asyncio.Future[str]] = {}
        self._on_answer: dict[str, Callable[[str], None]] = {}
        self._asked: dict[str, tuple[str, Question, str]] = {}  # whoever comes later can still read them

    async def ask(
        self,
        turn: str,
        question: Question,
        call: str = "",
        seconds: float | None = None,
        on_answer: Callable[[str], None] = lambda _: None,
    ) -> str:
        """Return the answer. Cancelling withdraws the question on every surface.

        `on_answer` gets the answer in the moment in which it is accepted. A cancel that comes right behind it takes the
        returned answer away, and the words of a user must not get lost.

        Raises:
            NobodyToAsk: The rules say that no person is there, or none answered within `seconds`.
        """
        if not self._can_ask:
            raise NobodyToAsk
        name = self._clock.new_id()
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._open[name] = answer
        self._on_answer[name] = on_answer
        self._asked[name] = turn, question, call
        self._fanout.emit(QuestionAsked, turn, name, question.text, question.choices, question.kind, call)
        reason = "withdrawn"
        try:
            async with asyncio.timeout(seconds):
                text = await answer
            reason = "answered"
        except TimeoutError as error:
            reason = "unanswered"
            raise NobodyToAsk from error
        finally:
            del self._open[name], self._on_answer[name], self._asked[name]
            self._fanout.emit(QuestionClosed, turn, name, reason)
        return text

    def answer(self, question: str, text: str) -> bool:
        """Give an answer; False when the question is not open any more."""
        answer = self._open.get(question)
        if answer is None or answer.done():
            return False
        answer.set_result(text)
        self._on_answer[question](text)
        return True

    @property
    def asked(self) -> list[tuple[str, str, Question, str]]:
        """The questions that wait for an answer, the oldest first: name, turn, question, and call."""
        return [(name, *self._asked[name]) for name in self.open_names]

    @property
    def open_names(self) -> list[str]:
        """The questions that wait for an answer, the oldest first."""
        return [name for name in self._open if self.is_open(name)]

    def is_open(self, question: str) -> bool:
        """Tell whether an answer would be taken."""
        answer = self._open.get(question)
        return answer is not None and not answer.done()


class TurnQuestions:
    """The questions of one turn. In one that no person began, they wait for `seconds` at the most."""

    def __init__(self, questions: Questions, turn: str, seconds: float | None) -> None:
        self._questions = questions
        self._turn = turn
        self._seconds = seconds

    async def ask(self, question: Question, call: str, on_answer: Callable[[str], None] = lambda _: None) -> str:
        """Return the answer; see `Questions.ask`. Cancelling withdraws the question.

        Raises:
            NobodyToAsk: No person is there, or none answered in time.
        """
        return await self._questions.ask(self._turn, question, call, self._seconds, on_answer)
