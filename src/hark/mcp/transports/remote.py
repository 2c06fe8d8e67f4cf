"""The way to a server that is elsewhere: streamable HTTP."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import httpx2
import msgspec
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client

from hark.mcp.auth import OAuthLogin
from hark.mcp.settings import ServerSettings, expanded
from hark.mcp.transports.transport import MESSAGE_BYTES, McpTransport, Streams

CONNECT_SECONDS = 15.0
NOTE_SECONDS = 10.0
GOODBYE_SECONDS = 0.4


_PASS = ("authorization", "mcp-protocol-version")


class _Head(msgspec.Struct):
    id: int | str | None = None
    method: str | None = None


class RemoteLink(McpTransport):
    """Talks HTTP with the server, and keeps what its answers tell of the connection itself."""

    def __init__(self, settings: ServerSettings, login: OAuthLogin | None) -> None:
        self._settings = settings
        self._login = login
        self._session = ""
        self._pass: dict[str, str] = {}
        self._refusal = 0

    def why(self) -> str:
        """Say how it refused."""
        if self.is_expired:
            return "it has forgotten the session"
        match self._refusal:
            case 0:
                return ""
            case 401 if self._login:
                return "it did not take the login; log in again with `hark mcp login`"
            case 401:
                return "it wants to know who asks (HTTP 401): set oauth = true, or an Authorization header"
            case 403:
                return "it refused (HTTP 403): the credentials in the settings may not do this"
            case status:
                return f"it answered HTTP {status}"

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Streams]:
        """Open a pool of connections; the first message is what reaches the server."""
        url = self._settings.url
        # No limit for reading: an answer may take as long as its call may, and that has a limit of its own.
        timeout = httpx2.Timeout(CONNECT_SECONDS, read=None)
        hooks: dict[str, list[Callable[..., Awaitable[None]]]] = {"request": [_limit], "response": [self._look]}
        auth = await self._login.auth(url) if self._login else None
        async with httpx2.AsyncClient(
            headers=expanded(self._settings.headers), timeout=timeout, event_hooks=hooks, auth=auth
        ) as client:
            try:
                async with streamable_http_client(
                    url, http_client=client, terminate_on_close=False, max_sse_event_size=MESSAGE_BYTES
                ) as streams:
                    yield streams
            finally:
                with anyio.move_on_after(GOODBYE_SECONDS, shield=True):
                    await self._say_goodbye(client)

    async def _look(self, response: httpx2.Response) -> None:
        self._session = response.headers.get(MCP_SESSION_ID, self._session)
        sent = response.request.headers
        self._pass = {name: sent[name] for name in _PASS if name in sent} | {MCP_SESSION_ID: self._session}
        sent_session = response.request.headers.get(MCP_SESSION_ID)
        if sent_session and response.request.method == "POST":
            # By the book it is 404; twice 400 in a row, the second time for a mere ping, means it as well.
            self.is_expired |= response.status_code == 404 or self._refusal == response.status_code == 400
        self._refusal = response.status_code if response.status_code >= 400 else 0
        # Some servers say 400 to a session that they don't know.
        self.is_doubtful = self._refusal == 400 and not self.is_expired

    async def _say_goodbye(self, client: httpx2.AsyncClient) -> None:
        if not self._session or self.is_expired:
            return
        try:
            # With the pass that it took last, and no new one: nobody has to log in to leave.
            await client.delete(self._settings.url, headers=self._pass, auth=httpx2.Auth())
        except httpx2.HTTPError:
            return  # it is gone, and the session with it


async def _limit(request: httpx2.Request) -> None:
    """Bound what has no answer: the next message waits until the server has taken this one."""
    if request.method != "POST":
        return
    try:
        head = msgspec.json.decode(request.content, type=_Head)
    except (msgspec.DecodeError, httpx2.RequestNotRead):
        return
    if head.id is None or head.method is None:
        timeout = dict.fromkeys(("connect", "read", "write", "pool"), NOTE_SECONDS)
        request.extensions = {**request.extensions, "timeout": timeout}
