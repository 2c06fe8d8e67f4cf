"""One step: a reply is streamed from a route, and its calls are run."""

from hark.engine.services import EngineServices
from hark.engine.session.log import Log
from hark.engine.turn.calls import Calls
from hark.engine.turn.compaction import KEPT_SHARE, LEAST_SHARE, is_full, split, summarise
from hark.engine.turn.limits import Meter, PriorUsage
from hark.engine.turn.model_calls import ModelCalls
from hark.engine.turn.reply import Reply
from hark.engine.turn.routes import Route
from hark.engine.turn.timeline import Timeline
from hark.engine.turn.turn_io import TurnIO
from hark.protocol.events import Notice, StepStart
from hark.protocol.messages import AssistantMessage
from hark.protocol.provider import ContextTooLong, ProviderError
from hark.protocol.records import Compacted, Progress, Replied, Steered


class Steps:
    """Runs a turn's steps, one at a time; after a cut it knows what the model had said."""

    def __init__(self, bench: EngineServices, log: Log, lines: TurnIO, timeline: Timeline) -> None:
        self.meter = Meter(bench.rules.limits)
        self.calls = Calls(bench, log, lines, timeline)
        self._bench = bench
        self._log = log
        self._lines = lines
        self._timeline = timeline
        self._asking = ModelCalls(bench, lines, timeline, self._save_progress)
        self._number = 0
        self._saved_pieces = 0
        self._may_compact = True

    async def begin(self) -> None:
        """Find out what tools there are, and what was used before this turn, as far as there is a limit for it."""
        await self._bench.tools.ready()
        has_day = self._bench.rules.limits.day_cost_usd is not None
        day_cost = await self._bench.spending.today() if has_day else 0.0
        state = self._log.state
        self.meter.begin(PriorUsage(state.tokens, state.cost, day_cost))

    async def run(self, number: int) -> AssistantMessage:
        """Take waiting steers, ask the model, run the calls of its reply; return the reply.

        Cancelling closes the connection, ends the calls and leaves `partial` to be recorded.
        """
        self._number = number
        await self._take_steers()
        self._lines.fanout.emit(StepStart, self._lines.turn, number)
        await self._make_room()
        reply = await self._ask()
        route = self._choose_route()  # it may have changed on the way
        self.meter.add(reply.usage, route)
        message = reply.whole(self._log.state.call_ids, self._bench.clock.new_id)
        recorded = self._log.append(self._record(message, reply, route.name))
        self._asking.reply = Reply()
        if message.calls:
            await recorded
            await self.calls.run(message.calls, self._number)
        return message

    async def compact(self, room: float = 0.0, least: float = 0.0, instructions: str = "") -> str:
        """Put a summary in the place of what is old, all but `room` tokens; return what was done.

        It is one record, written when the summary is whole: a cut loses neither messages nor summary.

        Raises:
            ProviderError: The model could not summarise.
        """
        self._choose_route()
        messages = self._log.state.transcript.messages
        count = split(messages, room, least)
        if not count:
            return "There is nothing old enough to summarise."
        turn = self._lines.turn
        self._lines.fanout.emit(Notice, turn, "compaction", f"{count} older messages are being summarised")
        summary, reply = await summarise(self._asking.ask_aside, messages[:count], instructions)
        self.meter.add(reply.usage, self._choose_route())
        await self._log.append(Compacted(turn=turn, summary=summary, count=count, at=self._bench.clock.now()))
        done = f"{count} older messages became a summary of {len(summary)} characters."
        self._lines.fanout.emit(Notice, turn, "compaction", done)
        return done

    def partial(self, shown: int | None) -> Replied | None:
        """Return the record of a reply that was cut, if there is anything of it to keep."""
        reply, self._asking.reply = self._asking.reply, Reply()
        message = reply.partial(shown)
        return self._record(message, reply, self._asking.route_name) if message.text else None

    def let_go(self) -> None:
        """The turn is over: its route is free for another's try."""
        self._asking.let_go()

    async def _take_steers(self) -> None:
        messages = tuple(self._log.state.steers())
        self._lines.steering.clear()
        if messages:
            record = Steered(turn=self._lines.turn, step=self._number, messages=messages, at=self._bench.clock.now())
            await self._log.append(record)

    def _choose_route(self) -> Route:
        return self._asking.choose(self._log.state.chosen_route, self._log.state.last_route)

    async def _make_room(self) -> None:
        """Summarise before the context is full. There still is room, so a failure is told and ends nothing.

        A route that failed the last time is asked for the reply alone: whoever waits for its error waits once.
        """
        route = self._choose_route()
        window = route.context_tokens
        if window is None or not self._may_compact or not is_full(self._log.state.transcript.tokens, window):
            return
        if not self._bench.routes.is_trusted(route):
            return
        try:
            await self.compact(window * KEPT_SHARE, window * LEAST_SHARE)
        except ProviderError as error:
            self._may_compact = False
            self._lines.fanout.emit(Notice, self._lines.turn, "compaction", f"nothing was summarised: {error}")

    async def _ask(self) -> Reply:
        """Ask for a reply; when the server finds the context too long, make room once and ask again."""
        transcript = self._log.state.transcript
        self._saved_pieces = 0
        try:
            return await self._asking.ask(self._number, transcript)
        except ContextTooLong:
            before = len(transcript.messages)
            await self.compact(transcript.tokens * KEPT_SHARE)
            if len(transcript.messages) == before:
                raise
        return await self._asking.ask(self._number, transcript)

    def _save_progress(self, is_first: bool) -> None:
        """Keep the text that people see now and then, so that a crash does not lose it. Waits for nothing."""
        if is_first:
            self._saved_pieces = 0
        text, self._saved_pieces = self._asking.reply.text_from(self._saved_pieces)
        turn, at = self._lines.turn, self._bench.clock.now()
        self._log.append_soon(Progress(turn=turn, step=self._number, text=text, is_first=is_first, at=at))

    def _record(self, message: AssistantMessage, reply: Reply, route: str) -> Replied:
        at = self._bench.clock.now()
        return Replied(turn=self._lines.turn, step=self._number, message=message, route=route, usage=reply.usage, at=at)
