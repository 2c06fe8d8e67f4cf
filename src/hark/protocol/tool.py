"""The port to a tool: its description, its context while running, and its result."""

from collections.abc import Callable, Sequence
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct, field

from hark.protocol.messages import Attachment, Effect


class PredictedEffects(Struct, frozen=True):
    """The predicted effects of a call, derived from its arguments.

    `subject` is the text that approval patterns match after `NAME:`. `command`: a shell command that the call would
    run, to be analysed. `writes`: the paths that the call would change, None if they can't be known.
    """

    is_changing: bool = True
    subject: str = ""
    command: str = ""
    writes: tuple[str, ...] | None = None


PredictEffects = Callable[[Any], PredictedEffects]


class ToolSpec(Struct, frozen=True):
    """A tool's description for the model, and the information that the engine needs to run it.

    `parameters` is the JSON schema of the arguments. `arguments` is the struct that `run` and `predict` take, None
    for a tool that takes the JSON object. `is_changing`: the tool may change something outside the session.
    `grace_seconds`: time to clean up after a cancel before the call is abandoned. `predict` returns the effects of a
    single call, more precisely than `is_changing`. `folder_of` returns the directory where a session's next command
    starts, for a tool that remembers a working directory.
    """

    name: str
    description: str
    parameters: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    is_changing: bool = False
    grace_seconds: float = 0.1
    predict: PredictEffects | None = None
    folder_of: Callable[[str], Path | None] | None = None
    arguments: type[Struct] | None = None

    def predict_effects(self, arguments: Any) -> PredictedEffects:
        """Return the predicted effects of a call with these arguments."""
        return self.predict(arguments) if self.predict else PredictedEffects(self.is_changing)


class Risk(IntEnum):
    """The risk of a call, from lowest to highest.

    LEAVING writes outside the workspace. RISKY is dangerous, but a rule may allow it. HARD always needs approval.
    """

    READING = 0
    CHANGING = 1
    LEAVING = 2
    RISKY = 3
    HARD = 4


class RiskAssessment(Struct, frozen=True):
    """The highest risk of a call, the reasons (worst first), and each simple command in it as plain text."""

    risk: Risk
    reasons: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


class CommandAnalyzer(Protocol):
    """Analyses shell commands and paths. May read the disk to resolve links, but changes nothing."""

    async def analyze(
        self, effects: PredictedEffects, workspace: Path, folder: Path | None, writable: Sequence[str]
    ) -> RiskAssessment:
        """Return the highest risk of a call.

        A command starts in `folder`, None for the workspace. `writable` lists directories outside the workspace that
        may be written to; `~` is the home directory. Commands that can't be parsed are RISKY. Safe to cancel.
        """
        ...


class ToolOutput(Struct, frozen=True):
    """The output of a finished tool call."""

    text: str
    is_error: bool = False
    effect: Effect = Effect.COMPLETED
    attachments: tuple[Attachment, ...] = ()


class ToolError(Exception):
    """A call can't be executed as requested. The text says why and what to do next, for the model.

    Raised by `Tool.run`, it becomes the call's result. `effect` is the known effect, NOT_STARTED by default.
    """

    def __init__(self, text: str, effect: Effect = Effect.NOT_STARTED) -> None:
        super().__init__(text)
        self.effect = effect

    def as_output(self) -> ToolOutput:
        """Return the error as the call's output."""
        return ToolOutput(str(self), is_error=True, effect=self.effect)


class QuestionKind(StrEnum):
    """The kind of a question. Text that is not a choice declines an approval; a question accepts it as the answer."""

    APPROVAL = "approval"
    QUESTION = "question"


class Question(Struct, frozen=True):
    """A question to the user.

    `is_open_ended`: the user types a value, such as a number. The choices are shortcuts without numbers or letters.
    `outlives_turn`: it stays open when the turn ends, because a child asks it.
    """

    text: str
    choices: tuple[str, ...] = ()
    kind: QuestionKind = QuestionKind.QUESTION
    is_open_ended: bool = False
    outlives_turn: bool = False


class CallContext(Protocol):
    """The context of a running call: the ids of session, turn and call, and methods to reach the user.

    `workspace` is the session's working directory.
    """

    session: str
    turn: str
    call: str
    workspace: Path

    @property
    def is_cut_by_message(self) -> bool:
        """Whether the turn was interrupted by a message, rather than stopped."""
        ...

    def output(self, text: str) -> None:
        """Show a piece of output while the call runs. The output is kept if the call is interrupted."""
        ...

    def report_unstopped(self, name: str) -> None:
        """Report work that could not be stopped, so that the turn's outcome names that work."""
        ...

    async def ask(self, question: Question) -> str:
        """Ask the user a question and return the answer. Cancelling withdraws the question.

        Raises:
            NoUserToAsk: No user can answer in this session.
        """
        ...

    async def wait_for_steer(self) -> None:
        """Wait until a message for this turn is pending, so that a tool that only waits can end early."""
        ...


class NoUserToAsk(Exception):
    """No user can answer the question."""


class Tool(Protocol):
    """An ability that the model can call."""

    @property
    def spec(self) -> ToolSpec:
        """The tool's name, description and parameters."""
        ...

    async def run(self, arguments: Any, context: CallContext) -> ToolOutput:
        """Run the call. `arguments` has the type named in the spec.

        Any exception except a cancellation becomes an error result. Cancelling must stop everything that the call
        started, within `grace_seconds`.
        """
        ...
