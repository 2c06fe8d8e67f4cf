"""One connection to an MCP server, and the requests made on it.

Importing this module loads the SDK, which takes a second, so import it in a thread and only when a server is needed.
"""

import contextlib
from collections.abc import Callable
from typing import Protocol

import anyio
import httpx2
import mcp_types as types
import msgspec
from anyio.abc import TaskGroup
from mcp.client.auth import OAuthFlowError
from mcp.client.session import ClientRequestContext, ClientSession, IncomingMessage
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.shared.exceptions import MCPError
from pydantic import FileUrl, ValidationError

from hark.mcp.auth import LOGIN_SECONDS, OAuthLogin
from hark.mcp.forms import DECLINED, Form, read_form
from hark.mcp.logs import redirect_sdk_logs
from hark.mcp.pending_request import CallTool, PendingRequest, RequestLost
from hark.mcp.retry_policy import ServerFailure
from hark.mcp.sdk_requests import fetch_offer, perform_request
from hark.mcp.server_context import ServerContext
from hark.mcp.server_offer import ServerOffer
from hark.mcp.settings import ServerSettingsError
from hark.mcp.transports.http import RemoteTransport
from hark.mcp.transports.stdio import PipedTransport
from hark.mcp.transports.transport import McpTransport, MonitoredReader
from hark.protocol.messages import Effect
from hark.protocol.tool import ToolOutput
from hark.text.cleanup import unwrap_error

LISTING_SECONDS = 30.0
LIST_DEBOUNCE_SECONDS = 0.2
MAX_LOG_CHARACTERS = 2000
_NOT_STARTED_CODES = (types.INVALID_PARAMS, types.METHOD_NOT_FOUND, types.INVALID_REQUEST)
MAX_ERROR_CHARACTERS = 500


class ConnectionListener(Protocol):
    """The owner of a connection, which is notified when the connection's state changes."""

    def on_connected(self, connection: "McpConnection") -> None:
        """Called when the connection starts to accept requests."""
        ...

    def on_disconnected(self) -> None:
        """Called when the connection is ending and accepts no more requests."""
        ...

    def on_offer(self, offer: ServerOffer) -> None:
        """Called with the server's current tools, resources and prompts, after connecting and after each change."""
        ...

    def on_answer(self) -> None:
        """Called when a request has succeeded, which shows that the server works."""
        ...


