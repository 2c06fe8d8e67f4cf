"""The port to a model API: send a request, receive chunks."""

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
    """A piece of reasoning text for display."""

    text: str


class ReasoningEnd(Struct, frozen=True):
    """A finished piece of reasoning, in the form that is stored and sent back to the API."""

    reasoning: Reasoning


class CallChunk(Struct, frozen=True):
    """A piece of a call. The first chunk of an `index` has the id and name; later chunks add to the arguments."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


class KeepAliveChunk(Struct, frozen=True):
    """A chunk without content that shows the connection is alive, such as a keep-alive comment."""


class UsageChunk(Struct, frozen=True):
    """The token counts reported by the provider."""

    usage: Usage


class EndChunk(Struct, frozen=True):
    """The reply is complete. `reason` is stop, calls, length or refusal."""

    reason: str = "stop"


Chunk = TextChunk | ReasoningChunk | ReasoningEnd | CallChunk | KeepAliveChunk | UsageChunk | EndChunk


class Request(Struct, frozen=True):
    """The model's input for one reply.

    `memo` is a cache that belongs to the conversation. Providers store converted messages in it, each provider under
    a separate key, so that the next request converts only new messages. Without a memo, nothing is cached.
    `may_call` is False if the reply must be text only. The tools are sent all the same, for the server's cache.
    """

    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    max_tokens: int | None = None
    memo: dict[object, Any] = {}
    may_call: bool = True


class ProviderError(Exception):
    """The model can't answer, and a retry would not help. `code` is stable, the text is for the user."""

    default_code: ClassVar[str] = "provider_error"

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code or self.default_code


class TransientProviderError(ProviderError):
    """A transient failure: the same request may succeed later. `retry_after` is the server's delay in seconds."""

    default_code = "network"

    def __init__(self, message: str, code: str = "", retry_after: float | None = None) -> None:
        super().__init__(message, code)
        self.retry_after = retry_after


class Unreachable(TransientProviderError):
    """The server's host name can't be resolved, or the server does not accept connections."""


class RateLimited(TransientProviderError):
    """Too many requests with this API key. Other keys are not affected."""

    default_code = "rate_limit"


class Overloaded(TransientProviderError):
    """The server is overloaded or not ready yet."""

    default_code = "overloaded"


class ContextTooLong(ProviderError):
    """The request exceeds the model's context window; a shorter request may succeed."""

    default_code = "context_too_long"


class BadAddress(ProviderError):
    """The request can't be sent: the URL, a header or the certificate is invalid."""

    default_code = "bad_url"


class BadKey(ProviderError):
    """The API key is missing, wrong or lacks permission."""

    default_code = "bad_key"


class BadModel(ProviderError):
    """The server does not have this model."""

    default_code = "bad_model"


class BadRequest(ProviderError):
    """The server rejects the request as malformed."""

    default_code = "bad_request"


class ContentRefused(ProviderError):
    """The server's content policy rejects the request."""

    default_code = "content_refused"


class QuotaExhausted(ProviderError):
    """The account's credit or quota is used up."""

    default_code = "quota"


class Provider(Protocol):
    """A client for a model API that hides the API's wire protocol."""

    def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Yield the reply's chunks. The last chunk is the only EndChunk.

        Cancelling or closing the generator closes the connection immediately, so that the server notices it.

        Raises:
            TransientProviderError: The network or the server failed; the request itself may be fine.
            ProviderError: Any other failure; the text quotes the server.
        """
        ...
