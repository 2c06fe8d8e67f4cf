"""What a running call may use of its turn."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from hark.engine.session.fanout import Fanout
from hark.engine.session.questions import TurnQuestions
from hark.engine.session.signal import Signal
from hark.protocol.events import CallOutput
from hark.protocol.tool import NobodyToAsk, Question
from hark.text.clean import clean

KEPT_CHARACTERS = 8_000

Prove = Callable[[], Awaitable[None]]


class TurnIO:
    """A turn's lines to the outside: where its calls' output, questions and steers go."""

    def __init__(self, session: str, turn: str, fanout: Fanout, questions: TurnQuestions, prove: Prove) -> None:
        """`prove` returns when the session is surely this process's own, and raises StoreError when it is not."""
        self.session = session
        self.turn = turn
        self.fanout = fanout
        self.questions = questions
        self.steering = Signal()  # set while a message waits for the turn's next step
        self.prove = prove


class Context:
    """One call's context. After the call is abandoned, what it says goes nowhere."""

    def __init__(self, lines: TurnIO, call: str, workspace: Path) -> None:
        self.session = lines.session
        self.turn = lines.turn
        self.call = call
        self.workspace = workspace
        self.said = ""  # the last of what was shown
        self.left: list[str] = []
        self._lines = lines
        self._is_live = True

    def output(self, text: str) -> None:
        """Show a piece of output, and keep the last of it in case the call is cut."""
        if self._is_live and text:
            text = clean(text)
            self.said = (self.said + text)[-KEPT_CHARACTERS:]
            self._lines.fanout.emit(CallOutput, self.turn, self.call, text)

    def left_running(self, what: str) -> None:
        """Name something that could not be stopped."""
        self.left.append(what)

    async def ask(self, question: Question) -> str:
        """Return a person's answer; cancelling withdraws the question.

        Raises:
            NobodyToAsk: No person is there, or the turn has gone on without this call.
        """
        if not self._is_live:
            raise NobodyToAsk
        return await self._lines.questions.ask(question, self.call, self._keep_answer)

    def _keep_answer(self, text: str) -> None:
        """Keep an answer in case the call is cut before its tool returns it."""
        self.said = f"{self.said}\nThe answer was: {clean(text)}".lstrip()[-KEPT_CHARACTERS:]

    async def steered(self) -> None:
        """Return when a message for this turn waits."""
        await self._lines.steering.wait()

    def abandon(self) -> None:
        """Cut the line: the turn goes on without this call."""
        self._is_live = False
