"""The ASGI app: the access guard, then the hooks of chat platforms, then the routes from the endpoint table."""

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
from hark.surfaces.web.guard.guard import AccessGuard
from hark.surfaces.web.metrics import Metrics

OTHER = "other"
METHODS = frozenset({"GET", "HEAD", "POST", "PATCH", "DELETE", "PUT", "OPTIONS"})


def make_app(web: WebContext) -> ASGIApp:
    """Return the app. The feeds of `web` must run for as long as the app."""
    app = Starlette(routes=[HookRoutes(web), *make_routes(web)], exception_handlers=dict(HANDLERS))
    app.router.redirect_slashes = False
    return AccessGuard(RequestCounter(app, web.metrics), web.access, web.hooks)


def make_routes(web: WebContext) -> list[Route]:
    """Return one route per path, so that a 405 response names all methods of the path."""
    paths: dict[str, dict[str, HttpEndpoint]] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    return [
        Route(path, partial(_call_endpoint, web, methods), methods=list(methods)) for path, methods in paths.items()
    ]


async def _call_endpoint(web: WebContext, methods: dict[str, HttpEndpoint], request: Request) -> Response:
    method = request.method if request.method in methods else "GET"  # HEAD is handled as GET
    return await methods[method].handle(web, request)


class HookRoutes(BaseRoute):
    """The routes of chat platforms' hooks. They have priority, because the guard requires no token for their paths."""

    def __init__(self, web: WebContext) -> None:
        self._web = web

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match a hook's path with any method."""
        hook = self._web.hooks.by_path.get(scope["path"])
        if hook is None:
            return Match.NONE, {}
        return Match.FULL, {"route": Route(hook.path, partial(self._call_hook, hook)), "path_params": {}}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request that matched a route."""
        await scope["route"].app(scope, receive, send)

    async def _call_hook(self, hook: Hook, request: Request) -> Response:
        if request.method != "POST":
            raise HTTPException(405, headers={"Allow": "POST"})
        if self._web.agent.state is GatewayState.DRAINING:
            raise ApiError(
                503, "draining", "The agent is restarting. Send this again.", {"Retry-After": f"{RETRY_SECONDS}"}
            )
        body = await read_body(request, min(hook.max_bytes, self._web.access.max_body_bytes))
        response = await hook.answer(HookRequest(dict(request.headers.items()), body))
        return Response(response.text, response.status, {"Cache-Control": "no-store", **response.headers})


class RequestCounter:
    """Counts responses by method, path pattern and status. The labels don't contain session names."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request and count the status of its response."""

        async def count_and_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = scope.get("route")
                path = route.path if isinstance(route, Route) else OTHER
                method = scope["method"] if scope["method"] in METHODS else OTHER
                self._metrics.requests[method, path, message["status"]] += 1
            await send(message)

        await self._app(scope, receive, count_and_send)


class DeferredApp:
    """An app that answers 503 while the agent starts, and then forwards requests to the real app."""

    def __init__(self) -> None:
        self.app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request, or answer that the agent is starting."""
        if scope["type"] != "http":
            return
        if self.app is not None:
            await self.app(scope, receive, send)
        elif scope["path"] == "/healthz":
            await json_response({"status": "starting"}, 503)(scope, receive, send)
        else:
            error = ApiError(503, "starting", "The agent is starting. Try again in a second.", {"Retry-After": "1"})
            await error_response(error, scope["path"])(scope, receive, send)
