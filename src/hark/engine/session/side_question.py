"""Side questions: requests to the model next to the running turn, without tools or a trace in the transcript."""

import asyncio
import logging
from collections.abc import Awaitable, Coroutine
from contextlib import aclosing, nullcontext
from typing import Any

import anyio

from hark.engine.services import EngineServices
from hark.engine.session.state import SessionState
from hark.engine.turn.limits import PriorUsage, UsageMeter
from hark.engine.turn.reply import ReplyBuilder
from hark.engine.turn.routes import Route
from hark.engine.turn.stall_timer import StallTimer, stall_limits
from hark.engine.turn.step import LiveTurn
from hark.protocol.commands import RecordUsage
from hark.protocol.messages import AssistantMessage, CallResult, Effect, Message, Note
from hark.protocol.provider import ProviderError, Request

STOPPED = "The side question was stopped."
OUTPUT_CHARACTERS = 4_000
CLOSE_SECONDS = 1.0
INSTRUCTIONS = (
    "[The user asks a side question. Answer it briefly in text, from the conversation so far. Call no tool. Your work "
    "continues afterwards as if the question had not been asked.]"
)
LOG = logging.getLogger(__name__)


class SideQuestions:
    """A session's open side questions. Stopping them doesn't affect the turn, the queue or a route's health."""

    def __init__(self) -> None:
        self._scopes: list[anyio.CancelScope] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, answer: Awaitable[str]) -> str:
        """Return the answer, or a sentence if the question is stopped first."""
        with anyio.CancelScope() as scope:
            self._scopes.append(scope)
            try:
                return await answer
            except Exception as error:  # the boundary of a side question: nothing else may fail with it
                LOG.exception("a side question failed")
                return f"No answer: {error}"
            finally:
                self._scopes.remove(scope)
        return STOPPED

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work`, which asks and publishes a side question, in a task that ends before the session does."""
        task = asyncio.create_task(work, name="side question")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self) -> bool:
        """Stop all open side questions. Return False if none was open."""
        for scope in self._scopes:
            scope.cancel()
        return bool(self._scopes)

    async def close(self) -> None:
        """Stop all side questions and wait until their tasks have ended."""
        self.stop()
        if self._tasks:
            await asyncio.wait(self._tasks)


class SideRequest:
    """One request for the answer to a side question, with the context of the session as of now."""

    def __init__(self, services: EngineServices, state: SessionState, live: LiveTurn) -> None:
        self._services = services
        self._prior = state.tokens, state.cost
        self._messages = _context_messages(state, live)
        self._tokens = state.transcript.tokens
        self._route = services.routes.find_usable(live.route, state.chosen_route, state.last_route)
        self._reply = ReplyBuilder()

    async def ask(self, question: str) -> str:
        """Return the answer, or a sentence that says why there is none. Cancelling closes the connection."""
        limit = UsageMeter(self._services.rules.limits)
        limit.set_prior_usage(PriorUsage(*self._prior, await self._services.spending.cost_today()))
        if reached := limit.check_limits(1):
            return f"Not asked. {reached.message}"
        route = self._route
        tools = tuple(self._services.tools.specs) if route.offers_tools else ()
        messages = (*self._messages, Note(f"{INSTRUCTIONS}\n\n{question}"))
        request = Request(self._services.system_prompt(), messages, tools, memo={}, may_call=False)
        try:
            await self._read(route, request)
        except ProviderError as error:
            return f"No answer: {error}"
        if self._reply.end is None:
            return f"No answer: {route.name} closed the connection or sent no data for too long."
        return self._reply.text.strip() or "No answer: the model tried to call a tool. Ask again after the turn."

    def usage_command(self, command_id: str) -> RecordUsage | None:
        """Return the command that counts the usage, or None if the server reported none."""
        meter = UsageMeter(self._services.rules.limits)
        meter.add(self._reply.usage, self._route)
        usage = meter.usage
        has_usage = bool(usage.input_tokens or usage.output_tokens)
        return RecordUsage(command_id, self._route.name, usage, meter.cost) if has_usage else None

    async def _read(self, route: Route, request: Request) -> None:
        limit = self._services.rules.limits.reply_characters
        timer = StallTimer(stall_limits(route, self._tokens), lambda silent, limit: None)
        async with route.limiter or nullcontext():
            with timer:
                async with aclosing(route.provider.stream(request)) as chunks:
                    async for chunk in chunks:
                        self._reply.add(chunk)
                        timer.record_data()
                        if self._reply.characters > limit:
                            raise ProviderError(f"the answer exceeds {limit} characters")


def _context_messages(state: SessionState, live: LiveTurn) -> list[Message]:
    """Return the transcript as of now. Open calls get a provisional result, so that every API accepts it."""
    messages = list(state.transcript.messages)
    turn = state.turn
    if turn is None:
        return messages
    for call in turn.calls.values():
        text = "[This call has not started yet.]"
        if call.id in turn.started:
            output = live.outputs.get(call.id, "")[-OUTPUT_CHARACTERS:]
            text = f"[This call is still running.{' Its output so far:' if output else ''}]\n{output}".rstrip()
        messages.append(CallResult(call.id, call.name, text, Effect.UNKNOWN))
    partial = live.text or turn.progress
    if partial.strip():
        messages.append(AssistantMessage(partial, is_partial=True))
    return messages
