"""The app: which address leads to which endpoint, and the guard before all of them."""

from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hark.surfaces.web.api.answers import Answers
from hark.surfaces.web.api.context import WebPlace
from hark.surfaces.web.api.errors import HANDLERS, ApiError, error_answer
from hark.surfaces.web.api.json_response import json_answer
from hark.surfaces.web.api.messages import Messages
from hark.surfaces.web.api.queue import Queue
from hark.surfaces.web.api.schedules import ScheduleTable
from hark.surfaces.web.api.sessions import Reading
from hark.surfaces.web.api.speech import Speech
from hark.surfaces.web.api.voice import Voice
from hark.surfaces.web.guard.guard import Guard
from hark.surfaces.web.guard.login import PageLogin
from hark.surfaces.web.hook_routes import HookRoutes
from hark.surfaces.web.live.events import Events
from hark.surfaces.web.metrics import Metrics
from hark.surfaces.web.openai.completions import Completions
from hark.surfaces.web.openapi.document import document
from hark.surfaces.web.page_files import PageFiles

Endpoint = Callable[[Request], Awaitable[Response]]

_SESSION = "/api/sessions/{session}"
OTHER = "other"
METHODS = frozenset({"GET", "HEAD", "POST", "PATCH", "DELETE", "PUT", "OPTIONS"})


def make_app(place: WebPlace, version: str) -> ASGIApp:
    """Return the app over the agent that `place` knows. Its feeds must run as long as it does."""
    app = Starlette(routes=[HookRoutes(place), *routes_of(place, version)], exception_handlers=dict(HANDLERS))
    app.router.redirect_slashes = False
    return Guard(Counted(app, place.metrics), place.access, place.hooks)


def routes_of(place: WebPlace, version: str) -> list[Route]:
    """Return the addresses, and what answers there; what surfaces bring comes before them."""
    messages, queue, reading = Messages(place), Queue(place), Reading(place, version)
    completions, login, page = Completions(place), PageLogin(place), PageFiles()
    schedules = ScheduleTable(place)

    async def openapi(request: Request) -> Response:
        return json_answer(document(version, place.hooks.known))

    table: list[tuple[str, str, Endpoint]] = [
        ("POST", f"{_SESSION}/messages", messages.say),
        ("POST", f"{_SESSION}/voice", Voice(place).hear),
        ("POST", f"{_SESSION}/interrupt", messages.interrupt),
        ("GET", f"{_SESSION}/events", Events(place).stream),
        ("GET", f"{_SESSION}/transcript", reading.transcript),
        ("GET", f"{_SESSION}/queue", queue.show),
        ("POST", f"{_SESSION}/answers/{{question}}", Answers(place).answer),
        ("POST", "/api/speech", Speech(place).speak),
        ("GET", "/api/sessions", reading.sessions),
        ("POST", "/api/schedules/{name}/run", schedules.run),
        ("GET", "/api/search", reading.search),
        ("GET", "/api/turns/{turn}/timeline", reading.timeline),
        ("GET", "/api/status", reading.status),
        ("GET", "/healthz", reading.health),
        ("GET", "/metrics", reading.metrics),
        ("GET", "/openapi.json", openapi),
        ("POST", "/v1/chat/completions", completions.complete),
        ("GET", "/v1/models", completions.models),
        ("POST", "/login", login.enter),
        ("POST", "/logout", login.leave),
        ("GET", "/", page.index),
        ("GET", "/page/{name:path}", page.file),
    ]
    routes = [Route(path, endpoint, methods=[method]) for method, path, endpoint in table]
    return [
        *routes,
        _TwoWays(f"{_SESSION}/queue/{{message}}", PATCH=queue.change, DELETE=queue.withdraw),
        _TwoWays("/api/schedules", GET=schedules.show, POST=schedules.add),
        _TwoWays("/api/schedules/{name}", PATCH=schedules.change, DELETE=schedules.remove),
    ]


class _TwoWays(Route):
    """One address with two methods; as two routes, a wrong third one would name only the first."""

    def __init__(self, path: str, **ways: Endpoint) -> None:
        async def act(request: Request) -> Response:
            return await ways[request.method if request.method in ways else "GET"](request)  # HEAD is a GET

        super().__init__(path, act, methods=list(ways))


class Counted:
    """Counts the answers, by the address's pattern: names of sessions are nobody's business here."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and note its status."""

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = scope.get("route")
                path = route.path if isinstance(route, Route) else OTHER
                method = scope["method"] if scope["method"] in METHODS else OTHER
                self._metrics.requests[method, path, message["status"]] += 1
            await send(message)

        await self._app(scope, receive, noting)


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
            await json_answer({"status": "starting"}, 503)(scope, receive, send)
        else:
            error = ApiError(503, "starting", "The agent is starting; try again in a second.", {"Retry-After": "1"})
            await error_answer(error, scope["path"])(scope, receive, send)
