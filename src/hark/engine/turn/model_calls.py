"""Gets one reply from a model: chooses the route, retries where that helps, and otherwise switches the route."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import dataclass
from typing import Any

import anyio

from hark.engine.services import EngineServices
from hark.engine.turn.limits import UsageMeter
from hark.engine.turn.reply import ReplyBuilder
from hark.engine.turn.retry import RETRIES_PER_TURN, STALE, RetryBudget
from hark.engine.turn.routes import Route, recovery_signal_after
from hark.engine.turn.stall_timer import StallTimer, stall_limits
from hark.engine.turn.timeline import Timeline
from hark.engine.turn.tokens import estimate_total_tokens
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
)

SaveProgress = Callable[[bool], None]


@dataclass(frozen=True, slots=True)
class _ModelRequest:
    """A request to a model. With `is_shown`, the reply is shown to the user as it streams."""

    span: str
    messages: tuple[Message, ...]
    tokens: int
    is_shown: bool
    memo: dict[object, Any]


class ReplyTooLong(Exception):
    """The reply exceeds the length limit. The text so far is kept."""

    def __init__(self, characters: int) -> None:
        super().__init__()
        self.limit = LimitReached("reply_characters", f"Reply limit reached ({characters} characters).")


class ModelCalls:
    """Sends a turn's requests to models. A cancellation propagates and doesn't affect any route's health."""

    def __init__(
        self,
        services: EngineServices,
        io: TurnIO,
        timeline: Timeline,
        meter: UsageMeter,
        save_progress: SaveProgress,
    ) -> None:
        """`save_progress` is called about once a second while text arrives, with True at the start of a stream."""
        self.reply = ReplyBuilder()
        self._services = services
        self._io = io
        self._timeline = timeline
        self._meter = meter
        self._save_progress = save_progress
        self._retries = RetryBudget(services.jitter)
        self._route: Route | None = None
        self._was_broken = False  # the route had failed before this turn used it
        self._tried: list[str] = []
        self._chosen = ""
        self._step = 0
        self._time = asyncio.get_running_loop().time
        self._saved_at = self._time()
        self._attempt: anyio.CancelScope | None = None
        self._stall_timer: StallTimer | None = None

    def choose_route(self, chosen: str, last: str) -> Route:
        """Return the turn's route. Publish an event if it differs from the `last` route."""
        if self._route is None:
            self._chosen = chosen
            route = self._use_route(self._services.routes.choose(self._io.turn, chosen))
            if last and last != route.name:
                self._publish_route_change(self._change_reason(route.name, last))
            return route
        return self._route

    @property
    def route_name(self) -> str:
        """The name of the current route, or "" if no route was chosen yet."""
        return self._route.name if self._route else ""

    @property
    def last_data_at(self) -> float:
        """The loop time at which the model's data last arrived, or 0."""
        return self._stall_timer.last_data_at if self._stall_timer else 0.0

    def retry(self) -> None:
        """Close the current request and send it again. No route's health changes."""
        if self._attempt is not None:
            self._attempt.cancel()

    def release(self) -> None:
        """Release the route and the callback at the turn's end. The callback's memory is freed immediately."""
        self._save_progress = _ignore_progress
        if self._route is not None:
            self._services.routes.release_trial(self._route, self._io.turn)

    async def ask(self, step: int, transcript: Transcript) -> ReplyBuilder:
        """Return a complete reply. Cancelling closes the connection; `reply` has the text received so far.

        Raises:
            ProviderError: No route could answer; the text quotes the last server's error.
            ReplyTooLong: The reply exceeds the length limit.
        """
        self._step = step
        self._publish_restart()  # discards text of a request that was too long
        messages = tuple(transcript.messages)
        return await self._request_reply(
            _ModelRequest("model", messages, transcript.tokens, is_shown=True, memo=transcript.memo)
        )

    async def ask_hidden(self, messages: Sequence[Message]) -> ReplyBuilder:
        """Like `ask`, but the reply is not shown to the user and not stored in `reply`."""
        return await self._request_reply(
            _ModelRequest("compaction", tuple(messages), estimate_total_tokens(messages), is_shown=False, memo={})
        )

    async def _request_reply(self, request: _ModelRequest) -> ReplyBuilder:
        while True:
            route = self._route
            assert route is not None, "choose_route must be called first"
            reply: ReplyBuilder | None = None
            try:
                with anyio.CancelScope() as self._attempt, self._timeline.span(request.span, route.name):
                    reply = await self._stream(route, request)
            except TransientProviderError as error:
                if not await self._retry_or_switch(route, error):
                    # raised here, because elsewhere it would create a reference cycle that keeps the request in
                    # memory
                    raise
            except (BadAddress, BadKey, BadModel, QuotaExhausted) as error:
                if not self._switch_route(route, error):
                    raise
            if reply is not None:
                self._services.routes.record_success(route)
                self._retries.record_success()
                return reply
            if request.is_shown:
                self._publish_restart()

    async def _retry_or_switch(self, route: Route, error: TransientProviderError) -> bool:
        """Wait for a retry, or switch the route. Return False if neither is possible."""
        can_switch = self._services.routes.has_untried_route(self._tried)
        # A route that failed in an earlier turn and has not recovered is tried once, so that the user sees the error
        # immediately. A turn that started on a working route keeps its retries when another turn fails.
        fails_fast = self._was_broken and not self._services.routes.is_healthy(route)
        pause = None if fails_fast else self._retries.next_pause(error, can_switch=can_switch)
        if pause is None:
            return self._switch_route(route, error)
        notice = f"{str(error).rstrip('.')}. Retrying in {pause:.1f} s ({self._retries.used} of {RETRIES_PER_TURN})"
        self._io.fanout.emit(Notice, self._io.turn, "retry", notice)
        with self._timeline.span("pause", "retry"):
            await self._retries.pause(pause)
        return True

    def _switch_route(self, route: Route, error: ProviderError) -> bool:
        """Switch to another route for the rest of the turn. Return False if no other route is available."""
        retry_after = error.retry_after if isinstance(error, TransientProviderError) else None
        self._services.routes.record_failure(route, retry_after, recovery_signal_after(error))
        next_route = self._services.routes.choose_next(self._tried, self._io.turn, self._chosen)
        if next_route is None:
            return False
        self._use_route(next_route)
        self._retries.record_switch()
        self._publish_route_change(f"{route.name} failed: {error}")
        return True

    def _use_route(self, route: Route) -> Route:
        self._route = route
        self._was_broken = not self._services.routes.is_healthy(route)
        self._tried.append(route.name)
        return route

    def _change_reason(self, route: str, last: str) -> str:
        """Return why a turn starts with a different route than the last turn."""
        names = self._services.routes.names
        if route == self._chosen:
            return "you chose it"
        if last not in names:
            return f"the route {last} no longer exists"
        is_preferred = names.index(route) < names.index(last)
        return "it is available again" if is_preferred and last != self._chosen else f"{last} failed recently"

    def _publish_route_change(self, reason: str) -> None:
        assert self._route is not None
        self._io.fanout.emit(RouteChanged, self._io.turn, self._route.name, reason)

    def _publish_restart(self) -> None:
        """Ask the readers to discard the shown text, because the reply is being restarted."""
        if self.reply.characters:
            self._io.fanout.emit(ReplyRestarted, self._io.turn, self._step)

    async def _stream(self, route: Route, model_request: _ModelRequest) -> ReplyBuilder:
        reply = ReplyBuilder()
        tools = tuple(self._services.tools.specs) if route.offers_tools else ()
        request = Request(self._services.system_prompt(), model_request.messages, tools, memo=model_request.memo)
        stall_timer = self._stall_timer = StallTimer(
            stall_limits(route, model_request.tokens), self._publish_stall_warning
        )
        if model_request.is_shown:
            self.reply = reply
        async with route.limiter or nullcontext():
            await self._io.verify_ownership()
            try:
                with stall_timer, self._services.stream_counter.count_stream():
                    await (self._read_shown if model_request.is_shown else self._read_hidden)(
                        reply, route, request, stall_timer
                    )
            finally:
                self._meter.add(reply.usage, route)  # a reply that is cancelled or fails costs money too
        if reply.end is not None:
            return reply
        if stall_timer.is_stale:
            raise TransientProviderError(f"{route.name} sent no data for too long; the connection was closed", STALE)
        raise TransientProviderError("the stream ended before the reply was complete", "stream_cut")

    async def _read_hidden(self, reply: ReplyBuilder, route: Route, request: Request, stall_timer: StallTimer) -> None:
        limit = self._services.rules.limits.reply_characters
        async with aclosing(route.provider.stream(request)) as chunks:
            async for chunk in chunks:
                reply.add(chunk)
                stall_timer.record_data()
                if reply.characters > limit:
                    raise ProviderError(f"The summary exceeds {limit} characters.", code="no_summary")

    async def _read_shown(self, reply: ReplyBuilder, route: Route, request: Request, stall_timer: StallTimer) -> None:
        """Read the chunks and publish an event for each chunk. This is the hot path."""
        limit = self._services.rules.limits.reply_characters
        emit, turn = self._io.fanout.emit, self._io.turn
        is_first = True
        async with aclosing(route.provider.stream(request)) as chunks:
            async for chunk in chunks:
                reply.add(chunk)
                stall_timer.record_data()
                if type(chunk) is TextChunk:
                    emit(ReplyDelta, turn, chunk.text)
                    now = self._time()
                    if now - self._saved_at >= self._services.stream_counter.save_interval_seconds:
                        self._saved_at = now
                        self._save_progress(is_first)
                        is_first = False
                elif type(chunk) is ReasoningChunk:
                    emit(ReasoningDelta, turn, chunk.text)
                self._timeline.mark_first_chunk()
                if reply.characters > limit:
                    raise ReplyTooLong(reply.characters)

    def _publish_stall_warning(self, silent: float, limit: float) -> None:
        text = f"No data for {silent:.0f} s. After {limit:.0f} s the connection is closed and the request retried."
        self._io.fanout.emit(Notice, self._io.turn, "silence", text)


def _ignore_progress(is_first: bool) -> None:
    """Do nothing. Replaces the progress callback after the turn has ended."""
