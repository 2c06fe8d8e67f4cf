"""The transport to a remote server: streamable HTTP."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import httpx2
import msgspec
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client

from hark.mcp.auth import OAuthLogin
from hark.mcp.settings import ServerSettings, expand_variables
from hark.mcp.transports.transport import MAX_MESSAGE_BYTES, McpTransport, MessageStreams

CONNECT_SECONDS = 15.0
NOTIFICATION_SECONDS = 10.0
DELETE_SECONDS = 0.4


_KEPT_HEADERS = ("authorization", "mcp-protocol-version")


class _MessageHead(msgspec.Struct):
    id: int | str | None = None
    method: str | None = None


class RemoteTransport(McpTransport):
    """A transport over HTTP. Detects from the server's responses whether the session is still valid."""

    def __init__(self, settings: ServerSettings, login: OAuthLogin | None) -> None:
        self._settings = settings
        self._login = login
        self._session = ""
        self._session_headers: dict[str, str] = {}
        self._error_status = 0

    def end_reason(self) -> str:
        """Return the server's reason for refusing the last request, or ""."""
        if self.is_expired:
            return "the server no longer knows the session"
        match self._error_status:
            case 0:
                return ""
            case 401 if self._login:
                return "the server rejected the login; log in again with `hark mcp login`"
            case 401:
                return "the server requires authentication (HTTP 401): set oauth = true, or an Authorization header"
            case 403:
                return "the server refused access (HTTP 403): the credentials in the settings lack permission"
            case status:
                return f"the server answered with HTTP status {status}"

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[MessageStreams]:
        """Open a connection pool. The server is not contacted until the first message is sent."""
        url = self._settings.url
        # No read limit: an answer may take as long as its call, which has its own time limit.
        timeout = httpx2.Timeout(CONNECT_SECONDS, read=None)
        hooks: dict[str, list[Callable[..., Awaitable[None]]]] = {
            "request": [_limit_notification_time],
            "response": [self._on_response],
        }
        auth = await self._login.create_auth(url) if self._login else None
        async with httpx2.AsyncClient(
            headers=expand_variables(self._settings.headers), timeout=timeout, event_hooks=hooks, auth=auth
        ) as client:
            try:
                async with streamable_http_client(
                    url, http_client=client, terminate_on_close=False, max_sse_event_size=MAX_MESSAGE_BYTES
                ) as streams:
                    yield streams
            finally:
                with anyio.move_on_after(DELETE_SECONDS, shield=True):
                    await self._delete_session(client)

    async def _on_response(self, response: httpx2.Response) -> None:
        self._session = response.headers.get(MCP_SESSION_ID, self._session)
        sent = response.request.headers
        headers = {name: sent[name] for name in _KEPT_HEADERS if name in sent}
        self._session_headers = {**headers, MCP_SESSION_ID: self._session}
        sent_session = response.request.headers.get(MCP_SESSION_ID)
        if sent_session and response.request.method == "POST":
            # The standard response is 404. Some servers answer 400, which counts if a ping gets 400 as well.
            self.is_expired |= response.status_code == 404 or self._error_status == response.status_code == 400
        self._error_status = response.status_code if response.status_code >= 400 else 0
        # Some servers answer 400 for an unknown session.
        self.may_be_expired = self._error_status == 400 and not self.is_expired

    async def _delete_session(self, client: httpx2.AsyncClient) -> None:
        if not self._session or self.is_expired:
            return
        try:
            # Reuse the last accepted headers, so that ending the session never needs a new login.
            await client.delete(self._settings.url, headers=self._session_headers, auth=httpx2.Auth())
        except httpx2.HTTPError:
            return  # the server is gone, and the session with it


async def _limit_notification_time(request: httpx2.Request) -> None:
    """Set a time limit for messages without a response, because each message waits for the previous one."""
    if request.method != "POST":
        return
    try:
        head = msgspec.json.decode(request.content, type=_MessageHead)
    except (msgspec.DecodeError, httpx2.RequestNotRead):
        return
    if head.id is None or head.method is None:
        timeout = dict.fromkeys(("connect", "read", "write", "pool"), NOTIFICATION_SECONDS)
        request.extensions = {**request.extensions, "timeout": timeout}
