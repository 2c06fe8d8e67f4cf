"""Remote MCP servers for tests, built with the SDK's server side, on real sockets."""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    IdentityAssertionParams,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl, BaseModel
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hark.mcp.auth import find_free_port
from tests.waiting import until


class RemoteServer:
    """A remote MCP server that a test can stop and restart. Its sessions are lost at a restart."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.cancelled = asyncio.Event()
        self.call_started = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._uvicorn: uvicorn.Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    async def start(self, app: ASGIApp | None = None) -> None:
        config = uvicorn.Config(
            app or self.create_mcp_server().streamable_http_app(),
            host="127.0.0.1",
            port=self.port,
            log_level="critical",
            timeout_graceful_shutdown=0,
            ws="none",
        )
        self._uvicorn = uvicorn.Server(config)
        self._task = asyncio.create_task(self._uvicorn.serve())
        await until(lambda: self._uvicorn is not None and self._uvicorn.started)

    async def stop(self) -> None:
        assert self._uvicorn is not None
        assert self._task is not None
        self._uvicorn.should_exit = True
        self._uvicorn.force_exit = True
        await asyncio.wait([self._task])

    def create_mcp_server(self) -> MCPServer:
        server = MCPServer("remote")

        class Colour(BaseModel):
            colour: str

        async def echo(text: str) -> str:
            return text

        async def wait() -> str:
            self.call_started.set()
            try:
                await anyio.sleep_forever()
            finally:
                self.cancelled.set()
            return "never"

        async def ask(ctx: Context) -> str:
            result = await ctx.elicit("Which?", Colour)
            return f"{result.action}"

        async def steps(ctx: Context) -> str:
            await ctx.report_progress(1, 2, "half")
            return "done"

        async def grow(ctx: Context) -> str:
            server.add_tool(echo, name="grown")
            await ctx.notify_tools_changed()
            return "grown"

        for tool in (echo, wait, ask, steps, grow):
            server.add_tool(tool)
        return server


class OldHandshakeRejector:
    """Wraps an app and rejects the old handshake, like a server that supports only the newer protocol."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        body = await Request(scope, receive).body()
        message = json.loads(body)
        if message["method"] == "initialize":
            supported = {"supported": ["2026-07-28"], "requested": "2025-11-25"}
            error = {"code": -32022, "message": "too old", "data": supported}
            answer = JSONResponse({"jsonrpc": "2.0", "id": message["id"], "error": error}, 400)
            await answer(scope, receive, send)
            return
        pieces: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return pieces.pop() if pieces else await receive()

        await self._app(scope, replay, send)


@asynccontextmanager
async def running_remote_server() -> AsyncGenerator[RemoteServer]:
    server = RemoteServer(find_free_port())
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


class FakeAuthorizationServer:
    """A fake authorization server that accepts every login and counts logins and renewals."""

    def __init__(self, token_seconds: int = 3600) -> None:
        self.token_seconds = token_seconds
        self.logins = 0
        self.renewals = 0
        self._clients: dict[str, OAuthClientInformationFull] = {}
        self._codes: dict[str, AuthorizationCode] = {}
        self._access: dict[str, AccessToken] = {}
        self._refresh: dict[str, RefreshToken] = {}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self._clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self._clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code = AuthorizationCode(
            code=secrets.token_urlsafe(32),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self._codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self._codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        self.logins += 1
        return self._issue_token(client.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self._refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self.renewals += 1
        return self._issue_token(client.client_id, scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self._access.get(token)

    async def exchange_identity_assertion(
        self, client: OAuthClientInformationFull, params: IdentityAssertionParams
    ) -> OAuthToken:
        raise NotImplementedError

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self._access.pop(token.token, None)

    def revoke_all_tokens(self) -> None:
        """Revoke all tokens."""
        self._access.clear()
        self._refresh.clear()

    def _issue_token(self, client: str, scopes: list[str], resource: str | None) -> OAuthToken:
        expires_at = int(time.time()) + self.token_seconds
        access, refresh = secrets.token_hex(16), secrets.token_hex(16)
        self._access[access] = AccessToken(
            token=access, client_id=client, scopes=scopes, expires_at=expires_at, resource=resource
        )
        self._refresh[refresh] = RefreshToken(token=refresh, client_id=client, scopes=scopes, resource=resource)
        return OAuthToken(
            access_token=access, token_type="Bearer", expires_in=self.token_seconds, refresh_token=refresh
        )


class RemoteServerWithLogin(RemoteServer):
    """A remote server that requires an OAuth login."""

    def __init__(self, port: int, authorization: FakeAuthorizationServer) -> None:
        super().__init__(port)
        self._authorization = authorization

    def create_mcp_server(self) -> MCPServer:
        origin = AnyHttpUrl(f"http://127.0.0.1:{self.port}")
        auth = AuthSettings(
            issuer_url=origin,
            resource_server_url=AnyHttpUrl(self.url),
            client_registration_options=ClientRegistrationOptions(enabled=True),
            validate_token_resource=False,
        )
        server = MCPServer("gated", auth_server_provider=self._authorization, auth=auth)

        async def echo(text: str) -> str:
            return text

        server.add_tool(echo)
        return server


@asynccontextmanager
async def running_server_with_login(authorization: FakeAuthorizationServer) -> AsyncGenerator[RemoteServerWithLogin]:
    server = RemoteServerWithLogin(find_free_port(), authorization)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@asynccontextmanager
async def running_refusing_server(status: int, request_heads: list[str] | None = None) -> AsyncGenerator[str]:
    """Yield the URL of a server that answers every request with `status` and adds request heads to `request_heads`."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        if request_heads is not None:
            request_heads.append(head)
        writer.write(f"HTTP/1.1 {status} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listener:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/mcp"
