"""The port for signed requests that platforms send to the web server."""

from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct, field

MAX_BYTES = 1_000_000
RETRY_SECONDS = 5


class HookRequest(Struct, frozen=True):
    """A POST request from a platform. Header names are in lower case."""

    headers: Mapping[str, str]
    body: bytes


class HookResponse(Struct, frozen=True):
    """The response to a platform's request."""

    status: int = 200
    text: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class Hook(Struct, frozen=True):
    """A web server path that accepts one platform's requests without an access token.

    `answer` must first verify that the platform sent the request. It returns success only when the event is durable.
    If it raises, the server responds with an error, so that the platform redelivers the request. `summary` describes
    the request in a few words.
    """

    path: str
    answer: Callable[[HookRequest], Awaitable[HookResponse]]
    max_bytes: int = MAX_BYTES
    summary: str = "Platform webhook"


def retry_later(reason: str) -> HookResponse:
    """Return a 503 response that asks the platform to redeliver in a few seconds."""
    return HookResponse(503, reason, {"Retry-After": str(RETRY_SECONDS)})
