"""Hooks as a route: every request to one of their paths is theirs, and no other endpoint's."""

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

from hark.protocol.agent import GatewayState
from hark.protocol.hooks import RETRY_SECONDS, Hook, HookRequest
from hark.surfaces.web.api.body import read_body
from hark.surfaces.web.api.context import WebPlace
from hark.surfaces.web.api.errors import ApiError


class HookRoutes(BaseRoute):
    """Goes before all other routes: the guard asks for no token there, so nothing else may answer there."""

    def __init__(self, place: WebPlace) -> None:
        self._place = place

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match the path alone, whatever the method is."""
        hook = self._place.hooks.known.get(scope["path"])
        if hook is None:
            return Match.NONE, {}

        async def endpoint(request: Request) -> Response:
            return await self._answer(hook, request)

        return Match.FULL, {"route": Route(hook.path, endpoint), "path_params": {}}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that matched."""
        await scope["route"].app(scope, receive, send)

    async def _answer(self, hook: Hook, request: Request) -> Response:
        if request.method != "POST":
            raise HTTPException(405, headers={"Allow": "POST"})
        if self._place.agent.state is not GatewayState.READY:
            raise ApiError(503, "draining", "The agent restarts; send it again.", {"Retry-After": f"{RETRY_SECONDS}"})
        body = await read_body(request, min(hook.most_bytes, self._place.access.max_body))
        answer = await hook.answer(HookRequest(dict(request.headers.items()), body))
        return Response(answer.text, answer.status, {"Cache-Control": "no-store", **answer.headers})