class McpConnection:
    """A connection that is open until `run` returns. Other tasks make requests, each in its own cancel scope."""

    def __init__(self, context: ServerContext, transport: McpTransport, listener: ConnectionListener) -> None:
        self._context = context
        self.transport = transport
        self._listener = listener
        self._starting = anyio.CancelScope()
        self._ended = anyio.Event()
        self._list_changed = anyio.Event()
        self._pending: dict[PendingRequest, None] = {}
        self._session: ClientSession | None = None
        self._tasks: TaskGroup | None = None

    def extend_start_deadline(self, seconds: float) -> None:
        """Extend the start deadline to `seconds` from now, because the user has to log in."""
        self._starting.deadline = anyio.current_time() + seconds

    def start_request(self, pending: PendingRequest) -> None:
        """Start a request. Its result is set on `pending`."""
        if self._tasks is None or self._ended.is_set():
            pending.finish(RequestLost("the connection had already ended", is_untouched=True))
            return
        self._pending[pending] = None
        self._tasks.start_soon(self._perform, pending)

    async def run(self) -> ServerFailure:
        """Serve requests until the connection ends, and return why. Cancelling stops the server within a second."""
        failure = ServerFailure("Hark stopped the server")
        try:
            try:
                await self._run_session()
                failure = ServerFailure(self.transport.end_reason() or "the server closed the connection")
            finally:
                self._mark_disconnected()
        except Exception as error:  # noqa: BLE001 the connection's boundary: an SDK error ends only this connection
            failure = to_server_failure(error, self.transport.end_reason())
        finally:
            for pending in self._pending:
                pending.finish(RequestLost(str(failure)))
        return failure

    async def _run_session(self) -> None:
        context = self._context
        with self._starting:
            self._starting.deadline = anyio.current_time() + context.settings.start_seconds
            async with self.transport.open() as (incoming, outgoing):
                session = ClientSession(
                    MonitoredReader(incoming, self._ended),
                    outgoing,
                    elicitation_callback=self._elicit,
                    list_roots_callback=self._list_roots,
                    logging_callback=self._on_log_message,
                    message_handler=self._on_message,
                    client_info=types.Implementation(name="hark", version="0"),
                )
                async with session, anyio.create_task_group() as tasks:
                    await _initialize(session)
                    self._listener.on_offer(await fetch_offer(session))
                    self._starting.deadline = float("inf")
                    self._session, self._tasks = session, tasks
                    tasks.start_soon(self._follow_list_changes, session)
                    if session.discover_result:
                        tasks.start_soon(_subscribe_to_changes, session)
                    self._listener.on_connected(self)
                    await self._ended.wait()
                    self._mark_disconnected()
                    tasks.cancel_scope.cancel()
        if self._starting.cancelled_caught:
            raise ServerFailure(f"no answer within {context.settings.start_seconds:g} s")

    def _mark_disconnected(self) -> None:
        if self._tasks is not None:
            self._tasks = None
            self._listener.on_disconnected()

    async def _perform(self, pending: PendingRequest) -> None:
        """Perform a request. If the connection ends first, `run` finishes the request, because only `run` knows why."""
        assert self._session is not None
        seconds = self._context.settings.timeout_seconds if isinstance(pending.request, CallTool) else LISTING_SECONDS
        with pending.scope:
            try:
                with anyio.fail_after(seconds):
                    pending.finish(await perform_request(self._session, pending, self._context.name))
                self._listener.on_answer()
            except TimeoutError:
                pending.finish(self._failed_output(f"no answer within {seconds:g} s, so the request was cancelled"))
            except (MCPError, ValidationError) as error:
                if await self._is_session_expired(self._session):
                    # The server rejected this request without reading it, so a new connection can repeat it.
                    self._mark_disconnected()
                    self._ended.set()
                    pending.finish(RequestLost(self.transport.end_reason(), is_untouched=True))
                elif not self._ended.is_set():
                    pending.finish(self._error_output(error))
            except Exception as error:  # noqa: BLE001 the request's boundary: the connection continues
                pending.finish(self._failed_output(describe_error(error)))
        if pending.scope.cancelled_caught:
            pending.finish(RequestLost("cancelled"))
        if pending.is_finished:
            self._pending.pop(pending, None)

    async def _is_session_expired(self, session: ClientSession) -> bool:
        if self.transport.may_be_expired:
            with (
                contextlib.suppress(MCPError, ValidationError, TimeoutError),
                anyio.fail_after(LISTING_SECONDS),
            ):
                await session.send_ping()
        return self.transport.is_expired

    def _error_output(self, error: MCPError | ValidationError) -> ToolOutput:
        reason = self.transport.end_reason()
        text = f"{describe_error(error)}; {reason}" if reason else describe_error(error)
        may_have_started = not isinstance(error, MCPError) or error.error.code not in _NOT_STARTED_CODES
        return self._failed_output(text, Effect.UNKNOWN if may_have_started else Effect.NOT_STARTED)

    def _failed_output(self, text: str, effect: Effect = Effect.UNKNOWN) -> ToolOutput:
        message = f"The MCP server {self._context.name} could not perform the request: {text}."
        return ToolOutput(message, is_error=True, effect=effect)

    async def _follow_list_changes(self, session: ClientSession) -> None:
        while True:
            await self._list_changed.wait()
            await anyio.sleep(LIST_DEBOUNCE_SECONDS)  # servers send several changes in a row
            self._list_changed = anyio.Event()
            try:
                with anyio.fail_after(LISTING_SECONDS):
                    self._listener.on_offer(await fetch_offer(session))
            except (MCPError, ValidationError, TimeoutError) as error:
                self._context.log.note(f"the changed tools could not be listed: {describe_error(error)}")

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(
            message,
            types.ToolListChangedNotification
            | types.ResourceListChangedNotification
            | types.PromptListChangedNotification,
        ):
            self._list_changed.set()

    async def _on_log_message(self, params: types.LoggingMessageNotificationParams) -> None:
        self._context.log.note(f"{params.level}: {params.data}"[:MAX_LOG_CHARACTERS])

    async def _list_roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        roots = [types.Root(uri=FileUrl(root.as_uri()), name=root.name) for root in self._context.roots]
        return types.ListRootsResult(roots=roots)

    async def _elicit(self, context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        """Show the form to the user whose request is running. Decline it if several sessions have running requests."""
        result = DECLINED
        try:
            if len({pending.session for pending in self._pending}) == 1:
                result = await next(reversed(self._pending)).ask_user(self._parse_form(params))
        except msgspec.ValidationError as error:
            self._context.log.note(f"the server's form is invalid and was declined: {error}")
        return types.ElicitResult(action=result.action, content=result.content)

    def _parse_form(self, params: types.ElicitRequestParams) -> Form:
        match params:
            case types.ElicitRequestURLParams():
                return Form(self._context.name, params.message, url=params.url)
            case types.ElicitRequestFormParams():
                return read_form(self._context.name, params.message, params.requested_schema)


async def _subscribe_to_changes(session: ClientSession) -> None:
    """Subscribe to list changes, as the newer protocol requires. Other servers send the changes unrequested."""
    with contextlib.suppress(MCPError, SubscriptionLost):
        async with listen(
            session, tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
        ) as changes:
            async for _ in changes:
                pass  # they also reach `_on_message`


async def _initialize(session: ClientSession) -> None:
    """Negotiate the protocol version. Try the handshake that nearly all servers support, then the newer discovery."""
    try:
        await session.initialize()
    except MCPError as error:
        if error.error.code not in (types.UNSUPPORTED_PROTOCOL_VERSION, types.METHOD_NOT_FOUND):
            raise
        await session.discover()


def to_server_failure(error: BaseException, transport_reason: str) -> ServerFailure:
    """Convert an error to a `ServerFailure`. Prefer `transport_reason`, which is more precise than most errors."""
    cause = unwrap_error(error)
    match cause:
        case ServerFailure():
            return cause
        case ServerSettingsError():
            return ServerFailure(str(cause), is_final=True)
        case OAuthFlowError():
            return ServerFailure(f"the login failed: {cause}"[:MAX_ERROR_CHARACTERS], is_final=True)
        case _:
            return ServerFailure(transport_reason or describe_error(cause))


def describe_error(error: BaseException) -> str:
    """Return a short explanation of an SDK, HTTP or system error."""
    match error:
        case MCPError(error=types.ErrorData(code=types.CONNECTION_CLOSED)):
            text = "the connection was closed"
        case MCPError():
            text = error.error.message
        case ValidationError():
            location = ".".join(str(part) for part in error.errors()[0]["loc"][:4])
            text = f"the server sent invalid MCP: {location} {error.errors()[0]['msg']}"
        case httpx2.ConnectError() | httpx2.ConnectTimeout():
            text = f"the server can't be reached: {error or 'no answer'}"
        case httpx2.HTTPError():
            text = f"the connection broke: {error or type(error).__name__}"
        case _:
            text = f"{error}" or type(error).__name__
    return text[:MAX_ERROR_CHARACTERS]


def create_connection(
    context: ServerContext, listener: ConnectionListener, on_login_page: Callable[[str], None]
) -> McpConnection:
    """Return a connection that is not running yet. Calls `on_login_page` if the user has to open a login page."""

    def login_started(page: str) -> None:
        connection.extend_start_deadline(LOGIN_SECONDS)
        on_login_page(page)

    redirect_sdk_logs()
    connection = McpConnection(context, _create_transport(context, login_started), listener)
    return connection


def _create_transport(context: ServerContext, on_login_page: Callable[[str], None]) -> McpTransport:
    settings = context.settings
    if settings.command:
        return PipedTransport(settings, context.paths.workspace, context.log, context.spawn)
    login = OAuthLogin(settings.login, context.token_file, on_login_page) if settings.login else None
    return RemoteTransport(settings, login)
