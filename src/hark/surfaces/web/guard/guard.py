"""The guard before every endpoint, and the page's login: the token once, then a cookie that scripts can't read."""

from http.cookies import CookieError, SimpleCookie

from msgspec import Struct
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hark.surfaces.web.api.context import WebContext
from hark.surfaces.web.api.errors import ApiError, error_response, json_response
from hark.surfaces.web.guard.access import COOKIE, LOGIN_SECONDS, Access
from hark.surfaces.web.hooks import Hooks

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
OPEN_PATHS = ("/", "/healthz", "/login", "/logout", "/favicon.ico")
PAGE_PATH = "/page/"
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src 'self' blob:; "
    "connect-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_ANSWER_HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "microphone=(self), camera=(), geolocation=()",
}


class Guard:
    """Lets a request through, or answers it with what is wrong.

    What a platform sends to its hook comes without a token: its signature is checked there.
    """

    def __init__(self, app: ASGIApp, access: Access, hooks: Hooks) -> None:
        self._app = app
        self._access = access
        self._hooks = hooks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request; other things than requests are not for us."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                for name, value in _ANSWER_HEADERS.items():
                    answer.setdefault(name, value)
            await send(message)

        try:
            self._check(scope, headers)
        except ApiError as error:
            await error_response(error, scope["path"])(scope, receive, send_with_headers)
            return
        await self._app(scope, receive, send_with_headers)

    def _check(self, scope: Scope, headers: Headers) -> None:
        method, path = scope["method"], scope["path"]
        host = headers.get("host", "")
        if len(headers.getlist("host")) != 1 or not self._access.is_our_host(host):
            raise ApiError(
                403, "foreign_host", "That is no name of this server. [serve] hosts names those that it may have."
            )
        if path in self._hooks.known:
            return
        is_ours = self._is_own_page(headers, host, is_page=path == "/")
        if not self._access.needs_token or is_open_path(path):
            return
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and is_token(self._access, token.strip(), (scope.get("client") or ("",))[0]):
            return
        # A browser sends a cookie by itself, so that alone is no proof that our own page is asking.
        if self._access.is_cookie(_cookie(headers)) and (method in SAFE_METHODS or is_ours):
            return
        raise ApiError(
            401, "unauthorized", "Send the token: Authorization: Bearer TOKEN.", {"WWW-Authenticate": "Bearer"}
        )

    def _is_own_page(self, headers: Headers, host: str, *, is_page: bool) -> bool:
        """Tell whether our own page surely asks.

        Raises:
            ApiError: Another one does.
        """
        origins = headers.getlist("origin")
        if any(not self._access.is_same_origin(origin, host) for origin in origins):
            raise ApiError(403, "foreign_origin", "Pages of other origins may not talk to this server.")
        site = headers.get("sec-fetch-site", "")
        if site in ("cross-site", "same-site") and not is_page:
            raise ApiError(403, "foreign_origin", "Pages of other sites may not use this server.")
        return bool(origins) or site == "same-origin"


def is_open_path(path: str) -> bool:
    """Return whether a path needs no token."""
    return path in OPEN_PATHS or path.startswith(PAGE_PATH)


def is_token(access: Access, token: str, address: str) -> bool:
    """Return whether this is the token. Wrong ones are counted by address.

    Raises:
        ApiError: The address sent too many wrong tokens.
    """
    if seconds := access.guesses.wait_seconds(address):
        words = f"Too many wrong tokens came from your address; try again in {seconds} s."
        raise ApiError(429, "too_many_tries", words, {"Retry-After": str(seconds)})
    is_right = access.is_token(token)
    if not is_right:
        access.guesses.wrong(address)
    return is_right


def _cookie(headers: Headers) -> str:
    try:
        cookies = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return ""
    return cookies[COOKIE].value if COOKIE in cookies else ""


class SentLogin(Struct, frozen=True):
    """A login with the token."""

    token: str


class LoginState(Struct, frozen=True):
    """Whether this server needs a login."""

    login: bool


async def log_in(web: WebContext, request: Request, body: SentLogin) -> Response:
    """Exchange the token for a cookie."""
    access = web.access
    if not access.needs_token:
        return json_response(LoginState(False))
    address = request.client.host if request.client else ""
    if not is_token(access, body.token, address):
        raise ApiError(401, "unauthorized", "That is not the token of this server.")
    answer = json_response(LoginState(True))
    is_secure = request.url.scheme == "https" or request.headers.get("origin", "").startswith("https://")
    answer.set_cookie(
        COOKIE, access.new_cookie(), LOGIN_SECONDS, path="/", secure=is_secure, httponly=True, samesite="strict"
    )
    return answer


async def log_out(web: WebContext, request: Request) -> Response:
    """Delete the cookie."""
    answer = json_response(LoginState(web.access.needs_token))
    answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return answer
