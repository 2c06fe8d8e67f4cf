"""One step: a reply is streamed from a route, and its calls are run."""

import asyncio
from contextlib import aclosing

from hark.engine.calls import Calls
from hark.engine.context import TurnLines
from hark.engine.limits import Meter
from hark.engine.log import Log
from hark.engine.reply import Reply
from hark.engine.retry import RetryBudget
from hark.engine.timeline import Timeline
from hark.engine.workbench import Route, Workbench
from hark.protocol.events import Notice, ReasoningDelta, ReplyDelta, ReplyRestarted, StepStart
from hark.protocol.messages import AssistantMessage
from hark.protocol.outcomes import LimitReached
from hark.protocol.provider import ReasoningChunk, Request, TextChunk, TransientProviderError
from hark.protocol.records import Progress, Replied, Steered

PROGRESS_SECONDS = 1.0


class ReplyTooLong(Exception):
    """The model does not stop; the reply so far is kept."""

    def __init__(self, characters: int) -> None:
        super().__init__()
        self.limit = LimitReached("reply_characters", f"The reply has {characters} characters and does not end.")


class Steps:
    """Runs a turn's steps, one at a time; after a cut it knows what the model had said."""

    def __init__(self, bench: Workbench, log: Log, lines: TurnLines, timeline: Timeline) -> None:
        self.meter = Meter(bench.rules.limits)
        self.calls = Calls(bench, log, lines, timeline)
        self._bench = bench
        self._log = log
        self._lines = lines
        self._timeline = timeline
        self._retries = RetryBudget(bench.jitter)
        self._reply = Reply()
        self._number = 0
        self._saved_pieces = 0
        self._time = asyncio.get_running_loop().time
        self._saved_at = self._time()

    async def run(self, number: int, route: Route) -> AssistantMessage:
        """Take waiting steers, ask the model, run the calls of its reply; return the reply.

        Cancelling closes the connection, ends the calls and leaves `partial` to be recorded.
        """
        self._number = number
        await self._take_steers()
        self._lines.fanout.emit(StepStart, self._lines.turn, number)
        reply = await self._ask(route)
        self._retries.succeeded()
        self.meter.add(reply.usage, route)
        message = reply.whole(self._log.state.call_ids, self._bench.clock.new_id)
        recorded = self._log.append(self._record(message, route))
        self._reply = Reply()
        if message.calls:
            await recorded
            await self.calls.run(message.calls)
        return message

    def partial(self, shown: int | None) -> Replied | None:
        """Return the record of a reply that was cut, if there is anything of it to keep."""
        message = self._reply.partial(shown)
        self._reply = Reply()
        return self._record(message, None) if message.text else None

    async def _take_steers(self) -> None:
        messages = tuple(self._log.state.steers())
        self._lines.steering.taken()
        if messages:
            record = Steered(turn=self._lines.turn, step=self._number, messages=messages, at=self._bench.clock.now())
            await self._log.append(record)

    async def _ask(self, route: Route) -> Reply:
        """Stream a reply; a passing failure is tried again, and text that was already shown is taken back."""
        request = Request(
            self._bench.system_prompt(), tuple(self._log.state.transcript.messages), tuple(self._bench.tools.specs)
        )
        while True:
            try:
                with self._timeline.span("model", route.name):
                    return await self._stream(route, request)
            except TransientProviderError as error:
                pause = self._retries.next_pause(error)
                if pause is None:
                    raise
                await self._prepare_retry(error, pause)

    async def _prepare_retry(self, error: TransientProviderError, pause: float) -> None:
        fanout, turn = self._lines.fanout, self._lines.turn
        fanout.emit(Notice, turn, "retry", f"{error}; retry {self._retries.used} in {pause:.1f} s")
        with self._timeline.span("pause", "retry"):
            await self._retries.pause(pause)
        if self._reply.characters:
            fanout.emit(ReplyRestarted, turn, self._number)

    async def _stream(self, route: Route, request: Request) -> Reply:
        reply = self._reply = Reply()
        self._saved_pieces = 0
        limit = self._bench.rules.limits.reply_characters
        emit, turn = self._lines.fanout.emit, self._lines.turn
        async with aclosing(route.provider.stream(request)) as chunks:
            async for chunk in chunks:
                reply.add(chunk)
                if type(chunk) is TextChunk:
                    emit(ReplyDelta, turn, chunk.text)
                    self._save_progress()
                elif type(chunk) is ReasoningChunk:
                    emit(ReasoningDelta, turn, chunk.text)
                self._timeline.chunk()
                if reply.characters > limit:
                    raise ReplyTooLong(reply.characters)
        if reply.end is None:
            raise TransientProviderError("the reply has no end", "stream_cut")
        return reply

    def _save_progress(self) -> None:
        """Keep the text that people see now and then, so that a crash does not lose it. Waits for nothing."""
        now = self._time()
        if now - self._saved_at < PROGRESS_SECONDS:
            return
        self._saved_at = now
        is_first = self._saved_pieces == 0
        text, self._saved_pieces = self._reply.text_from(self._saved_pieces)
        turn, at = self._lines.turn, self._bench.clock.now()
        self._log.append(Progress(turn=turn, step=self._number, text=text, is_first=is_first, at=at))

    def _record(self, message: AssistantMessage, route: Route | None) -> Replied:
        return Replied(
            turn=self._lines.turn,
            step=self._number,
            message=message,
            route=route.name if route else "",
            usage=self._reply.usage,
            at=self._bench.clock.now(),
        )
