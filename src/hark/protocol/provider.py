"""The port to a model API: a request goes in, chunks come out."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any, ClassVar, Protocol

from msgspec import Struct

from hark.protocol.messages import Message, Reasoning
from hark.protocol.outcomes import Usage
from hark.protocol.tool import ToolSpec


class TextChunk(Struct, frozen=True):
    """A piece of the visible reply."""

    text: str


class ReasoningChunk(Struct, frozen=True):
    """A piece of thinking, as it is shown."""

    text: str


class ReasoningEnd(Struct, frozen=True):
    """A finished piece of thinking, as it is kept and replayed."""

    reasoning: Reasoning


class CallChunk(Struct, frozen=True):
    """A piece of a call: the first of an `index` brings id and name, the others more of the arguments."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


class AliveChunk(Struct, frozen=True):
    """A sign of life without content, such as a keep-alive comment."""


class UsageChunk(Struct, frozen=True):
    """Tokens used, as the provider counted them."""

    usage: Usage


class EndChunk(Struct, frozen=True):
    """The reply is complete. `reason` is stop, calls, length or refusal."""

    reason: str = "stop"


Chunk = TextChunk | ReasoningChunk | ReasoningEnd | CallChunk | AliveChunk | UsageChunk | EndChunk


class Request(Struct, frozen=True):
    """All that a model needs for one reply.

    `memo` belongs to the conversation: providers keep there, each under a key of its own, what they made of its
    messages, so that its next request costs only what is new in it. Without one, nothing is kept.
    """

    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    max_tokens: int | None = None
    memo: dict[object, Any] = {}


class ProviderError(Exception):
    """The model can't answer, and asking again would not help. `code` is stable, the text is for a person."""

    usual_code: ClassVar[str] = "provider_error"

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code or self.usual_code


class TransientProviderError(ProviderError):
    """The same request may succeed later; `retry_after` is the server's own wish, in seconds."""

    usual_code = "network"

    def __init__(self, message: str, code: str = "", retry_after: float | None = None) -> None:
        super().__init__(message, code)
        self.retry_after = retry_after


class Unreachable(TransientProviderError):
    """Nobody listens at the address, or there is no such address."""


class RateLimited(TransientProviderError):
    """Too many requests for this key: it must wait, others need not."""

    usual_code = "rate_limit"


class Overloaded(TransientProviderError):
    """The server has too much to do, or is not ready yet."""

    usual_code = "overloaded"


class ContextTooLong(ProviderError):
    """The request is longer than the model can read: a shorter one may be answered."""

    usual_code = "context_too_long"


class BadAddress(ProviderError):
    """Nothing can be sent there: the URL, a header or the certificate is wrong."""

    usual_code = "bad_url"


class BadKey(ProviderError):
    """The key is missing, wrong, or may not do this."""

    usual_code = "bad_key"


class BadModel(ProviderError):
    """The server has no such model."""

    usual_code = "bad_model"


class BadRequest(ProviderError):
    """The server does not accept the request's form."""

    usual_code = "bad_request"


class ContentRefused(ProviderError):
    """The server's rules forbid what the request says."""

    usual_code = "content_refused"


class QuotaExhausted(ProviderError):
    """The account's money or allowance is used up."""

    usual_code = "quota"


class Provider(Protocol):
    """A model, behind its wire protocol."""

    def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Yield the reply's chunks; the last one is the only EndChunk.

        Cancelling or closing it closes the connection at once: the server sees it.

        Raises:
            TransientProviderError: The network or the server failed; nothing is known to be wrong with the request.
            ProviderError: Any other reason; the text has the server's own words.
        """
        ...
