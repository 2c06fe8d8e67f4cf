"""The page's login: the token once, then a cookie that scripts can't read."""

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from hark.surfaces.web.api.body import read_json
from hark.surfaces.web.api.context import WebPlace
from hark.surfaces.web.api.errors import ApiError
from hark.surfaces.web.api.json_response import json_answer
from hark.surfaces.web.guard.access import COOKIE, LOGIN_SECONDS
from hark.surfaces.web.guard.guard import check_guesses


class SentLogin(Struct, frozen=True):
    """The body of a login."""

    token: str


class PageLogin:
    """In and out."""

    def __init__(self, place: WebPlace) -> None:
        self._place = place

    async def enter(self, request: Request) -> Response:
        """Check the token, and give the browser a cookie."""
        sent = await read_json(request, SentLogin, self._place.access.max_body)
        access = self._place.access
        if not access.needs_token:
            return json_answer({"login": False})
        address = request.client.host if request.client else ""
        check_guesses(access, address)
        if not access.is_token(sent.token):
            access.guesses.wrong(address)
            raise ApiError(401, "unauthorized", "That is not the token of this server.")
        answer = json_answer({"login": True})
        is_secure = request.url.scheme == "https" or request.headers.get("origin", "").startswith("https://")
        answer.set_cookie(
            COOKIE, access.new_cookie(), LOGIN_SECONDS, path="/", secure=is_secure, httponly=True, samesite="strict"
        )
        return answer

    async def leave(self, request: Request) -> Response:
        """Have the browser forget its cookie."""
        answer = json_answer({"login": self._place.access.needs_token})
        answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
        return answer
