"""One step: streams a reply from a route, and runs its calls."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec import structs

from hark.engine.services import EngineServices
from hark.engine.session.journal_writer import JournalWriter
from hark.engine.turn.calls import CallRunner
from hark.engine.turn.compaction import KEEP_SHARE, MIN_SUMMARISED_SHARE, count_to_summarise, is_full, summarise
from hark.engine.turn.gate import normalize_call
from hark.engine.turn.limits import PriorUsage, UsageMeter
from hark.engine.turn.model_calls import ModelCalls
from hark.engine.turn.reply import ReplyBuilder
from hark.engine.turn.routes import Route
from hark.engine.turn.timeline import Timeline
from hark.engine.turn.turn_io import TurnIO
from hark.protocol.events import Notice, StepStart
from hark.protocol.messages import AssistantMessage
from hark.protocol.provider import ContextTooLong, ProviderError
from hark.protocol.records import Compacted, Replied, ReplyTextSaved, Steered
from hark.text.status_text import format_call_title

MIN_PAUSE_MS = 10.0  # shorter waits are not shown in the timeline


@dataclass(frozen=True, slots=True)
class LiveTurn:
    """The parts of a running turn that are not in the journal yet: its route, reply text, and output of open calls."""

    route: str = ""
    text: str = ""
    outputs: Mapping[str, str] = field(default_factory=dict[str, str])


class StepRunner:
    """Runs a turn's steps one at a time. After an interrupt, `partial_record` returns the partial reply."""

    def __init__(self, services: EngineServices, journal: JournalWriter, io: TurnIO, timeline: Timeline) -> None:
        self.meter = UsageMeter(services.rules.limits)
        self.calls = CallRunner(services, journal, io, timeline)
        self._services = services
        self._journal = journal
        self._io = io
        self._timeline = timeline
        self._model_calls = ModelCalls(services, io, timeline, self.meter, self._save_progress)
        self._number = 0
        self._saved_pieces_count = 0
        self._may_compact = True

    @property
    def live(self) -> LiveTurn:
        """The parts of the turn that are not in the journal yet."""
        return LiveTurn(self._model_calls.route_name, self._model_calls.reply.text, self.calls.outputs)

    @property
    def last_event_at(self) -> float:
        """The loop time of the last event from the model or a tool."""
        return max(self._io.last_event_at, self._model_calls.last_data_at)

    def describe_wait(self) -> str:
        """Return a clause that names the awaited calls or route."""
        calls = [format_call_title(call.name, call.arguments) for call in self.calls.running]
        if calls:
            return f"the turn is waiting for {', '.join(calls)}"
        return f"the turn is waiting for a reply from {self._model_calls.route_name or 'the model'}"

    def retry(self) -> None:
        """Send the current model request again, or cancel the running calls so that the model can try again."""
        if self.calls.running:
            self.calls.cancel("cancelled by the user after a long silence; check its effect, then try again")
        else:
            self._model_calls.retry()

    async def load_prior_usage(self) -> None:
        """Load the prior usage that counts towards the limits."""
        has_day_limit = self._services.rules.limits.day_cost_usd is not None
        day_cost = await self._services.spending.cost_today() if has_day_limit else 0.0
        state = self._journal.state
        self.meter.set_prior_usage(PriorUsage(state.tokens, state.cost, day_cost))

    async def run(self, number: int) -> AssistantMessage:
        """Wait for tools, accept pending steers, ask the model, run the calls of its reply, and return the reply.

        Cancelling closes the connection and ends the calls; `partial_record` then returns the partial reply.
        """
        self._number = number
        self._io.mark_event()
        await self._wait_for_tools()
        await self._accept_steers()
        self._io.fanout.emit(StepStart, self._io.turn, number)
        await self._compact_if_full()
        await self._accept_steers()  # steers that arrived during the compaction
        reply = await self._ask_model()
        route = self._choose_route()  # a retry may have switched the route
        message = reply.finish(self._journal.state.call_ids, self._services.clock.new_id)
        message = structs.replace(
            message, calls=tuple(normalize_call(self._services.tools, call) for call in message.calls)
        )
        recorded = self._journal.append(self._reply_record(message, reply, route.name))
        self._model_calls.reply = ReplyBuilder()
        if message.calls:
            await recorded
            await self.calls.run(message.calls, self._number)
        return message

    async def compact(self, keep_tokens: float = 0.0, min_tokens: float = 0.0, instructions: str = "") -> str:
        """Replace all but `keep_tokens` tokens of older messages with a summary. Return a sentence about the result.

        The summary is written as one record when it is complete, so an interruption loses nothing.

        Raises:
            ProviderError: The model could not summarise.
        """
        self._choose_route()
        messages = self._journal.state.transcript.messages
        count = count_to_summarise(messages, keep_tokens, min_tokens)
        if not count:
            return "No messages are old enough to summarise."
        turn = self._io.turn
        self._io.fanout.emit(Notice, turn, "compaction", f"Summarising {count} older messages.")
        summary = await summarise(self._model_calls.ask_hidden, messages[:count], instructions)
        await self._journal.append(Compacted(turn=turn, summary=summary, count=count, at=self._services.clock.now()))
        done = f"Summarised {count} older messages in {len(summary)} characters."
        self._io.fanout.emit(Notice, turn, "compaction", done)
        return done

    def partial_record(self, shown: int | None) -> Replied | None:
        """Return the record of an interrupted reply, or None if no part of the reply was shown."""
        reply, self._model_calls.reply = self._model_calls.reply, ReplyBuilder()
        message = reply.partial(shown)
        return self._reply_record(message, reply, self._model_calls.route_name) if message.text else None

    def release(self) -> None:
        """Release the route at the turn's end, so that another turn may try it."""
        self._model_calls.release()

    async def _wait_for_tools(self) -> None:
        """Wait for MCP servers that are starting. The wait is a pause in the timeline, also if it is interrupted."""
        start = self._timeline.elapsed_ms()
        try:
            await self._services.tools.wait_until_ready(self._io.session, self._publish_tool_notice)
        finally:
            if self._timeline.elapsed_ms() - start > MIN_PAUSE_MS:
                self._timeline.add_span("pause", "tools", start)

    def _publish_tool_notice(self, text: str) -> None:
        self._io.fanout.emit(Notice, self._io.turn, "mcp", text)

    async def _accept_steers(self) -> None:
        messages = tuple(self._journal.state.pending_steers())
        self._io.steering.clear()
        if messages:
            record = Steered(turn=self._io.turn, step=self._number, messages=messages, at=self._services.clock.now())
            await self._journal.append(record)

    def _choose_route(self) -> Route:
        return self._model_calls.choose_route(self._journal.state.chosen_route, self._journal.state.last_route)

    async def _compact_if_full(self) -> None:
        """Compact the context if it is nearly full. A failure only causes a notice, because the context still has room.

        Skipped if the route failed the last time, so that the user waits for its error only once.
        """
        route = self._choose_route()
        window = route.context_tokens
        if window is None or not self._may_compact or not is_full(self._journal.state.transcript.tokens, window):
            return
        if not self._services.routes.is_healthy(route):
            return
        try:
            await self.compact(window * KEEP_SHARE, window * MIN_SUMMARISED_SHARE)
        except ProviderError as error:
            self._may_compact = False
            self._io.fanout.emit(Notice, self._io.turn, "compaction", f"Could not summarise older messages: {error}")

    async def _ask_model(self) -> ReplyBuilder:
        """Ask for a reply. If the server finds the context too long, compact once and ask again."""
        transcript = self._journal.state.transcript
        self._saved_pieces_count = 0
        try:
            return await self._model_calls.ask(self._number, transcript)
        except ContextTooLong:
            before = transcript.messages
            await self.compact(transcript.tokens * KEEP_SHARE)
            if transcript.messages is before:
                raise
        await self._accept_steers()
        return await self._model_calls.ask(self._number, transcript)

    def _save_progress(self, is_first: bool) -> None:
        """Save the shown text periodically, so that a crash loses little of it. Does not wait."""
        if is_first:
            self._saved_pieces_count = 0
        text, self._saved_pieces_count = self._model_calls.reply.text_since(self._saved_pieces_count)
        turn, at = self._io.turn, self._services.clock.now()
        self._journal.append_soon(ReplyTextSaved(turn=turn, step=self._number, text=text, is_first=is_first, at=at))

    def _reply_record(self, message: AssistantMessage, reply: ReplyBuilder, route: str) -> Replied:
        at = self._services.clock.now()
        return Replied(turn=self._io.turn, step=self._number, message=message, route=route, usage=reply.usage, at=at)
