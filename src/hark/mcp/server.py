"""One supervised server: started on demand, and retried after failures for as long as it is configured."""

import asyncio
import importlib
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio

from hark.mcp.pending_request import McpRequest, PendingRequest, RequestLost
from hark.mcp.retry_policy import RetryPolicy, ServerFailure
from hark.mcp.server_context import ServerContext
from hark.mcp.server_offer import OfferCache, RemoteTool, ServerOffer, ServerState, ServerStatus
from hark.mcp.settings import StartMode
from hark.protocol.messages import Effect
from hark.protocol.tool import CallContext, ToolOutput

if TYPE_CHECKING:
    from hark.mcp.connection import McpConnection

START_MARGIN_SECONDS = 10.0
MAX_SESSIONS = 10_000  # that are remembered as informed; the oldest are dropped first

ConnectResult = asyncio.Future["McpConnection | ServerFailure"]


class McpServer:
    """A supervised MCP server. `run` owns everything the server starts. Calls are made from other tasks.

    `settled` is set unless the server starts for the first time without cached tools, or was restarted by request.
    """

    def __init__(
        self,
        context: ServerContext,
        retry_policy: RetryPolicy,
        notify: Callable[[str], None],
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        """`notify` receives messages for the user. `on_change` is called when tools, resources or prompts change."""
        self.name = context.name
        self.settings = context.settings
        self.settled = asyncio.Event()
        self._context = context
        self._retry_policy = retry_policy
        self._backoff = retry_policy.create_backoff()
        self._failed_backoff = retry_policy.create_failed_backoff()
        self._notify = notify
        self._on_change = on_change
        self._cache = OfferCache(context.paths.cache / f"{context.name}.json", context.settings)
        self._offer, self._last_error = self._cache.load()
        self._state = ServerState.IDLE if context.settings.enabled else ServerState.DISABLED
        self._state_changed = asyncio.Event()
        self._connection: McpConnection | None = None
        self._attempt = anyio.CancelScope()
        self._restart_listeners: list[Callable[[str], None]] = []
        self._restart_requests = 0
        self._informed: dict[str, int] = {}  # the restart requests when a session was informed of missing tools
        self._result: ConnectResult = asyncio.get_running_loop().create_future()
        self._wanted = asyncio.Event()
        self._failures = 0
        self._start_count = 0
        self._up_at: float | None = None
        self._has_answered = False
        self._retry_blocked_until = 0.0
        self._retry_at: float | None = None
        self._requests = 0
        self._is_unused = asyncio.Event()
        self._is_unused.set()
        if self._offer is not None or not context.settings.enabled:
            self.settled.set()

    @property
    def offer(self) -> ServerOffer | None:
        """The server's tools, resources and prompts, live or cached; None if unknown or the server is disabled."""
        return self._offer if self.settings.enabled else None

    @property
    def tools(self) -> list[RemoteTool]:
        """The server's tools that the settings allow."""
        return [tool for tool in self.offer.tools if self.settings.is_offered(tool.name)] if self.offer else []

    @property
    def status(self) -> ServerStatus:
        """The server's current status."""
        return ServerStatus(
            name=self.name,
            state=self._state,
            tools=tuple(tool.name for tool in self.tools),
            pid=self._connection.transport.pid if self._connection else None,
            restarts=max(0, self._start_count - 1),
            last_error=self._last_error,
            retry_seconds=None if self._retry_at is None else max(0.0, self._retry_at - anyio.current_time()),
        )

    async def wait_until_unused(self) -> None:
        """Wait until no request is in progress. Safe to cancel."""
        await self._is_unused.wait()

    async def wait_until_attempted(self, seconds: float) -> None:
        """Wait until the current or next attempt to start has ended, for at most `seconds`. Safe to cancel."""
        with anyio.move_on_after(seconds):
            await asyncio.shield(self._result)  # others may wait for it too

    def restart(self, listener: Callable[[str], None] = lambda _: None) -> None:
        """Restart the server now, in any state. Turns wait for it again. `listener` receives the result as a text."""
        self._restart_listeners.append(listener)
        self._restart_requests += 1
        self.settled.clear()
        self._connection = None
        self._reset_attempt_result()
        self._failures, self._retry_blocked_until = 0, 0.0
        self._backoff.reset()
        self._wanted.set()
        self._attempt.cancel()

    def retry_if_failed(self) -> bool:
        """Retry a failed server now, unless it failed a moment ago or needs a user. Return whether it is retried."""
        can_retry = self._state is ServerState.FAILED and self._retry_at is not None
        if can_retry and anyio.current_time() >= self._retry_blocked_until:
            self._wanted.set()
            return True
        return False

    def restart_if_down(self) -> None:
        """Restart the server now if it waits for its next attempt."""
        if self._state in (ServerState.WAITING, ServerState.FAILED):
            self.restart()

    def is_informed(self, session: str) -> bool:
        """Return whether the session was informed, since the last restart request, that the tools are missing."""
        return self._informed.get(session) == self._restart_requests

    def inform(self, session: str, notify: Callable[[str], None]) -> None:
        """Notify the session once when the server's tools are missing, and once when they are available again."""
        is_missing = self.offer is None or not self.settled.is_set()
        if not is_missing and session in self._informed:
            del self._informed[session]
            notify(f"The MCP server {self.name} is ready. Its {len(self.tools)} tools are available now.")
        elif is_missing and not self.is_informed(session):
            self._informed[session] = self._restart_requests
            if len(self._informed) > MAX_SESSIONS:
                del self._informed[next(iter(self._informed))]
            is_down = self._state in (ServerState.WAITING, ServerState.FAILED, ServerState.LOGIN)
            reason = self._last_error if is_down else "it is still starting"
            notify(f"Continuing without the MCP server {self.name}: {reason}. Its tools are added when it is ready.")

    async def wait_for_state(self, *states: ServerState) -> None:
        """Wait until the server is in one of these states. Safe to cancel."""
        while self._state not in states:
            await self._state_changed.wait()

    async def run(self) -> None:
        """Keep the server running until cancelled, then stop its processes within a second."""
        try:
            if self._offer is not None and self.settings.start is StartMode.LAZY:
                await self._wanted.wait()
            while True:
                with anyio.CancelScope() as self._attempt:
                    await self._run_once()
        finally:
            self._set_state(ServerState.IDLE)
            self._connection = None
            self._reset_attempt_result()
            self._set_attempt_result(ServerFailure("Hark is shutting down"))

    async def request(self, request: McpRequest, context: CallContext) -> ToolOutput:
        """Perform a request, waiting for the server if it is starting. Cancelling cancels the request immediately."""
        self._requests += 1
        self._is_unused.clear()
        try:
            return await self._perform(request, context)
        finally:
            self._requests -= 1
            if not self._requests:
                self._is_unused.set()

    async def _perform(self, request: McpRequest, context: CallContext) -> ToolOutput:
        for is_last in (False, True):
            try:
                connection = await self._wait_for_connection()
            except ServerFailure as failure:
                return self._unusable_output(str(failure))
            pending = PendingRequest(request, context)
            connection.start_request(pending)
            match await pending.wait_for_result():
                case RequestLost(why, is_untouched=True) if is_last:
                    return self._unusable_output(why)
                case RequestLost(is_untouched=True):
                    continue  # safe to repeat: the server never saw the request
                case RequestLost(why):
                    return self._ended_output(why)
                case ToolOutput() as output:
                    return output
        raise AssertionError("the last attempt always returns")

    # Notifications from the connection:

    def on_connected(self, connection: "McpConnection") -> None:
        """Send requests over this connection from now on."""
        self._connection = connection
        if self._failures >= self._retry_policy.tries:
            self._notify(f"The MCP server {self.name} is connected again.")
        self._set_state(ServerState.CONNECTED)
        self._up_at = anyio.current_time()
        self._cache.save(self._offer)
        self._set_attempt_result(connection)
        self._settle(f"The MCP server {self.name} is connected. It has {len(self.tools)} tools.")

    def on_disconnected(self) -> None:
        """Stop using the connection. New requests wait for the next connection."""
        self._connection = None
        self._reset_attempt_result()
        self._set_state(ServerState.WAITING)

    def on_offer(self, offer: ServerOffer) -> None:
        """Store the server's current tools, resources and prompts, and report any change."""
        if offer != self._offer:
            self._offer = offer
            self._cache.save(offer)
            self._on_change()

    def on_answer(self) -> None:
        """Record that the server answered a request."""
        self._has_answered = True

    def _settle(self, text: str) -> None:
        """Let turns continue, and report the result of a restart."""
        self.settled.set()
        listeners, self._restart_listeners = self._restart_listeners, []
        for listener in listeners:
            listener(text)

    def _set_attempt_result(self, result: "McpConnection | ServerFailure") -> None:
        if not self._result.done():
            self._result.set_result(result)

    def _reset_attempt_result(self) -> None:
        # Requests that wait for the old result get it when the next attempt ends.
        if self._result.done():
            self._result = asyncio.get_running_loop().create_future()

    def _set_state(self, state: ServerState) -> None:
        self._state = state
        state_changed, self._state_changed = self._state_changed, asyncio.Event()
        state_changed.set()

    def _on_login_page(self, page: str) -> None:
        self._last_error = f"the user has to log in first, on this machine: {page}"
        self._set_state(ServerState.LOGIN)
        self._set_attempt_result(ServerFailure(self._last_error))
        text = f"The MCP server {self.name} needs you to log in. Open this page: {page}"
        self._notify(text)
        self._settle(text)

    async def _wait_for_connection(self) -> "McpConnection":
        if self._connection is not None:
            return self._connection
        if self._state is ServerState.LOGIN:
            raise ServerFailure(self._last_error)
        if self._state is ServerState.FAILED and anyio.current_time() < self._retry_blocked_until:
            raise ServerFailure(f"{self._last_error} (retried a moment ago)")
        self._wanted.set()
        seconds = self.settings.start_seconds + START_MARGIN_SECONDS
        try:
            with anyio.fail_after(seconds):
                result = await asyncio.shield(self._result)  # several requests may wait for it
        except TimeoutError:
            raise ServerFailure(f"no connection within {seconds:g} s") from None
        if isinstance(result, ServerFailure):
            raise result
        return result

    def _unusable_output(self, reason: str) -> ToolOutput:
        advice = f"`hark mcp test {self.name}` shows details, and the server's log is {self._context.log.file}"
        text = f"The MCP server {self.name} can't be used: {reason}. Continue without it; {advice}."
        return ToolOutput(text, is_error=True, effect=Effect.NOT_STARTED)

    def _ended_output(self, reason: str) -> ToolOutput:
        text = f"The MCP server {self.name} ended during the call ({reason}) and is being restarted."
        return ToolOutput(f"{text} The effect of the call is unknown.", is_error=True, effect=Effect.UNKNOWN)

    async def _run_once(self) -> None:
        """Run one connection to its end, then wait before the next attempt."""
        self._set_state(ServerState.CONNECTING)
        self._retry_at = None
        self._wanted.clear()
        self._start_count += 1
        self._up_at, self._has_answered = None, False
        failure = await self._run_connection()
        failure.args = (self._context.log.redact(str(failure)),)  # a server may echo the secrets it received
        self._last_error = str(failure)
        self._context.log.note(f"ended: {failure}")
        was_steady = self._up_at is not None and anyio.current_time() - self._up_at > self._retry_policy.steady_seconds
        if was_steady or self._has_answered:
            self._failures = 0
            self._backoff.reset()
        self._failures += 1
        self._cache.save(self._offer, self._last_error)
        is_failed = failure.is_final or self._failures >= self._retry_policy.tries
        self._set_state(ServerState.FAILED if is_failed else ServerState.WAITING)
        if self._up_at is None or is_failed:
            self._set_attempt_result(failure)
            self._reset_attempt_result()
        self._settle(f"The MCP server {self.name} failed: {failure}.")
        if not is_failed:
            delay = self._backoff.next_delay()
            self._retry_at = anyio.current_time() + delay
            await anyio.sleep(delay)
        else:
            await self._wait_for_retry(failure)

    async def _wait_for_retry(self, failure: ServerFailure) -> None:
        """Wait until a failed server is needed or its next automatic attempt is due. A final failure has none."""
        now = anyio.current_time()
        if failure.is_final:
            when = f"/mcp restart {self.name} or the next call retries it"
        else:
            when = f"Hark retries it every minute; /mcp restart {self.name} retries it now"
            self._retry_at = now + self._failed_backoff.next_delay()
        if failure.is_final or self._failures == self._retry_policy.tries:
            self._notify(f"The MCP server {self.name} failed: {failure}. {when}.")
        else:
            self._retry_blocked_until = now + self._retry_policy.rest_seconds
        self._wanted.clear()
        with anyio.CancelScope(deadline=math.inf if self._retry_at is None else self._retry_at):
            await self._wanted.wait()

    async def _run_connection(self) -> ServerFailure:
        try:
            # In a thread, because loading the SDK for the first time would block the event loop for a second.
            module = await asyncio.to_thread(importlib.import_module, "hark.mcp.connection")
        except ImportError as error:
            return ServerFailure(f"the MCP package is not installed: {error}", is_final=True)
        connection: McpConnection = module.create_connection(self._context, self, self._on_login_page)
        return await connection.run()
