"""A provider that plays scripted replies, for tests, demos and examples."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass

from hark.protocol.provider import CallChunk, Chunk, EndChunk, ProviderError, Request, TextChunk


class Hang:
    """A scripted wait that ends only when cancelled. Sets `reached` when it starts and `closed` when cancelled."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.closed = asyncio.Event()

    async def wait(self) -> None:
        """Set `reached`, wait until cancelled, then set `closed`."""
        self.reached.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.closed.set()


@dataclass(frozen=True, slots=True)
class Pause:
    """A scripted delay within a reply."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Fail:
    """A scripted error, raised at its position in the reply."""

    error: Exception


ScriptStep = Chunk | Hang | Pause | Fail | str
ScriptedReply = Sequence[ScriptStep] | Callable[[Request], Sequence[ScriptStep]]


class ScriptedProvider:
    """A fake provider that answers each request with the next scripted reply, and records the requests.

    A string in a reply is short for a TextChunk. A reply without an EndChunk gets one automatically.
    """

    def __init__(self, replies: Sequence[ScriptedReply]) -> None:
        self._replies = list(replies)
        self.requests: list[Request] = []

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Yield the chunks of the next reply.

        Raises:
            ProviderError: The script has no reply left (code `script_ended`).
            Exception: The error of a `Fail` in the reply.
        """
        number = len(self.requests)
        self.requests.append(request)
        if number >= len(self._replies):
            raise ProviderError(
                f"The script has {len(self._replies)} replies, but this is request {number + 1}. Add a reply.",
                code="script_ended",
            )
        reply = self._replies[number]
        end = EndChunk("stop")
        for step in reply(request) if callable(reply) else reply:
            match step:
                case str():
                    yield TextChunk(step)
                case Hang():
                    await step.wait()
                case Pause(seconds):
                    await asyncio.sleep(seconds)
                case Fail(error):
                    raise error
                case EndChunk():
                    yield step
                    return
                case _:
                    if isinstance(step, CallChunk):
                        end = EndChunk("calls")
                    yield step
        yield end
