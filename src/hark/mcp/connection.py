"""One life of a server: from the first message to the last, with the requests that come in between.

Importing this loads the SDK, which takes a second: do it when a server is wanted, in a thread.
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
from hark.mcp.failures import ServerFailure
from hark.mcp.forms import DECLINED, Form, read_form
from hark.mcp.logs import quiet_sdk
from hark.mcp.offers import ServerOffer
from hark.mcp.requests import CallTool, Errand, Lost
from hark.mcp.sdk_requests import listed_offer, perform
from hark.mcp.server_context import ServerPlace
from hark.mcp.settings import ServerSettingsError
from hark.mcp.transports.piped import PipedLink
from hark.mcp.transports.remote import RemoteLink
from hark.mcp.transports.transport import McpTransport, MonitoredReader
from hark.protocol.messages import Effect
from hark.protocol.tool import ToolOutput
from hark.text.clean import first_of

LISTING_SECONDS = 30.0
CALM_SECONDS = 0.2
LOG_CHARACTERS = 2000
_NEVER_BEGUN = (types.INVALID_PARAMS, types.METHOD_NOT_FOUND, types.INVALID_REQUEST)
ERROR_CHARACTERS = 500


class ConnectionListener(Protocol):
    """Who keeps a connection, and hears of it."""

    def is_up(self, connection: "McpConnection") -> None:
        """It can take errands from now on."""
        ...

    def is_down(self) -> None:
        """It takes no more errands: its end has begun."""
        ...

    def offers(self, offer: ServerOffer) -> None:
        """This is what the server offers now."""
        ...

    def has_answered(self) -> None:
        """An errand was done: the server works."""
        ...


class McpConnection:
    """A connection that lives as long as `run`. Errands come from other tasks, and never see its scopes."""

    def __init__(self, place: ServerPlace, link: McpTransport, keeper: ConnectionListener) -> None:
        self._place = place
        self.link = link
        self._keeper = keeper
        self._starting = anyio.CancelScope()
        self._ended = anyio.Event()
        self._list_changed = anyio.Event()
        self._errands: dict[Errand, None] = {}
        self._session: ClientSession | None = None
        self._tasks: TaskGroup | None = None

    def wait_longer(self, seconds: float) -> None:
        """Give the start more time: a person has to do something for it."""
        self._starting.deadline = anyio.current_time() + seconds

    def begin(self, errand: Errand) -> None:
        """Take an errand; what comes of it, the errand tells."""
        if self._tasks is None or self._ended.is_set():
            errand.finish(Lost("its connection had ended", is_untouched=True))
            return
        self._errands[errand] = None
        self._tasks.start_soon(self._serve, errand)

    async def run(self) -> ServerFailure:
        """Serve until the server ends, and return why. Cancelling ends the server whole, in less than a second."""
        failure = ServerFailure("Hark is ending")
        try:
            try:
                await self._live()
                failure = ServerFailure(self.link.why() or "it closed the connection")
            finally:
                self._go_down()
        except Exception as error:  # noqa: BLE001 the connection's boundary: whatever the SDK raises ends this life only
            failure = failure_of(error, self.link.why())
        finally:
            for errand in self._errands:
                errand.finish(Lost(str(failure)))
        return failure

    async def _live(self) -> None:
        place = self._place
        with self._starting:
            self._starting.deadline = anyio.current_time() + place.settings.start_seconds
            async with self.link.opened() as (incoming, outgoing):
                session = ClientSession(
                    MonitoredReader(incoming, self._ended),
                    outgoing,
                    elicitation_callback=self._elicit,
                    list_roots_callback=self._roots,
                    logging_callback=self._log,
                    message_handler=self._hear,
                    client_info=types.Implementation(name="hark", version="0"),
                )
                async with session, anyio.create_task_group() as tasks:
                    await _greet(session)
                    self._keeper.offers(await listed_offer(session))
                    self._starting.deadline = float("inf")
                    self._session, self._tasks = session, tasks
                    tasks.start_soon(self._follow_lists, session)
                    if session.discover_result:
                        tasks.start_soon(_subscribe, session)
                    self._keeper.is_up(self)
                    await self._ended.wait()
                    self._go_down()
                    tasks.cancel_scope.cancel()
        if self._starting.cancelled_caught:
            raise ServerFailure(f"it did not answer within {place.settings.start_seconds:g} s")

    def _go_down(self) -> None:
        if self._tasks is not None:
            self._tasks = None
            self._keeper.is_down()

    async def _serve(self, errand: Errand) -> None:
        """Run an errand. One that is cut short by the connection's end is finished by `run`, which knows why."""
        assert self._session is not None
        seconds = self._place.settings.timeout_seconds if isinstance(errand.wish, CallTool) else LISTING_SECONDS
        with errand.scope:
            try:
                with anyio.fail_after(seconds):
                    errand.finish(await perform(self._session, errand, self._place.name))
                self._keeper.has_answered()
            except TimeoutError:
                errand.finish(self._refusal(f"it did not answer within {seconds:g} s, and was told to stop"))
            except (MCPError, ValidationError) as error:
                if await self._is_forgotten(self._session):
                    # It is known to have refused this one unread; a new connection can take it.
                    self._go_down()
                    self._ended.set()
                    errand.finish(Lost(self.link.why(), is_untouched=True))
                elif not self._ended.is_set():
                    errand.finish(self._answer_to(error))
            except Exception as error:  # noqa: BLE001 the errand's boundary: it fails alone, the connection goes on
                errand.finish(self._refusal(explained(error)))
        if errand.scope.cancelled_caught:
            errand.finish(Lost("withdrawn"))
        if errand.is_finished:
            self._errands.pop(errand, None)

    async def _is_forgotten(self, session: ClientSession) -> bool:
        if self.link.is_doubtful:
            with contextlib.suppress(MCPError, ValidationError, TimeoutError), anyio.fail_after(LISTING_SECONDS):
                await session.send_ping()
        return self.link.is_expired

    def _answer_to(self, error: MCPError | ValidationError) -> ToolOutput:
        known = self.link.why()
        text = f"{explained(error)}; {known}" if known else explained(error)
        is_begun = not isinstance(error, MCPError) or error.error.code not in _NEVER_BEGUN
        return self._refusal(text, Effect.UNKNOWN if is_begun else Effect.NOT_STARTED)

    def _refusal(self, text: str, effect: Effect = Effect.UNKNOWN) -> ToolOutput:
        return ToolOutput(f"The server {self._place.name} could not do it: {text}.", is_error=True, effect=effect)

    async def _follow_lists(self, session: ClientSession) -> None:
        while True:
            await self._list_changed.wait()
            await anyio.sleep(CALM_SECONDS)  # changes come in flocks
            self._list_changed = anyio.Event()
            try:
                with anyio.fail_after(LISTING_SECONDS):
                    self._keeper.offers(await listed_offer(session))
            except (MCPError, ValidationError, TimeoutError) as error:
                self._place.log.note(f"its tools could not be listed anew: {explained(error)}")

    async def _hear(self, message: IncomingMessage) -> None:
        if isinstance(
            message,
            types.ToolListChangedNotification
            | types.ResourceListChangedNotification
            | types.PromptListChangedNotification,
        ):
            self._list_changed.set()

    async def _log(self, params: types.LoggingMessageNotificationParams) -> None:
        self._place.log.note(f"{params.level}: {params.data}"[:LOG_CHARACTERS])

    async def _roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        roots = [types.Root(uri=FileUrl(root.as_uri()), name=root.name) for root in self._place.roots]
        return types.ListRootsResult(roots=roots)

    async def _elicit(self, context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        """Put the form to the person whose call is under way; when that can't be known for sure, to nobody."""
        filled = DECLINED
        try:
            if len({errand.session for errand in self._errands}) == 1:
                filled = await next(reversed(self._errands)).ask(self._form(params))
        except msgspec.ValidationError as error:
            self._place.log.note(f"its form can't be read, and was declined: {error}")
        return types.ElicitResult(action=filled.action, content=filled.content)

    def _form(self, params: types.ElicitRequestParams) -> Form:
        match params:
            case types.ElicitRequestURLParams():
                return Form(self._place.name, params.message, url=params.url)
            case types.ElicitRequestFormParams():
                return read_form(self._place.name, params.message, params.requested_schema)


async def _subscribe(session: ClientSession) -> None:
    """Have a server of the newer kind tell of its changes: the others do so unasked."""
    with contextlib.suppress(MCPError, SubscriptionLost):
        async with listen(
            session, tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
        ) as changes:
            async for _ in changes:
                pass  # they come to `_hear` as well


async def _greet(session: ClientSession) -> None:
    """Agree on a version: by the handshake that nearly all servers know, and else by the newer way."""
    try:
        await session.initialize()
    except MCPError as error:
        if error.error.code not in (types.UNSUPPORTED_PROTOCOL_VERSION, types.METHOD_NOT_FOUND):
            raise
        await session.discover()


def failure_of(error: BaseException, known: str) -> ServerFailure:
    """Return why a connection failed. `known` is what the way to the server knows of it, and says more than errors."""
    first = first_of(error)
    match first:
        case ServerFailure():
            return first
        case ServerSettingsError():
            return ServerFailure(str(first), is_final=True)
        case OAuthFlowError():
            return ServerFailure(f"the login failed: {first}"[:ERROR_CHARACTERS], is_final=True)
        case _:
            return ServerFailure(known or explained(first))


def explained(error: BaseException) -> str:
    """Return what an error of the SDK, of HTTP or of the system means."""
    match error:
        case MCPError(error=types.ErrorData(code=types.CONNECTION_CLOSED)):
            text = "the connection was closed"
        case MCPError():
            text = error.error.message
        case ValidationError():
            places = ".".join(str(part) for part in error.errors()[0]["loc"][:4])
            text = f"what it sent is not valid MCP: {places} {error.errors()[0]['msg']}"
        case httpx2.ConnectError() | httpx2.ConnectTimeout():
            text = f"it can't be reached: {error or 'no answer'}"
        case httpx2.HTTPError():
            text = f"the connection broke: {error or type(error).__name__}"
        case _:
            text = f"{error}" or type(error).__name__
    return text[:ERROR_CHARACTERS]


def make_connection(
    place: ServerPlace, keeper: ConnectionListener, wants_login: Callable[[str], None]
) -> McpConnection:
    """Return a connection that is still to be run. `wants_login` hears the page that a person has to open."""

    def begun(page: str) -> None:
        connection.wait_longer(LOGIN_SECONDS)
        wants_login(page)

    quiet_sdk()
    connection = McpConnection(place, _link(place, begun), keeper)
    return connection


def _link(place: ServerPlace, begun: Callable[[str], None]) -> McpTransport:
    settings = place.settings
    if settings.command:
        return PipedLink(settings, place.places.workspace, place.log, place.spawn)
    return RemoteLink(settings, OAuthLogin(settings.login, place.token_file, begun) if settings.login else None)
