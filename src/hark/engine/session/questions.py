"""Questions that a turn asks the user: open until answered, timed out, or withdrawn with the turn."""

import asyncio
from collections.abc import Callable

from hark.engine.session.fanout import Fanout
from hark.protocol.clock import Clock
from hark.protocol.events import QuestionAsked, QuestionClosed
from hark.protocol.tool import NoUserToAsk, Question


class Questions:
    """A session's open questions. A message never counts as an answer; an answer names its question."""

    def __init__(self, fanout: Fanout, clock: Clock, *, can_ask: bool) -> None:
        self._fanout = fanout
        self._clock = clock
        self.can_ask = can_ask
        self._open: dict[str, asyncio.Future[str]] = {}
        self._on_answer: dict[str, Callable[[str], None]] = {}
        self._asked: dict[str, tuple[str, Question, str]] = {}  # for readers that join late

    async def ask(
        self,
        turn: str,
        question: Question,
        call: str = "",
        seconds: float | None = None,
        on_answer: Callable[[str], None] = lambda _: None,
    ) -> str:
        """Ask a question and return the answer. Cancelling withdraws the question on every surface.

        `on_answer` is called when the answer is accepted. If the call is cancelled right after that, the answer is
        not returned, but must not be lost.

        Raises:
            NoUserToAsk: The rules say that no user is available, or no user answered within `seconds`.
        """
        if not self.can_ask:
            raise NoUserToAsk
        name = self._clock.new_id()
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._open[name] = answer
        self._on_answer[name] = on_answer
        self._asked[name] = turn, question, call
        details = question.text, question.choices, question.kind, call, question.is_open_ended
        self._fanout.emit(QuestionAsked, turn or None, name, *details)
        reason = "withdrawn"
        try:
            async with asyncio.timeout(seconds):
                text = await answer
            reason = "answered"
        except TimeoutError as error:
            reason = "unanswered"
            raise NoUserToAsk from error
        finally:
            del self._open[name], self._on_answer[name], self._asked[name]
            self._fanout.emit(QuestionClosed, turn or None, name, reason)
        return text

    def answer(self, question: str, text: str) -> bool:
        """Answer a question. Return False if the question is no longer open."""
        answer = self._open.get(question)
        if answer is None or answer.done():
            return False
        answer.set_result(text)
        self._on_answer[question](text)
        return True

    def open_events(self, session: str) -> list[QuestionAsked]:
        """Return the unanswered questions as events, oldest first."""
        at, asked = self._clock.now(), [(name, *self._asked[name]) for name in self.open_ids]
        return [
            QuestionAsked(session, turn or None, 0, at, name, one.text, one.choices, one.kind, call, one.is_open_ended)
            for name, turn, one, call in asked
        ]

    @property
    def open_ids(self) -> list[str]:
        """The ids of the unanswered questions, oldest first."""
        return [name for name in self._open if self.is_open(name)]

    def is_open(self, question: str) -> bool:
        """Return whether the question still accepts an answer."""
        answer = self._open.get(question)
        return answer is not None and not answer.done()


class TurnQuestions:
    """The questions asked by one turn. With `seconds`, they time out, as in a turn that no user started."""

    def __init__(self, questions: Questions, turn: str, seconds: float | None) -> None:
        self._questions = questions
        self._turn = turn
        self._seconds = seconds
        self._waiting = 0

    @property
    def is_waiting(self) -> bool:
        """Whether the turn is waiting for an answer."""
        return self._waiting > 0

    @property
    def is_unattended(self) -> bool:
        """Whether no user is expected to answer."""
        return self._seconds is not None or not self._questions.can_ask

    async def ask_aside(self, question: Question) -> str:
        """Ask a question that the turn doesn't wait for. Cancelling withdraws the question.

        Raises:
            NoUserToAsk: No user is available.
        """
        if self.is_unattended:
            raise NoUserToAsk
        return await self._questions.ask(self._turn, question)

    async def ask(self, question: Question, call: str, on_answer: Callable[[str], None] = lambda _: None) -> str:
        """Ask a question and return the answer; see `Questions.ask`. Cancelling withdraws the question.

        Raises:
            NoUserToAsk: No user is available, or no user answered in time.
        """
        turn = "" if question.outlives_turn else self._turn
        self._waiting += 1
        try:
            return await self._questions.ask(turn, question, call, self._seconds, on_answer)
        finally:
            self._waiting -= 1
