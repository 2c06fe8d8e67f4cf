"""How a turn ends, and what it took."""

from msgspec import Struct, field


class ErrorInfo(Struct, frozen=True):
    """An error that a person reads: a stable code, and the words."""

    code: str
    message: str


class Completed(Struct, frozen=True, tag="completed"):
    """The model said all that it had to say."""

    text: str


class Interrupted(Struct, frozen=True, tag="interrupted", omit_defaults=True):
    """The turn was cut: by whom, and what of it could not be stopped in time."""

    source: str
    left_running: tuple[str, ...] = ()


class Failed(Struct, frozen=True, tag="failed"):
    """The turn could not go on."""

    error: ErrorInfo


class LimitReached(Struct, frozen=True, tag="limit_reached"):
    """The turn used up what it was allowed: steps, tokens, seconds or cost_usd."""

    limit: str
    message: str


Outcome = Completed | Interrupted | Failed | LimitReached


class Usage(Struct, frozen=True, omit_defaults=True):
    """Tokens, as the provider counted them."""

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
    """A stretch of a turn: what ran (model, tool, pause, question), from when to when, in ms from its start.

    `settle` is the part of it that came after the interrupt.
    """

    kind: str
    name: str
    start: float
    end: float
    settle: float = 0.0


class Timings(Struct, frozen=True, omit_defaults=True):
    """Where a turn's time went, in milliseconds."""

    total: float = 0.0
    model: float = 0.0
    tools: float = 0.0
    settle: float = 0.0
    first_chunk: float | None = None
    interrupted_at: float | None = None
    spans: tuple[Span, ...] = field(default=())
