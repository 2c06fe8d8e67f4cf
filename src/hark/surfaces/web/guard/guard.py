"""The guard in front of every endpoint, and the page's login, which exchanges the token for an HttpOnly cookie."""

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
_RESPONSE_HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "microphone=(self), camera=(), geolocation=()",
}


class AccessGuard:
    """Middleware that rejects unauthorized requests and adds security headers to all responses.

    Requests to a platform's hook need no token: the hook checks their signature.
    """

    def __init__(self, app: ASGIApp, access: Access, hooks: Hooks) -> None:
        self._app = app
        self._access = access
        self._hooks = hooks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check and forward an HTTP request. Ignores everything else, such as WebSocket connections."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                response_headers = MutableHeaders(scope=message)
                for name, value in _RESPONSE_HEADERS.items():
                    response_headers.setdefault(name, value)
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
            raise ApiError(403, "foreign_host", "This host name is not allowed. Add it to [serve] hosts.")
        if path in self._hooks.by_path:
            return
        is_own_page = self._is_own_page_request(headers, host, is_page=path == "/")
        if not self._access.needs_token or is_open_path(path):
            return
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and check_token(self._access, token.strip(), (scope.get("client") or ("",))[0]):
            return
        # Browsers send cookies automatically, so a cookie alone doesn't prove that our own page sent the request.
        if self._access.is_valid_cookie(_login_cookie(headers)) and (method in SAFE_METHODS or is_own_page):
            return
        raise ApiError(
            401, "unauthorized", "Send the token: Authorization: Bearer TOKEN.", {"WWW-Authenticate": "Bearer"}
        )

    def _is_own_page_request(self, headers: Headers, host: str, *, is_page: bool) -> bool:
        """Return whether the headers prove that our own page sent the request.

        Raises:
            ApiError: A page from another origin or site sent the request.
        """
        origins = headers.getlist("origin")
        if any(not self._access.is_same_origin(origin, host) for origin in origins):
            raise ApiError(403, "foreign_origin", "Pages of other origins may not use this server.")
        site = headers.get("sec-fetch-site", "")
        if site in ("cross-site", "same-site") and not is_page:
            raise ApiError(403, "foreign_origin", "Pages of other sites may not use this server.")
        return bool(origins) or site == "same-origin"


def is_open_path(path: str) -> bool:
    """Return whether a path needs no token."""
    return path in OPEN_PATHS or path.startswith(PAGE_PATH)


def check_token(access: Access, token: str, address: str) -> bool:
    """Return whether `token` is the server's token. Wrong tokens are counted by address.

    Raises:
        ApiError: The address sent too many wrong tokens.
    """
    if seconds := access.wrong_tokens.lockout_seconds(address):
        message = f"Too many wrong tokens from your address. Try again in {seconds} s."
        raise ApiError(429, "too_many_tries", message, {"Retry-After": str(seconds)})
    is_right = access.is_valid_token(token)
    if not is_right:
        access.wrong_tokens.count_wrong_token(address)
    return is_right


def _login_cookie(headers: Headers) -> str:
    try:
        cookies = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return ""
    return cookies[COOKIE].value if COOKIE in cookies else ""


class LoginRequest(Struct, frozen=True):
    """A login with the token."""

    token: str


class LoginRequirement(Struct, frozen=True):
    """Whether this server needs a login."""

    login: bool


async def log_in(web: WebContext, request: Request, body: LoginRequest) -> Response:
    """Exchange the token for a cookie."""
    access = web.access
    if not access.needs_token:
        return json_response(LoginRequirement(False))
    address = request.client.host if request.client else ""
    if not check_token(access, body.token, address):
        raise ApiError(401, "unauthorized", "The token is wrong.")
    response = json_response(LoginRequirement(True))
    is_secure = request.url.scheme == "https" or request.headers.get("origin", "").startswith("https://")
    response.set_cookie(
        COOKIE, access.new_cookie(), LOGIN_SECONDS, path="/", secure=is_secure, httponly=True, samesite="strict"
    )
    return response


async def log_out(web: WebContext, request: Request) -> Response:
    """Delete the cookie."""
    response = json_response(LoginRequirement(web.access.needs_token))
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return response
