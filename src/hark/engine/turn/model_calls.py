"""Getting one reply: the route that serves, another try where that helps, and another route where it does not."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import dataclass
from typing import Any

from hark.engine.services import EngineServices
from hark.engine.turn.reply import Reply
from hark.engine.turn.retry import STALE, RetryBudget
from hark.engine.turn.routes import Route
from hark.engine.turn.stall_timer import StallTimer, patience
from hark.engine.turn.timeline import Timeline
from hark.engine.turn.tokens import estimate
from hark.engine.turn.transcript import Transcript
from hark.engine.turn.turn_io import TurnIO
from hark.protocol.events import Notice, ReasoningDelta, ReplyDelta, ReplyRestarted, RouteChanged
from hark.protocol.messages import Message
from hark.protocol.outcomes import LimitReached
from hark.protocol.provider import (
    BadAddress,
    BadKey,
    BadModel,
    ProviderError,
    QuotaExhausted,
    ReasoningChunk,
    Request,
    TextChunk,
    TransientProviderError,
    Unreachable,
)

Progress = Callable[[bool], None]


@dataclass(frozen=True, slots=True)
class _Wish:
    """What a model is asked: with `is_shown`, the person sees the reply as it comes."""

    span: str
    messages: tuple[Message, ...]
    tokens: int
    is_shown: bool
    memo: dict[object, Any]


class ReplyTooLong(Exception):
    """The model does not stop; the reply so far is kept."""

    def __init__(self, characters: int) -> None:
        super().__init__()
        self.limit = LimitReached("reply_characters", f"The reply has {characters} characters and does not end.")


class ModelCalls:
    """Asks models for a turn. A cancel goes straight through it: it is no error, and changes no route's health."""

    def __init__(self, bench: EngineServices, lines: TurnIO, timeline: Timeline, progress: Progress) -> None:
        """`progress` is called about once a second while text comes; True with the first text of a stream."""
        self.reply = Reply()
        self._bench = bench
        self._lines = lines
        self._timeline = timeline
        self._progress = progress
        self._retries = RetryBudget(bench.jitter)
        self._route: Route | None = None
        self._tried: list[str] = []
        self._chosen = ""
        self._step = 0
        self._time = asyncio.get_running_loop().time
        self._saved_at = self._time()

    def choose(self, chosen: str, last: str) -> Route:
        """Return the turn's route, and tell the person when it is another than the `last` one."""
        if self._route is None:
            self._chosen = chosen
            self._route = self._bench.routes.first(self._lines.turn, chosen)
            self._tried.append(self._route.name)
            if last and last != self._route.name:
                self._tell_change(self._why(self._route.name, last))
        return self._route

    @property
    def route_name(self) -> str:
        """The route that serves; "" when none was needed yet."""
        return self._route.name if self._route else ""

    def let_go(self) -> None:
        """The turn is over; whoever kept its text is let go of too, so that its memory is free at once."""
        self._progress = _nothing
        if self._route is not None:
            self._bench.routes.let_go(self._route, self._lines.turn)

    async def ask(self, step: int, transcript: Transcript) -> Reply:
        """Return a whole reply. Cancelling closes the connection; `reply` has what came of it.

        Raises:
            ProviderError: No route could answer; the text has the last server's own words.
            ReplyTooLong: The model does not stop.
        """
        self._step = step
        self._restart()  # of a reply that was cut for being too long
        messages = tuple(transcript.messages)
        return await self._answer(_Wish("model", messages, transcript.tokens, is_shown=True, memo=transcript.memo))

    async def ask_aside(self, messages: Sequence[Message]) -> Reply:
        """Return a whole reply that nobody is shown and that `reply` knows nothing of; otherwise like `ask`."""
        return await self._answer(_Wish("compaction", tuple(messages), estimate(messages), is_shown=False, memo={}))

    async def _answer(self, wish: _Wish) -> Reply:
        while True:
            route = self._route
            assert route is not None, "choose comes first"
            try:
                with self._timeline.span(wish.span, route.name):
                    reply = await self._stream(route, wish)
            except TransientProviderError as error:
                if not await self._goes_on(route, error):
                    raise  # here: an error that is raised where it was handed in holds itself, and the whole request
            except (BadAddress, BadKey, BadModel, QuotaExhausted) as error:
                if not self._switch(route, error):
                    raise
            else:
                self._bench.routes.succeeded(route)
                self._retries.succeeded()
                return reply
            if wish.is_shown:
                self._restart()

    async def _goes_on(self, route: Route, error: TransientProviderError) -> bool:
        """Wait for another try, or change the route; False when there is neither."""
        can_switch = self._bench.routes.has_other(self._tried)
        # Where nobody answered the last turn either, however long it waited, the settings are wrong, it seems: each
        # turn tries once, so that the person knows at once.
        is_hopeless = isinstance(error, Unreachable) and not self._bench.routes.is_trusted(route)
        pause = None if is_hopeless else self._retries.next_pause(error, can_switch=can_switch)
        if pause is None:
            return self._switch(route, error)
        notice = f"{error}; retry {self._retries.used} in {pause:.1f} s"
        self._lines.fanout.emit(Notice, self._lines.turn, "retry", notice)
        with self._timeline.span("pause", "retry"):
            await self._retries.pause(pause)
        return True

    def _switch(self, route: Route, error: ProviderError) -> bool:
        """Let another route serve the rest of the turn; False when there is none."""
        retry_after = error.retry_after if isinstance(error, TransientProviderError) else None
        self._bench.routes.failed(route, retry_after)
        other = self._bench.routes.after(self._tried, self._lines.turn, self._chosen)
        if other is None:
            return False
        self._route = other
        self._tried.append(other.name)
        self._retries.switched()
        self._tell_change(f"{route.name}: {error}")
        return True

    def _why(self, route: str, last: str) -> str:
        """Return why a turn begins with another route than the last one."""
        names = self._bench.routes.names
        if route == self._chosen:
            return "you chose it"
        if last not in names:
            return f"there is no route {last} any more"
        is_usual = names.index(route) < names.index(last)
        return "it serves again" if is_usual and last != self._chosen else f"{last} failed a short while ago"

    def _tell_change(self, reason: str) -> None:
        assert self._route is not None
        self._lines.fanout.emit(RouteChanged, self._lines.turn, self._route.name, reason)

    def _restart(self) -> None:
        """Take back text that was shown: it comes again."""
        if self.reply.characters:
            self._lines.fanout.emit(ReplyRestarted, self._lines.turn, self._step)

    async def _stream(self, route: Route, wish: _Wish) -> Reply:
        reply = Reply()
        tools = tuple(self._bench.tools.specs) if route.offers_tools else ()
        request = Request(self._bench.system_prompt(), wish.messages, tools, memo=wish.memo)
        watch = StallTimer(patience(route, wish.tokens), self._warn)
        if wish.is_shown:
            self.reply = reply
        async with route.gate or nullcontext():
            await self._lines.prove()
            with watch, self._bench.streams.one():
                await (self._read if wish.is_shown else self._listen)(reply, route, request, watch)
        if reply.end is not None:
            return reply
        if watch.is_stale:
            raise TransientProviderError(f"{route.name} gave no sign of life; its connection was closed", STALE)
        raise TransientProviderError("the reply has no end", "stream_cut")

    async def _listen(self, reply: Reply, route: Route, request: Request, watch: StallTimer) -> None:
        limit = self._bench.rules.limits.reply_characters
        async with aclosing(route.provider.stream(request)) as chunks:
            async for chunk in chunks:
                reply.add(chunk)
                watch.alive()
                if reply.characters > limit:
                    raise ReplyTooLong(reply.characters)

    async def _read(self, reply: Reply, route: Route, request: Request, watch: StallTimer) -> None:
        """The hot path: a chunk in, an event out."""
        limit = self._bench.rules.limits.reply_characters
        emit, turn = self._lines.fanout.emit, self._lines.turn
        is_first = True
        async with aclosing(route.provider.stream(request)) as chunks:
            async for chunk in chunks:
                reply.add(chunk)
                watch.alive()
                if type(chunk) is TextChunk:
                    emit(ReplyDelta, turn, chunk.text)
                    now = self._time()
                    if now - self._saved_at >= self._bench.streams.keep_seconds:
                        self._saved_at = now
                        self._progress(is_first)
                        is_first = False
                elif type(chunk) is ReasoningChunk:
                    emit(ReasoningDelta, turn, chunk.text)
                self._timeline.chunk()
                if reply.characters > limit:
                    raise ReplyTooLong(reply.characters)

    def _warn(self, silent: float, limit: float) -> None:
        text = f"no sign of life for {silent:.0f} s; at {limit:.0f} s the connection is closed and asked for once more"
        self._lines.fanout.emit(Notice, self._lines.turn, "silence", text)


def _nothing(is_first: bool) -> None:
    """Keep no text: there is none to come."""
