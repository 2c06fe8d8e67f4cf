"""The endpoint table. The routes and the OpenAPI document are both made from it."""

from typing import Any

from starlette.requests import Request

from hark.surfaces.web.api.context import WebContext
from hark.surfaces.web.api.endpoint import HttpEndpoint
from hark.surfaces.web.api.messages import interrupt, post_message
from hark.surfaces.web.api.queue import answer_question, change_queued, show_queue, withdraw_queued
from hark.surfaces.web.api.schedules import (
    add_schedule,
    change_schedule,
    list_schedules,
    remove_schedule,
    run_schedule,
)
from hark.surfaces.web.api.sessions import (
    HealthStatus,
    health,
    list_sessions,
    prometheus_metrics,
    search,
    status,
    timeline,
    transcript,
)
from hark.surfaces.web.api.speech import speak
from hark.surfaces.web.api.voice import post_recording
from hark.surfaces.web.guard.login import LoginState, log_in, log_out
from hark.surfaces.web.live.events import stream_events
from hark.surfaces.web.openai.completions import SESSION_HEADER, complete, list_models
from hark.surfaces.web.page_files import page_file, page_index

_SSE = "text/event-stream"
_AUDIO = ("application/octet-stream", "audio/ogg")


async def openapi(web: WebContext, request: Request) -> dict[str, Any]:
    """Return this document."""
    from hark.surfaces.web.openapi import document  # only on request: a start must not build schemas

    return document(ENDPOINTS, web.version, web.hooks.known)


_S = "/api/sessions/{session}"
ENDPOINTS = (
    HttpEndpoint("POST", f"{_S}/messages", post_message, (202,)),
    HttpEndpoint("POST", f"{_S}/voice", post_recording, (202,), errors=(404, 409), accepts=_AUDIO),
    HttpEndpoint("POST", f"{_S}/interrupt", interrupt, is_body_optional=True),
    HttpEndpoint("GET", f"{_S}/events", stream_events, content=(_SSE,), headers=("Last-Event-ID",)),
    HttpEndpoint("GET", f"{_S}/transcript", transcript),
    HttpEndpoint("GET", f"{_S}/queue", show_queue),
    HttpEndpoint("PATCH", f"{_S}/queue/{{message}}", change_queued, errors=(404, 409)),
    HttpEndpoint("DELETE", f"{_S}/queue/{{message}}", withdraw_queued, errors=(404, 409)),
    HttpEndpoint("POST", f"{_S}/answers/{{question}}", answer_question, errors=(409,)),
    HttpEndpoint("GET", "/api/sessions", list_sessions),
    HttpEndpoint("GET", "/api/search", search),
    HttpEndpoint("GET", "/api/turns/{turn}/timeline", timeline, errors=(404,)),
    HttpEndpoint("POST", "/api/speech", speak, (200, 204), errors=(404,), content=("audio/wav",)),
    HttpEndpoint("GET", "/api/schedules", list_schedules),
    HttpEndpoint("POST", "/api/schedules", add_schedule, (201,), errors=(409,)),
    HttpEndpoint("PATCH", "/api/schedules/{name}", change_schedule, errors=(404, 409)),
    HttpEndpoint("DELETE", "/api/schedules/{name}", remove_schedule, errors=(404,)),
    HttpEndpoint("POST", "/api/schedules/{name}/run", run_schedule, (202,), errors=(404,)),
    HttpEndpoint("GET", "/api/status", status),
    HttpEndpoint("GET", "/healthz", health, (200, 503), response=HealthStatus),
    HttpEndpoint("GET", "/metrics", prometheus_metrics, content=("text/plain",)),
    HttpEndpoint("GET", "/openapi.json", openapi),
    HttpEndpoint("GET", "/v1/models", list_models),
    HttpEndpoint(
        *("POST", "/v1/chat/completions", complete),
        errors=(404, 409, 502),
        content=("application/json", _SSE),
        headers=(SESSION_HEADER,),
    ),
    HttpEndpoint("POST", "/login", log_in, errors=(401, 429), response=LoginState),
    HttpEndpoint("POST", "/logout", log_out, response=LoginState),
    HttpEndpoint("GET", "/", page_index, content=("text/html",)),
    HttpEndpoint("GET", "/page/{name:path}", page_file, errors=(404,), content=("*/*",)),
)
