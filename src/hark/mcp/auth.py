"""OAuth login to a remote server: the SDK's OAuth client, a token file, and a local page for the redirect."""

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable
from functools import partial
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

from hark.disk.finish_in_thread import finish_in_thread
from hark.disk.private_files import replace_file
from hark.disk.stored_json import read_json
from hark.mcp.retry_policy import ServerFailure
from hark.mcp.settings import OAuthSettings

HOST = "127.0.0.1"
MAX_REQUEST_BYTES = 16_384
REQUEST_SECONDS = 10.0
_LOGIN_DONE_RESPONSE = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nConnection: close\r\n\r\n"
    b"<!doctype html><title>Hark</title><p>You can close this page and go back to Hark.</p>"
)
_NOT_FOUND_RESPONSE = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
LOGIN_SECONDS = 300.0
CALLBACK_PATH = "/callback"


class StoredLogin(msgspec.Struct, frozen=True, omit_defaults=True):
    """A saved login: the tokens, their expiry time, our client registration, and the server's OAuth metadata."""

    tokens: dict[str, Any] | None = None
    ends_at: float | None = None
    client: dict[str, Any] | None = None
    port: int = 0
    context: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


class TokenFile:
    """Reads and atomically writes a `StoredLogin`. A missing or broken file counts as an empty login."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def load(self) -> StoredLogin:
        """Return the saved login, or an empty one if the file is missing or broken."""
        try:
            return read_json(self._file, StoredLogin) or StoredLogin()
        except OSError:
            return StoredLogin()

    def update(self, **changes: object) -> None:
        """Replace these fields of the saved login.

        Raises:
            OSError: The file can't be written.
        """
        updated = msgspec.structs.replace(self.load(), **changes)
        replace_file(self._file, msgspec.json.encode(updated))


class RedirectListener:
    """Listens on a loopback port for the login's redirect, and returns its `code`, `state` and `iss`."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._server: asyncio.Server | None = None
        self._answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    async def open(self) -> None:
        """Start listening.

        Raises:
            OSError: The port is in use.
        """
        self._answer = asyncio.get_running_loop().create_future()
        self._server = await asyncio.start_server(self._handle_request, HOST, self.port, limit=MAX_REQUEST_BYTES)

    async def wait_for_redirect(self, timeout_seconds: float) -> dict[str, Any]:
        """Return the redirect's parameters and stop listening. Cancelling also stops listening.

        Raises:
            TimeoutError: No redirect arrived in time.
        """
        try:
            async with asyncio.timeout(timeout_seconds):
                return await self._answer
        finally:
            if self._server is not None:
                self._server.close()
                self._server = None

    async def _handle_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError, TimeoutError, asyncio.IncompleteReadError):
            async with asyncio.timeout(REQUEST_SECONDS):
                request = (await reader.readline()).decode("latin-1").split(" ")
                query = parse_qs(urlsplit(request[1]).query) if len(request) > 1 else {}
                is_answer = "state" in query and ("code" in query or "error" in query)
                writer.write(_LOGIN_DONE_RESPONSE if is_answer else _NOT_FOUND_RESPONSE)
                await writer.drain()
                if is_answer and not self._answer.done():
                    parameters = {name: query.get(name, [None])[0] for name in ("code", "state", "iss")}
                    self._answer.set_result({**parameters, "code": parameters["code"] or ""})
        writer.close()


def find_free_port() -> int:
    """Return a port that is currently free."""
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return listener.getsockname()[1]


class OAuthLogin:
    """Creates the OAuth client for one server. Calls `on_login_page` with the URL that the user has to open."""

    def __init__(self, settings: OAuthSettings, file: Path, on_login_page: Callable[[str], None]) -> None:
        self._settings = settings
        self._file = TokenFile(file)
        self._on_login_page = on_login_page

    async def create_auth(self, url: str) -> httpx2.Auth:
        """Return an `Auth` that adds and renews tokens, and asks the user to log in if necessary."""
        stored = self._file.load()
        port = self._settings.redirect_port or stored.port or find_free_port()
        redirects = RedirectListener(port)

        async def open_login_page(page: str) -> None:
            try:
                await redirects.open()
            except OSError as error:
                raise ServerFailure(
                    f"the login needs port {port} on this machine, which can't be opened: {error}", is_final=True
                ) from error
            self._on_login_page(page)

        async def wait_for_code() -> AuthorizationCodeResult:
            try:
                answer = await redirects.wait_for_redirect(LOGIN_SECONDS)
            except TimeoutError:
                raise ServerFailure("the login was not completed in time", is_final=True) from None
            return AuthorizationCodeResult(**answer)

        metadata = OAuthClientMetadata(
            client_name="Hark",
            redirect_uris=[AnyUrl(f"http://127.0.0.1:{port}{CALLBACK_PATH}")],
            grant_types=["authorization_code", "refresh_token"],
            response_types=["code"],
            token_endpoint_auth_method="client_secret_post" if self._settings.client_secret else "none",
            scope=self._settings.scope or None,
        )
        storage = _TokenStorage(self._file, self._settings, metadata)
        provider = OAuthClientProvider(url, metadata, storage, open_login_page, wait_for_code)
        storage.provider = provider
        _restore_context(provider, stored)
        return provider


class _TokenStorage:
    """The SDK's token storage. Also saves the expiry time and the OAuth metadata, which the SDK does not pass to it."""

    def __init__(self, file: TokenFile, settings: OAuthSettings, metadata: OAuthClientMetadata) -> None:
        self._file = file
        self._settings = settings
        self._metadata = metadata
        self.provider: OAuthClientProvider | None = None

    async def get_tokens(self) -> OAuthToken | None:
        tokens = self._file.load().tokens
        return OAuthToken.model_validate(tokens) if tokens else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        update = partial(
            self._file.update,
            tokens=tokens.model_dump(mode="json", exclude_none=True),
            ends_at=time.time() + tokens.expires_in if tokens.expires_in else None,
            context=_encode_context(self.provider),
        )
        await finish_in_thread(update)

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
        client = client_info.model_dump(mode="json", exclude_none=True)
        await finish_in_thread(partial(self._file.update, client=client, port=address.port or 0))


def _encode_context(provider: OAuthClientProvider | None) -> dict[str, object]:
    if provider is None:
        return {}
    context = provider.context
    return {
        "auth_server_url": context.auth_server_url,
        "oauth_metadata": context.oauth_metadata and context.oauth_metadata.model_dump(mode="json", exclude_none=True),
        "protected": context.protected_resource_metadata
        and context.protected_resource_metadata.model_dump(mode="json", exclude_none=True),
    }


def _restore_context(provider: OAuthClientProvider, stored: StoredLogin) -> None:
    """Restore the saved OAuth metadata. Without it, expired tokens would need a new login instead of a renewal."""
    context = provider.context
    context.token_expiry_time = stored.ends_at
    address = stored.context.get("auth_server_url")
    context.auth_server_url = address if isinstance(address, str) else None
    if metadata := stored.context.get("oauth_metadata"):
        context.oauth_metadata = OAuthMetadata.model_validate(metadata)
    if protected := stored.context.get("protected"):
        context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(protected)
