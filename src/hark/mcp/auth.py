"""Logging in to a remote server: the SDK's OAuth client, a file for its tokens, and a page to come back to."""

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import msgspec
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl

from hark.disk.private_files import replace_private
from hark.mcp.failures import ServerFailure
from hark.mcp.settings import OAuthSettings

HOST = "127.0.0.1"
REQUEST_BYTES = 16_384
REQUEST_SECONDS = 10.0
_PAGE = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nConnection: close\r\n\r\n"
    b"<!doctype html><title>Hark</title><p>You can close this page and go back to Hark.</p>"
)
_NOT_HERE = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
LOGIN_SECONDS = 300.0
CALLBACK = "/callback"


class StoredLogin(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is kept of a login: tokens, when they end, who we are to the server, and where it renews them."""

    tokens: dict[str, Any] | None = None
    ends_at: float | None = None
    client: dict[str, Any] | None = None
    port: int = 0
    context: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


class TokenFile:
    """Reads and writes it, whole or not at all. A broken file is no login."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def load(self) -> StoredLogin:
        """Return what is kept."""
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=StoredLogin)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return StoredLogin()

    def update(self, **changes: object) -> None:
        """Keep these as well.

        Raises:
            OSError: The disk can't be written to.
        """
        kept = msgspec.structs.replace(self.load(), **changes)
        replace_private(self._file, msgspec.json.encode(kept), is_durable=False)


class Redirects:
    """Listens on a loopback port for one answer: `code`, `state` and `iss` of the login."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._server: asyncio.Server | None = None
        self._answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    async def open(self) -> None:
        """Begin to listen.

        Raises:
            OSError: The port is taken.
        """
        self._answer = asyncio.get_running_loop().create_future()
        self._server = await asyncio.start_server(self._serve, HOST, self.port, limit=REQUEST_BYTES)

    async def answer(self, seconds: float) -> dict[str, Any]:
        """Return the answer, and listen no more. Cancelling ends the listening.

        Raises:
            TimeoutError: None came.
        """
        try:
            async with asyncio.timeout(seconds):
                return await self._answer
        finally:
            if self._server is not None:
                self._server.close()
                self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError, TimeoutError, asyncio.IncompleteReadError):
            async with asyncio.timeout(REQUEST_SECONDS):
                request = (await reader.readline()).decode("latin-1").split(" ")
                query = parse_qs(urlsplit(request[1]).query) if len(request) > 1 else {}
                is_answer = "state" in query and ("code" in query or "error" in query)
                writer.write(_PAGE if is_answer else _NOT_HERE)
                await writer.drain()
                if is_answer and not self._answer.done():
                    found = {name: query.get(name, [None])[0] for name in ("code", "state", "iss")}
                    self._answer.set_result({**found, "code": found["code"] or ""})
        writer.close()


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return listener.getsockname()[1]


class OAuthLogin:
    """How one server is logged in to. `begun` hears the page that a person has to open."""

    def __init__(self, settings: OAuthSettings, file: Path, begun: Callable[[str], None]) -> None:
        self._settings = settings
        self._file = TokenFile(file)
        self._begun = begun

    async def auth(self, url: str) -> httpx2.Auth:
        """Return what puts tokens on requests, renews them, and asks a person when nothing else helps."""
        kept = self._file.load()
        port = self._settings.redirect_port or kept.port or free_port()
        redirects = Redirects(port)

        async def show(page: str) -> None:
            try:
                await redirects.open()
            except OSError as error:
                raise ServerFailure(
                    f"the login can't come back to port {port} of this machine: {error}", is_final=True
                ) from error
            self._begun(page)

        async def come_back() -> AuthorizationCodeResult:
            try:
                answer = await redirects.answer(LOGIN_SECONDS)
            except TimeoutError:
                raise ServerFailure("nobody logged in", is_final=True) from None
            return AuthorizationCodeResult(**answer)

        metadata = OAuthClientMetadata(
            client_name="Hark",
            redirect_uris=[AnyUrl(f"http://127.0.0.1:{port}{CALLBACK}")],
            grant_types=["authorization_code", "refresh_token"],
            response_types=["code"],
            token_endpoint_auth_method="client_secret_post" if self._settings.client_secret else "none",
            scope=self._settings.scope or None,
        )
        storage = _Storage(self._file, self._settings, metadata)
        provider = OAuthClientProvider(url, metadata, storage, show, come_back)
        storage.provider = provider
        _restore(provider, kept)
        return provider


class _Storage:
    """What the SDK keeps. It tells too little of it: when tokens end, and where to renew them, is kept beside."""

    def __init__(self, file: TokenFile, settings: OAuthSettings, metadata: OAuthClientMetadata) -> None:
        self._file = file
        self._settings = settings
        self._metadata = metadata
        self.provider: OAuthClientProvider | None = None

    async def get_tokens(self) -> OAuthToken | None:
        tokens = self._file.load().tokens
        return OAuthToken.model_validate(tokens) if tokens else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._file.update(
            tokens=tokens.model_dump(mode="json", exclude_none=True),
            ends_at=time.time() + tokens.expires_in if tokens.expires_in else None,
            context=_context(self.provider),
        )

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        if self._settings.client_id:
            known = self._metadata.model_dump(exclude_none=True)
            return OAuthClientInformationFull(
                **known, client_id=self._settings.client_id, client_secret=self._settings.client_secret or None
            )
        client = self._file.load().client
        return OAuthClientInformationFull.model_validate(client) if client else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        address = (self._metadata.redirect_uris or [AnyUrl("http://127.0.0.1")])[0]
        self._file.update(client=client_info.model_dump(mode="json", exclude_none=True), port=address.port or 0)


def _context(provider: OAuthClientProvider | None) -> dict[str, object]:
    if provider is None:
        return {}
    found = provider.context
    return {
        "auth_server_url": found.auth_server_url,
        "oauth_metadata": found.oauth_metadata and found.oauth_metadata.model_dump(mode="json", exclude_none=True),
        "protected": found.protected_resource_metadata
        and found.protected_resource_metadata.model_dump(mode="json", exclude_none=True),
    }


def _restore(provider: OAuthClientProvider, kept: StoredLogin) -> None:
    """Without this, tokens of an earlier run that have ended would cost a login instead of a renewal."""
    context = provider.context
    context.token_expiry_time = kept.ends_at
    address = kept.context.get("auth_server_url")
    context.auth_server_url = address if isinstance(address, str) else None
    if metadata := kept.context.get("oauth_metadata"):
        context.oauth_metadata = OAuthMetadata.model_validate(metadata)
    if protected := kept.context.get("protected"):
        context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(protected)
