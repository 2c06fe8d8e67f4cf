"""A provider that plays a script: for tests, demos and examples."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass

from hark.protocol.provider import CallChunk, Chunk, EndChunk, ProviderError, Request, TextChunk


class Hang:
    """A step that never continues: `reached` is set when the reply comes here, `closed` when it is cut here."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.closed = asyncio.Event()

    async def wait(self) -> None:
        """Wait until cancelled."""
        self.reached.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.closed.set()


@dataclass(frozen=True, slots=True)
class Pause:
    """A step that takes time."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Fail:
    """A step that raises."""

    error: Exception


Step = Chunk | Hang | Pause | Fail | str
Reply = Sequence[Step] | Callable[[Request], Sequence[Step]]


class ScriptedProvider:
    """Answers each request with the next reply, and keeps the requests.

    A text in a reply is short for a TextChunk; a reply without an end gets the one that fits.
    """

    def __init__(self, replies: Sequence[Reply]) -> None:
        self._replies = list(replies)
        self.requests: list[Request] = []

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Play the next reply.

        Raises:
            ProviderError: The script has no reply left (code `script_ended`), or its Fail step says so.
        """
        number = len(self.requests)
        self.requests.append(request)
        if number >= len(self._replies):
            raise ProviderError(
                f"The script has {len(self._replies)} replies and this is request {number + 1}: add a reply to it.",
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
