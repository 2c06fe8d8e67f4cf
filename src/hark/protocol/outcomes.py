"""The outcome of a turn, and its token and time usage."""

from msgspec import Struct, field


class ErrorInfo(Struct, frozen=True):
    """An error for the user: a stable code and a message."""

    code: str
    message: str


class Completed(Struct, frozen=True, tag="completed"):
    """The model finished its reply."""

    text: str


class Interrupted(Struct, frozen=True, tag="interrupted", omit_defaults=True):
    """The turn was interrupted by `source`. `left_running` names work that could not be stopped in time."""

    source: str
    left_running: tuple[str, ...] = ()


class Failed(Struct, frozen=True, tag="failed"):
    """The turn failed with an error."""

    error: ErrorInfo


class LimitReached(Struct, frozen=True, tag="limit_reached"):
    """The turn reached a limit: steps, tokens, seconds or cost_usd."""

    limit: str
    message: str


Outcome = Completed | Interrupted | Failed | LimitReached


class Usage(Struct, frozen=True, omit_defaults=True):
    """Token counts as reported by the provider."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
        )


class Span(Struct, frozen=True, omit_defaults=True):
    """A timed segment of a turn: its kind (model, tool, pause, question), name, start and end in ms from the turn's
    start.

    `settle` is the part of the segment after the interrupt, in ms.
    """

    kind: str
    name: str
    start: float
    end: float
    settle: float = 0.0


class Timings(Struct, frozen=True, omit_defaults=True):
    """How a turn's time was spent, in milliseconds."""

    total: float = 0.0
    model: float = 0.0
    tools: float = 0.0
    settle: float = 0.0
    first_chunk: float | None = None
    interrupted_at: float | None = None
    spans: tuple[Span, ...] = field(default=())
