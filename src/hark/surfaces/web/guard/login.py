"""The page's login: the token once, then a cookie that scripts can't read."""

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from hark.surfaces.web.api.context import WebContext
from hark.surfaces.web.api.errors import ApiError, json_response
from hark.surfaces.web.guard.access import COOKIE, LOGIN_SECONDS
from hark.surfaces.web.guard.guard import is_token


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
