"""One server, supervised: started when it is wanted, tried again when it fails, given up when it goes on failing."""

import asyncio
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio

from hark.mcp.failures import RetryPolicy, ServerFailure
from hark.mcp.offers import OfferCache, RemoteTool, ServerOffer, ServerState, ServerStatus
from hark.mcp.requests import Errand, Lost, Wish
from hark.mcp.server_context import ServerPlace
from hark.mcp.settings import Start
from hark.processes.process_table import ProcessActivity
from hark.protocol.messages import Effect
from hark.protocol.tool import CallContext, ToolOutput

if TYPE_CHECKING:
    from hark.mcp.connection import McpConnection

ROOM_SECONDS = 10.0

ConnectResult = asyncio.Future["McpConnection | ServerFailure"]


class McpServer:
    """A server of the app. `run` owns all that it starts; calls come from other tasks, and hold nothing of it.

    `settled` is set when it is connected, has failed once, is known from the last time, or is not waited for.
    """

    def __init__(
        self,
        place: ServerPlace,
        policy: RetryPolicy,
        notice: Callable[[str], None],
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """`notice` gets lines for a person; `changed` is called when another offer is made."""
        self.name = place.name
        self.settings = place.settings
        self.settled = asyncio.Event()
        self._place = place
        self._policy = policy
        self._backoff = policy.backoff()
        self._notice = notice
        self._changed = changed
        self._cache = OfferCache(place.places.cache / f"{place.name}.json", place.settings)
        self._offer = self._cache.load()
        self._state = ServerState.IDLE if place.settings.enabled else ServerState.DISABLED
        self._moved = asyncio.Event()
        self._connection: McpConnection | None = None
        self._starting: McpConnection | None = None
        self._activity: ProcessActivity | None = None
        self._result: ConnectResult = asyncio.get_running_loop().create_future()
        self._wanted = asyncio.Event()
        self._failures = 0
        self._lives = 0
        self._up_at: float | None = None
        self._has_worked = False
        self._rests_until = 0.0
        self._last_error = ""
        self._requests = 0
        self._is_unused = asyncio.Event()
        self._is_unused.set()
        if self._offer is not None or not place.settings.enabled or self._cache.was_late():
            self.settled.set()

    @property
    def offer(self) -> ServerOffer | None:
        """What it offers as far as is known; None when nothing is."""
        return self._offer if self.settings.enabled else None

    @property
    def tools(self) -> list[RemoteTool]:
        """The tools that the settings let through."""
        return [tool for tool in self.offer.tools if self.settings.is_offered(tool.name)] if self.offer else []

    @property
    def status(self) -> ServerStatus:
        """How it stands."""
        return ServerStatus(
            name=self.name,
            state=self._state,
            tools=tuple(tool.name for tool in self.tools),
            pid=self._connection.link.pid if self._connection else None,
            restarts=max(0, self._lives - 1),
            last_error=self._last_error,
        )

    async def unused(self) -> None:
        """Return when nothing that was asked of it is under way. Safe to cancel."""
        await self._is_unused.wait()

    def has_progressed(self) -> bool:
        """Return whether a server that starts has worked since the last call; loading the SDK is work, too."""
        if self._starting is None:
            return True
        pid = self._starting.link.pid
        if pid is None:
            return False
        if self._activity is None or self._activity.session != pid:
            self._activity = ProcessActivity(pid)
        return self._activity.has_progressed()

    def give_up_waiting(self) -> None:
        """Nobody waits for it any more, at the next start neither, until it has told what it offers."""
        self.settled.set()
        if self._offer is None:
            self._cache.save(None)

    async def reached(self, *states: ServerState) -> None:
        """Return when it stands like that. Safe to cancel."""
        while self._state not in states:
            await self._moved.wait()

    async def run(self) -> None:
        """Keep it alive until cancelled; then it is ended whole, in less than a second."""
        try:
            if self._offer is not None and self.settings.start is Start.LAZY:
                await self._wanted.wait()
            while True:
                await self._run_once()
        finally:
            self._move(ServerState.IDLE)
            self._connection = None
            self._renew_result()
            self._give(ServerFailure("Hark is ending"))

    async def request(self, wish: Wish, context: CallContext) -> ToolOutput:
        """Have a wish done, waiting for the server when it is on its way up. Cancelling withdraws it at once."""
        self._requests += 1
        self._is_unused.clear()
        try:
            return await self._done(wish, context)
        finally:
            self._requests -= 1
            if not self._requests:
                self._is_unused.set()

    async def _done(self, wish: Wish, context: CallContext) -> ToolOutput:
        for is_last in (False, True):
            try:
                connection = await self._connected()
            except ServerFailure as failure:
                return self._unusable(str(failure))
            errand = Errand(wish, context)
            connection.begin(errand)
            match await errand.outcome():
                case Lost(why, is_untouched=True) if is_last:
                    return self._unusable(why)
                case Lost(is_untouched=True):
                    continue  # safe to do again: the server never saw it
                case Lost(why):
                    return self._ended(why)
                case ToolOutput() as output:
                    return output
        raise AssertionError("the last round always returns")

    # What the connection tells:

    def is_up(self, connection: "McpConnection") -> None:
        """It can take errands from now on."""
        self._connection = connection
        self._move(ServerState.CONNECTED)
        self._up_at = anyio.current_time()
        self.settled.set()
        self._give(connection)

    def is_down(self) -> None:
        """It takes no more errands: who comes now waits for its next life."""
        self._connection = None
        self._renew_result()
        self._move(ServerState.WAITING)

    def offers(self, offer: ServerOffer) -> None:
        """This is what the server offers now."""
        if offer != self._offer or self._cache.was_late():
            self._offer = offer
            self._cache.save(offer)
            self._changed()

    def has_answered(self) -> None:
        """An errand was done: the server works."""
        self._has_worked = True

    def _give(self, result: "McpConnection | ServerFailure") -> None:
        if not self._result.done():
            self._result.set_result(result)

    def _renew_result(self) -> None:
        # Who waits for the old one goes on waiting: it is given when the next try ends.
        if self._result.done():
            self._result = asyncio.get_running_loop().create_future()

    def _move(self, state: ServerState) -> None:
        self._state = state
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    def _wants_login(self, page: str) -> None:
        self._last_error = f"a person has to log in first, on this machine: {page}"
        self.settled.set()
        self._move(ServerState.LOGIN)
        self._give(ServerFailure(self._last_error))
        self._notice(f"The MCP server {self.name} wants you to log in. Open this page: {page}")

    async def _connected(self) -> "McpConnection":
        if self._connection is not None:
            return self._connection
        if self._state is ServerState.LOGIN:
            raise ServerFailure(self._last_error)
        if self._state is ServerState.PARKED and anyio.current_time() < self._rests_until:
            raise ServerFailure(f"{self._last_error} (tried a moment ago)")
        self._wanted.set()
        seconds = self.settings.start_seconds + ROOM_SECONDS
        try:
            with anyio.fail_after(seconds):
                result = await asyncio.shield(self._result)  # many may wait for it
        except TimeoutError:
            raise ServerFailure(f"it was not there within {seconds:g} s") from None
        if isinstance(result, ServerFailure):
            raise result
        return result

    def _unusable(self, why: str) -> ToolOutput:
        advice = f"`hark mcp test {self.name}` tells more, and what it printed is in {self._place.log.file}"
        text = f"The MCP server {self.name} can't be used: {why}. Go on without it; {advice}."
        return ToolOutput(text, is_error=True, effect=Effect.NOT_STARTED)

    def _ended(self, why: str) -> ToolOutput:
        text = f"The MCP server {self.name} ended while the call was under way ({why}); it is started again."
        return ToolOutput(f"{text} What the call did is unknown.", is_error=True, effect=Effect.UNKNOWN)

    async def _run_once(self) -> None:
        """One life, and the wait after it."""
        self._move(ServerState.CONNECTING)
        self._wanted.clear()
        self._lives += 1
        self._up_at, self._has_worked = None, False
        failure = await self._live()
        failure.args = (self._place.log.cleaned(str(failure)),)  # a server may repeat what it was sent
        self._last_error = str(failure)
        self._place.log.note(f"ended: {failure}")
        was_steady = self._up_at is not None and anyio.current_time() - self._up_at > self._policy.steady_seconds
        if was_steady or self._has_worked:
            self._failures = 0
            self._backoff.reset()
        self._failures += 1
        is_given_up = failure.is_final or self._failures >= self._policy.tries
        self._move(ServerState.PARKED if is_given_up else ServerState.WAITING)
        if self._up_at is None or is_given_up:
            self._give(failure)
            self._renew_result()
        self.settled.set()
        if not is_given_up:
            await anyio.sleep(self._backoff.next_delay())
            return
        if failure.is_final or self._failures == self._policy.tries:
            self._notice(f"The MCP server {self.name} is given up: {failure}. A call to it tries again.")
        else:
            self._rests_until = anyio.current_time() + self._policy.rest_seconds
        self._wanted.clear()
        await self._wanted.wait()

    async def _live(self) -> ServerFailure:
        try:
            # In a thread, as loading the SDK for the first time takes a second that nobody else should lose.
            module = await asyncio.to_thread(importlib.import_module, "hark.mcp.connection")
        except ImportError as error:
            return ServerFailure(f"the package for MCP is not installed: {error}", is_final=True)
        connection: McpConnection = module.make_connection(self._place, self, self._wants_login)
        self._starting = connection
        return await connection.run()
