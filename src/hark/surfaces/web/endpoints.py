"""The endpoint table. The routes and the OpenAPI document are both made from it."""

from typing import Any

from starlette.requests import Request

from hark.surfaces.web import page_files
from hark.surfaces.web.api import messages, queue, schedules, sessions, voice
from hark.surfaces.web.api.context import WebContext
from hark.surfaces.web.api.endpoint import HttpEndpoint
from hark.surfaces.web.guard import guard
from hark.surfaces.web.live import events
from hark.surfaces.web.openai import completions

_S = "/api/sessions/{session}"
_SSE = "text/event-stream"
_AUDIO = ("application/octet-stream", "audio/ogg")


async def openapi(web: WebContext, request: Request) -> dict[str, Any]:
    """Return this document."""
    from hark.surfaces.web.openapi import document  # on request only: most servers are never asked for it

    return document(ENDPOINTS, web.version, web.hooks.known)


ENDPOINTS = (
    HttpEndpoint("POST", f"{_S}/messages", messages.say, (202,)),
    HttpEndpoint("POST", f"{_S}/voice", voice.hear, (202,), errors=(404, 409), accepts=_AUDIO),
    HttpEndpoint("POST", f"{_S}/interrupt", messages.interrupt, is_body_optional=True),
    HttpEndpoint("GET", f"{_S}/events", events.stream, content=(_SSE,), headers=("Last-Event-ID",)),
    HttpEndpoint("GET", f"{_S}/transcript", sessions.transcript),
    HttpEndpoint("GET", f"{_S}/queue", queue.show),
    HttpEndpoint("PATCH", f"{_S}/queue/{{message}}", queue.change, errors=(404, 409)),
    HttpEndpoint("DELETE", f"{_S}/queue/{{message}}", queue.withdraw, errors=(404, 409)),
    HttpEndpoint("POST", f"{_S}/answers/{{question}}", queue.answer, errors=(409,)),
    HttpEndpoint("GET", "/api/sessions", sessions.show),
    HttpEndpoint("GET", "/api/search", sessions.search),
    HttpEndpoint("GET", "/api/turns/{turn}/timeline", sessions.timeline, errors=(404,)),
    HttpEndpoint("POST", "/api/speech", voice.speak, (200, 204), errors=(404,), content=("audio/wav",)),
    HttpEndpoint("GET", "/api/schedules", schedules.show),
    HttpEndpoint("POST", "/api/schedules", schedules.add, (201,), errors=(409,)),
    HttpEndpoint("PATCH", "/api/schedules/{name}", schedules.change, errors=(404, 409)),
    HttpEndpoint("DELETE", "/api/schedules/{name}", schedules.remove, errors=(404,)),
    HttpEndpoint("POST", "/api/schedules/{name}/run", schedules.run, (202,), errors=(404,)),
    HttpEndpoint("GET", "/api/status", sessions.status),
    HttpEndpoint("GET", "/healthz", sessions.health, (200, 503), response=sessions.HealthStatus),
    HttpEndpoint("GET", "/metrics", sessions.metrics, content=("text/plain",)),
    HttpEndpoint("GET", "/openapi.json", openapi),
    HttpEndpoint("GET", "/v1/models", completions.models),
    HttpEndpoint(
        *("POST", "/v1/chat/completions", completions.complete),
        errors=(404, 409, 502),
        content=("application/json", _SSE),
        headers=(completions.SESSION_HEADER,),
    ),
    HttpEndpoint("POST", "/login", guard.log_in, errors=(401, 429), response=guard.LoginState),
    HttpEndpoint("POST", "/logout", guard.log_out, response=guard.LoginState),
    HttpEndpoint("GET", "/", page_files.index, content=("text/html",)),
    HttpEndpoint("GET", "/page/{name:path}", page_files.file, errors=(404,), content=("*/*",)),
)
