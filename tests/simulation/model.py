"""A simulated model: it talks, thinks, calls tools, stalls and fails, as the seed says."""

import json
from collections.abc import AsyncGenerator, Iterator
from random import Random

from hark.protocol.messages import Reasoning, UserMessage
from hark.protocol.outcomes import Usage
from hark.protocol.provider import (
    CallChunk,
    Chunk,
    EndChunk,
    ProviderError,
    ReasoningChunk,
    ReasoningEnd,
    Request,
    TextChunk,
    TransientProviderError,
    UsageChunk,
)
from tests.simulation.network_link import Link
from tests.simulation.observations import Ledger, Streamed
from tests.simulation.transcripts import complaint

WORK = ["finish", "finish", "finish", "long", "raise", "swallow", "stubborn", "never", "ask", "steered"]
TOOLS = ["look", "look", "change", "patient", "nothing_like_it"]


class Quiet:
    """Whether the run is in its last phase, in which everything comes to an end."""

    def __init__(self) -> None:
        self.is_on = False


class Model:
    """The provider that one machine talks to."""

    def __init__(self, ledger: Ledger, link: Link, random: Random, quiet: Quiet) -> None:
        self._ledger = ledger
        self._link = link
        self._random = random
        self._quiet = quiet

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        if self._link.is_dead:
            await self._link.wait(0)
        streamed = self._request(request)
        try:
            for step in self._reply(len(self._ledger.streams)):
                await self._link.wait(self._link.delay("chunk") if step is not None else 0.05)
                if isinstance(step, Exception):
                    streamed.end = "transient" if isinstance(step, TransientProviderError) else "failed"
                    raise step
                if step is None:
                    continue
                if isinstance(step, TextChunk):
                    streamed.text += step.text
                elif isinstance(step, EndChunk):
                    streamed.end = "done"
                yield step
            streamed.end = streamed.end or "transient"
        finally:
            streamed.end = streamed.end or ("lost" if self._link.is_dead else "cut")
            streamed.ended = self._ledger.mark()
            self._ledger.note(self._link.now(), self._link.owner, "stream", streamed.turn, streamed.end)

    def _request(self, request: Request) -> Streamed:
        ledger = self._ledger
        asked = [message.id for message in request.messages if isinstance(message, UserMessage)]
        turn = ledger.turn_of.get(asked[-1], "") if asked else ""
        streamed = Streamed(turn, self._link.owner, request, ledger.mark())
        ledger.streams.append(streamed)
        ledger.note(self._link.now(), self._link.owner, "request", turn, asked)
        if not turn:
            ledger.violate(f"honest: a request was made for {asked[-1:]} before its turn was durable")
        if self._link.is_dead:
            ledger.violate(f"crash: the dead machine {self._link.owner} made a request")
        wrong = complaint(request)
        if wrong:
            ledger.violate(f"transcript: request {len(ledger.streams)} of {turn}: {wrong}")
        return streamed

    def _reply(self, number: int) -> Iterator[Chunk | Exception | None]:
        """Yield the steps of a reply; None is a while in which nothing comes."""
        random = self._random
        if self._quiet.is_on:
            yield TextChunk(f"quiet {number}. ")
            yield EndChunk("stop")
            return
        kind = random.choice(
            ["text", "text", "calls", "calls", "calls", "calls", "silent", "endless", "early", "late", "fatal", "cut"]
        )
        if kind == "silent":
            yield from self._until_quiet()
        if kind == "early" and random.random() < 0.8:
            yield TransientProviderError("connection lost")
        if random.random() < 0.3:
            yield ReasoningChunk("hm")
            yield ReasoningEnd(Reasoning("hm", "signed"))
        if kind != "calls" or random.random() < 0.7:
            for piece in range(random.randint(0 if kind == "calls" else 1, 5)):
                yield TextChunk(f"r{number}.{piece} ")
                if random.random() < 0.1:
                    yield from (None for _ in range(random.randint(1, 30)))
        if kind == "endless":
            for piece in range(100, 140):
                if not self._quiet.is_on:
                    yield TextChunk(f"r{number}.{piece} ")
                    yield None
        if kind == "late":
            yield TransientProviderError("connection lost", retry_after=random.choice([None, 0.1, 2.0]))
        if kind == "fatal":
            yield ProviderError("no such model", "not_found")
        if kind == "calls":
            yield from self._calls(number)
        if kind != "cut":
            yield UsageChunk(Usage(10, 5))
            yield EndChunk("calls" if kind == "calls" else "stop")

    def _until_quiet(self) -> Iterator[None]:
        for _ in range(2000):
            if self._quiet.is_on:
                return
            yield None

    def _calls(self, number: int) -> Iterator[Chunk]:
        random = self._random
        for index in range(random.choice([1, 1, 2, 3])):
            name = random.choice(["c0", "", f"c{number}.{index}"]) if random.random() < 0.2 else f"c{number}.{index}"
            arguments = json.dumps({"do": random.choice(WORK), "command": random.choice(["ls", "rm -rf x"])})
            if random.random() < 0.1:
                arguments = arguments[: random.randint(1, 9)]
            yield CallChunk(index, name, random.choice(TOOLS), arguments[:4])
            yield CallChunk(index, arguments=arguments[4:])
