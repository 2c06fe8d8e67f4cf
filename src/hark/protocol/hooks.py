"""The port between a platform that calls us and the web server: its own signature vouches for its requests."""

from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct, field

MOST_BYTES = 1_000_000
RETRY_SECONDS = 5


class HookRequest(Struct, frozen=True):
    """What was posted; the headers' names are in small letters."""

    headers: Mapping[str, str]
    body: bytes


class HookAnswer(Struct, frozen=True):
    """What is answered."""

    status: int = 200
    text: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class Hook(Struct, frozen=True):
    """An address of the web server that belongs to a platform: nobody needs a token there.

    `answer` must check that the platform itself has sent the request, before it does anything else with it. It
    answers with success only when what came is durable. What it raises is told as a failure, so that the platform
    delivers again. `summary` tells in a few words what is to be sent there.
    """

    path: str
    answer: Callable[[HookRequest], Awaitable[HookAnswer]]
    most_bytes: int = MOST_BYTES
    summary: str = "What a platform calls"


def not_now(why: str) -> HookAnswer:
    """Return the answer that asks the platform to deliver again in a while."""
    return HookAnswer(503, why, {"Retry-After": str(RETRY_SECONDS)})
