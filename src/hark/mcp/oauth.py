"""Logging in to a remote server: the SDK's OAuth client, with a file for its tokens and a page to come back to."""

import time
from collections.abc import Callable
from pathlib import Path

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from hark.mcp.failure import ServerFailure
from hark.mcp.redirects import Redirects, free_port
from hark.mcp.settings import OAuthSettings
from hark.mcp.tokens import StoredLogin, TokenFile

LOGIN_SECONDS = 300.0
CALLBACK = "/callback"


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
    from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata

    context = provider.context
    context.token_expiry_time = kept.ends_at
    address = kept.context.get("auth_server_url")
    context.auth_server_url = address if isinstance(address, str) else None
    if metadata := kept.context.get("oauth_metadata"):
        context.oauth_metadata = OAuthMetadata.model_validate(metadata)
    if protected := kept.context.get("protected"):
        context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(protected)
