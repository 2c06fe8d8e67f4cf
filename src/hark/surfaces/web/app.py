"""The ASGI app: the routes of the endpoint table, the hooks before them, and the guard before both."""

from functools import partial

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hark.protocol.agent import GatewayState
from hark.protocol.hooks import RETRY_SECONDS, Hook, HookRequest
from hark.surfaces.web.api.body import read_body
from hark.surfaces.web.api.context import WebContext
from hark.surfaces.web.api.endpoint import HttpEndpoint
from hark.surfaces.web.api.errors import HANDLERS, ApiError, error_response, json_response
from hark.surfaces.web.endpoints import ENDPOINTS
from hark.surfaces.web.guard.guard import Guard
from hark.surfaces.web.metrics import Metrics

OTHER = "other"
METHODS = frozenset({"GET", "HEAD", "POST", "PATCH", "DELETE", "PUT", "OPTIONS"})


def make_app(web: WebContext) -> ASGIApp:
    """Return the app. The feeds of `web` must run as long as it does."""
    app = Starlette(routes=[HookRoutes(web), *routes_of(web)], exception_handlers=dict(HANDLERS))
    app.router.redirect_slashes = False
    return Guard(RequestCounter(app, web.metrics), web.access, web.hooks)


def routes_of(web: WebContext) -> list[Route]:
    """Return one route per path, so that a 405 response names all methods of the path."""
    paths: dict[str, dict[str, HttpEndpoint]] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    return [Route(path, partial(_respond, web, methods), methods=list(methods)) for path, methods in paths.items()]


async def _respond(web: WebContext, methods: dict[str, HttpEndpoint], request: Request) -> Response:
    method = request.method if request.method in methods else "GET"  # HEAD is a GET
    return await methods[method].respond(web, request)


class HookRoutes(BaseRoute):
    """Goes before all other routes: the guard asks for no token there, so nothing else may answer there."""

    def __init__(self, web: WebContext) -> None:
        self._web = web

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match the path alone, whatever the method is."""
        hook = self._web.hooks.known.get(scope["path"])
        if hook is None:
            return Match.NONE, {}
        return Match.FULL, {"route": Route(hook.path, partial(self._answer, hook)), "path_params": {}}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that matched."""
        await scope["route"].app(scope, receive, send)

    async def _answer(self, hook: Hook, request: Request) -> Response:
        if request.method != "POST":
            raise HTTPException(405, headers={"Allow": "POST"})
        if self._web.agent.state is not GatewayState.READY:
            raise ApiError(503, "draining", "The agent restarts; send it again.", {"Retry-After": f"{RETRY_SECONDS}"})
        body = await read_body(request, min(hook.most_bytes, self._web.access.max_body))
        answer = await hook.answer(HookRequest(dict(request.headers.items()), body))
        return Response(answer.text, answer.status, {"Cache-Control": "no-store", **answer.headers})


class RequestCounter:
    """Counts responses by method, path pattern and status. Names of sessions are not counted."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and count its status."""

        async def counting(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = scope.get("route")
                path = route.path if isinstance(route, Route) else OTHER
                method = scope["method"] if scope["method"] in METHODS else OTHER
                self._metrics.requests[method, path, message["status"]] += 1
            await send(message)

        await self._app(scope, receive, counting)


class Doorway:
    """Answers while the agent is not there yet, and hands over to the app when it is."""

    def __init__(self) -> None:
        self.app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or say that we are starting."""
        if scope["type"] != "http":
            return
        if self.app is not None:
            await self.app(scope, receive, send)
        elif scope["path"] == "/healthz":
            await json_response({"status": "starting"}, 503)(scope, receive, send)
        else:
            error = ApiError(503, "starting", "The agent is starting; try again in a second.", {"Retry-After": "1"})
            await error_response(error, scope["path"])(scope, receive, send)
