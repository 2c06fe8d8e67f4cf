"""A simulated model that writes text, reasons, calls tools, stalls and fails, depending on the seed."""

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
from tests.simulation.network_link import NetworkLink
from tests.simulation.observations import Observations, StreamRecord
from tests.simulation.storage import LEASE_SECONDS
from tests.simulation.transcripts import find_request_problem

TOOL_BEHAVIOURS = ["finish", "finish", "finish", "long", "raise", "swallow", "stubborn", "never", "ask", "steered"]
MEMORY = "memory"
REFLECT = "reflect-"  # the start of the message ids of a background session
REFLECTION_PIECES = 60
GOAL = "goal "  # the start of the first message in a child session
CHILD_PIECES = (0, 10, 40, 80)
BACKGROUND_CALLS: list[tuple[str, dict[str, str]]] = [
    ("delegate", {}),
    ("delegate", {}),
    ("process", {"action": "start", "command": "sleep 9"}),
    ("process", {"action": "start", "command": "sleep 9"}),
    ("process", {"action": "list"}),
]
TOOLS = ["look", "look", "change", "patient", "nothing_like_it"]


class QuietPhase:
    """A flag for the last phase of a run, in which all remaining work may finish."""

    def __init__(self) -> None:
        self.is_on = False


class SimulatedModel:
    """The simulated model provider of one machine."""

    def __init__(
        self,
        observations: Observations,
        link: NetworkLink,
        random: Random,
        quiet: QuietPhase,
        lapses: Random | None = None,
        background: Random | None = None,
    ) -> None:
        """With `lapses`, the first failed request pauses the machine until its lease has expired.

        With `background`, some calls start background work.
        """
        self._lapses = lapses
        self._background = background
        self._observations = observations
        self._link = link
        self._random = random
        self._quiet = quiet

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        if self._link.is_dead:
            await self._link.wait(0)
        if any(isinstance(one, UserMessage) and one.id.startswith(REFLECT) for one in request.messages):
            async for chunk in self._reflect(request):
                yield chunk
            return
        if isinstance(request.messages[0], UserMessage) and request.messages[0].text.startswith(GOAL):
            async for chunk in self._run_child(request.messages[0].text):
                yield chunk
            return
        stream_record = self._record_request(request)
        try:
            for step in self._reply_steps(len(self._observations.streams)):
                await self._link.wait(self._link.delay("chunk") if step is not None else 0.05)
                if isinstance(step, Exception):
                    stream_record.end = "transient" if isinstance(step, TransientProviderError) else "failed"
                    raise self._pause_until_lapse(step)
                if step is None:
                    continue
                if isinstance(step, TextChunk):
                    stream_record.text += step.text
                elif isinstance(step, EndChunk):
                    stream_record.end = "done"
                yield step
            stream_record.end = stream_record.end or "transient"
        finally:
            stream_record.end = stream_record.end or ("lost" if self._link.is_dead else "cut")
            stream_record.ended_mark = self._observations.next_mark()
            self._observations.add_trace(
                self._link.now(), self._link.owner, "stream", stream_record.turn, stream_record.end
            )

    async def _reflect(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Reply slowly to a background session, which must always be offered its own tools."""
        names = [tool.name for tool in request.tools]
        self._observations.add_trace(self._link.now(), self._link.owner, "reflects with", names)
        if names != [MEMORY]:
            self._observations.add_violation(f"restrictions: a background session was offered the tools {names}")
        for _ in range(REFLECTION_PIECES):
            await self._link.wait(0.05)
            if self._quiet.is_on:
                break
        yield TextChunk("noted")
        yield EndChunk("stop")

    async def _run_child(self, goal: str) -> AsyncGenerator[Chunk, None]:
        """Reply to a child session after a while, or fail."""
        random = Random(goal)
        for _ in range(random.choice(CHILD_PIECES)):
            await self._link.wait(0.05)
            if self._quiet.is_on:
                break
        if random.random() < 0.1:
            raise ProviderError("no such model", "not_found")
        yield TextChunk(f"result of {goal}")
        yield EndChunk("stop")

    def _pause_until_lapse(self, error: Exception) -> Exception:
        """Pause the machine, once, and return an error whose retry comes when the lease may have expired."""
        random, self._lapses = self._lapses, None
        if random is None or not isinstance(error, TransientProviderError):
            self._lapses = random
            return error
        seconds = LEASE_SECONDS + random.random() * 4
        self._observations.add_trace(self._link.now(), self._link.owner, "lapses for", round(seconds, 3))
        self._link.pause(seconds)
        return TransientProviderError("connection lost", retry_after=LEASE_SECONDS + random.random() * 4)

    def _record_request(self, request: Request) -> StreamRecord:
        observations = self._observations
        message_ids = [message.id for message in request.messages if isinstance(message, UserMessage)]
        turn = observations.turn_of.get(message_ids[-1], "") if message_ids else ""
        streamed = StreamRecord(turn, self._link.owner, request, observations.next_mark())
        observations.streams.append(streamed)
        observations.add_trace(self._link.now(), self._link.owner, "request", turn, message_ids)
        if not turn:
            observations.add_violation(f"honest: a request was made for {message_ids[-1:]} before its turn was durable")
        if self._link.is_dead:
            observations.add_violation(f"crash: the dead machine {self._link.owner} made a request")
        owner = observations.owner
        if owner not in (self._link.owner, ""):
            observations.add_violation(
                f"lease: {self._link.owner} made a request of {turn}, but {owner} owns the session"
            )
        problem = find_request_problem(request)
        if problem:
            observations.add_violation(f"transcript: request {len(observations.streams)} of {turn}: {problem}")
        return streamed

    def _reply_steps(self, number: int) -> Iterator[Chunk | Exception | None]:
        """Yield a reply's chunks and errors, with None for a pause."""
        random = self._random
        if self._quiet.is_on:
            yield TextChunk(f"quiet {number}. ")
            yield EndChunk("stop")
            return
        kind = random.choice(
            ["text", "text", "calls", "calls", "calls", "calls", "silent", "endless", "early", "late", "fatal", "cut"]
        )
        if self._background is not None and self._background.random() < 0.5:
            kind = "calls"
        if kind == "silent":
            yield from self._stall_until_quiet()
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
            yield from self._call_chunks(number)
        if kind != "cut":
            yield UsageChunk(Usage(10, 5))
            yield EndChunk("calls" if kind == "calls" else "stop")

    def _stall_until_quiet(self) -> Iterator[None]:
        for _ in range(2000):
            if self._quiet.is_on:
                return
            yield None

    def _call_chunks(self, number: int) -> Iterator[Chunk]:
        random = self._random
        for index in range(random.choice([1, 1, 2, 3])):
            name = random.choice(["c0", "", f"c{number}.{index}"]) if random.random() < 0.2 else f"c{number}.{index}"
            arguments = json.dumps({"do": random.choice(TOOL_BEHAVIOURS), "command": random.choice(["ls", "rm -rf x"])})
            if random.random() < 0.1:
                arguments = arguments[: random.randint(1, 9)]
            tool = random.choice(TOOLS)
            if self._background is not None and self._background.random() < 0.6:
                tool, details = self._background.choice(BACKGROUND_CALLS)
                arguments = json.dumps(details | ({"goal": f"{GOAL}{number}.{index}"} if tool == "delegate" else {}))
            yield CallChunk(index, name, tool, arguments[:4])
            yield CallChunk(index, arguments=arguments[4:])
