"""The input and output of a turn and its calls: events, questions, steers and call contexts."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from hark.engine.session.fanout import Fanout
from hark.engine.session.questions import TurnQuestions
from hark.engine.session.signal import Signal
from hark.protocol.events import CallOutput
from hark.protocol.tool import NoUserToAsk, Question
from hark.text.cleanup import replace_surrogates
from hark.text.terminal_emulator import TerminalEmulator

MAX_OUTPUT_TAIL_CHARACTERS = 40_000

VerifyOwnership = Callable[[], Awaitable[None]]


class TurnIO:
    """A turn's connections to its session: events, questions, steers, the ownership check and stops."""

    def __init__(
        self,
        session: str,
        turn: str,
        fanout: Fanout,
        questions: TurnQuestions,
        verify_ownership: VerifyOwnership,
        stop: Callable[[str], object],
    ) -> None:
        """`verify_ownership` returns once it is verified that this process owns the session, or raises StoreError.

        `stop` stops the turn. Its argument is the source.
        """
        self.session = session
        self.turn = turn
        self.fanout = fanout
        self.questions = questions
        self.steering = Signal()  # set while a message is pending for the turn's next step
        self.verify_ownership = verify_ownership
        self.stop = stop
        self.is_cut_by_message = False
        self._time = asyncio.get_running_loop().time
        self.last_event_at = self._time()  # of a step or a call; the model's data is timed elsewhere

    def mark_event(self) -> None:
        """Record that a step or a call made progress."""
        self.last_event_at = self._time()


class ToolCallContext:
    """The context of one call. Output from an abandoned call is discarded."""

    def __init__(self, io: TurnIO, call: str, workspace: Path) -> None:
        self.session = io.session
        self.turn = io.turn
        self.call = call
        self.workspace = workspace
        self.left_running: list[str] = []
        self._io = io
        self._is_live = True
        self._screen = TerminalEmulator()
        self._tail = ""

    @property
    def output_tail(self) -> str:
        """The last part of the output, as a terminal would show it."""
        return (self._tail + self._screen.text)[-MAX_OUTPUT_TAIL_CHARACTERS:]

    @property
    def is_cut_by_message(self) -> bool:
        """Whether the turn was interrupted by a message, rather than stopped."""
        return self._io.is_cut_by_message

    def output(self, text: str) -> None:
        """Publish a piece of output, and store the last output in case the call is interrupted."""
        if self._is_live and text:
            self._io.mark_event()
            text = replace_surrogates(text)
            self._store_output(text)
            self._io.fanout.emit(CallOutput, self.turn, self.call, text)

    def report_unstopped(self, name: str) -> None:
        """Report work that could not be stopped."""
        self.left_running.append(name)

    async def ask(self, question: Question) -> str:
        """Ask the user a question and return the answer. Cancelling withdraws the question.

        Raises:
            NoUserToAsk: No user is available, or the call was abandoned.
        """
        if not self._is_live:
            raise NoUserToAsk
        return await self._io.questions.ask(question, self.call, self._store_answer)

    def _store_answer(self, text: str) -> None:
        """Store an answer in case the call is interrupted before its tool returns."""
        self._store_output(f"\nThe answer was: {replace_surrogates(text)}")

    def _store_output(self, text: str) -> None:
        self._tail = (self._tail + self._screen.feed(text))[-MAX_OUTPUT_TAIL_CHARACTERS:]

    async def wait_for_steer(self) -> None:
        """Wait until a message for this turn is pending."""
        await self._io.steering.wait()

    def abandon(self) -> None:
        """Disconnect the call from its turn. The turn continues without the call."""
        self._is_live = False
