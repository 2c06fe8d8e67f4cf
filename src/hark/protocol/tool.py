"""The port to an ability: what a tool is told, what it may do, what it returns."""

from collections.abc import Callable, Sequence
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct, field

from hark.protocol.messages import Attachment, Effect


class Foreseen(Struct, frozen=True):
    """What one call would do, as far as its arguments tell.

    `subject` is what rules are matched with, behind `NAME:`. `command`: a shell command that it would run, to be judged
    by its words. `writes`: the paths that it would change, None when nobody can know.
    """

    is_changing: bool = True
    subject: str = ""
    command: str = ""
    writes: tuple[str, ...] | None = None


Foresee = Callable[[Any], Foreseen]


class ToolSpec(Struct, frozen=True):
    """What the model is told of a tool, and what the engine must know to run it.

    `parameters` is the JSON schema of the arguments. `arguments` is the struct that `run` and `foresee` take; None for
    a tool that takes the JSON object as it is. `is_changing`: it may change something outside the session.
    `grace_seconds`: how long it may take to tidy up after a cancel, before it is abandoned. `foresee` tells more of a
    single call than `is_changing` tells of all. `folder_of`: where a session's next command would start, for a tool
    that keeps a working directory.
    """

    name: str
    description: str
    parameters: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    is_changing: bool = False
    grace_seconds: float = 0.1
    foresee: Foresee | None = None
    folder_of: Callable[[str], Path | None] | None = None
    arguments: type[Struct] | None = None

    def foreseen(self, arguments: Any) -> Foreseen:
        """Return what a call with these arguments would do."""
        return self.foresee(arguments) if self.foresee else Foreseen(self.is_changing)


class Risk(IntEnum):
    """What a call may do, from the least to the worst.

    LEAVING writes outside the workspace. RISKY is dangerous, but a rule may allow it. HARD is always asked.
    """

    READING = 0
    CHANGING = 1
    LEAVING = 2
    RISKY = 3
    HARD = 4


class Judgement(Struct, frozen=True):
    """The worst that a call does, why, the worst first, and each simple command in it as plain text."""

    risk: Risk
    reasons: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


class CommandAnalyzer(Protocol):
    """Analyses shell commands and paths. It may read the disk to follow links, and changes nothing."""

    async def analyze(
        self, foreseen: Foreseen, workspace: Path, folder: Path | None, writable: Sequence[str]
    ) -> Judgement:
        """Return the worst that a call may do.

        A command starts in `folder`, None for the workspace. `writable` are folders besides the workspace that may be
        written to; `~` is the home directory. Commands that can't be understood are RISKY. Safe to cancel.
        """
        ...


class ToolOutput(Struct, frozen=True):
    """What a tool says when it is done."""

    text: str
    is_error: bool = False
    effect: Effect = Effect.COMPLETED
    attachments: tuple[Attachment, ...] = ()


class ToolError(Exception):
    """A call can't be done as asked. The text tells the model why, and what to do next.

    Raised by `Tool.run`, it becomes the call's result. `effect` is what the call has done: nothing by default.
    """

    def __init__(self, text: str, effect: Effect = Effect.NOT_STARTED) -> None:
        super().__init__(text)
        self.effect = effect

    def as_output(self) -> ToolOutput:
        """Return it as the call's result."""
        return ToolOutput(str(self), is_error=True, effect=self.effect)


class QuestionKind(StrEnum):
    """An approval is answered by one of its choices alone; any other question also by words of one's own."""

    APPROVAL = "approval"
    QUESTION = "question"


class Question(Struct, frozen=True):
    """What the agent asks a person."""

    text: str
    choices: tuple[str, ...] = ()
    kind: QuestionKind = QuestionKind.QUESTION


class CallContext(Protocol):
    """What a running call may use of its turn: the ids of the session, the turn and the call, and more.

    `workspace` is the directory that the session works in.
    """

    session: str
    turn: str
    call: str
    workspace: Path

    def output(self, text: str) -> None:
        """Show a piece of output while the call runs. What was shown is kept if the call is cut."""
        ...

    def left_running(self, what: str) -> None:
        """Name something that could not be stopped: the turn's outcome tells it."""
        ...

    async def ask(self, question: Question) -> str:
        """Return a person's answer. Cancelling withdraws the question.

        Raises:
            NobodyToAsk: No person can answer in this session.
        """
        ...

    async def steered(self) -> None:
        """Return when a message for this turn waits, so that a tool which only waits can end early."""
        ...


class NobodyToAsk(Exception):
    """There is no person who could answer."""


class Tool(Protocol):
    """An ability of the agent."""

    @property
    def spec(self) -> ToolSpec:
        """What it is."""
        ...

    async def run(self, arguments: Any, context: CallContext) -> ToolOutput:
        """Do it. `arguments` is of the type that the spec names. Any exception but a cancellation becomes an error.

        Cancelling must end all that was started, within `grace_seconds`.
        """
        ...
