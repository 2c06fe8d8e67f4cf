"""The endpoint table. Both the routes and the OpenAPI document are generated from it."""

from typing import Any

from starlette.requests import Request

from hark.surfaces.web import page_files
from hark.surfaces.web.api import messages, queue, schedules, sessions, voice
from hark.surfaces.web.api.context import WebContext
from hark.surfaces.web.api.endpoint import HttpEndpoint
from hark.surfaces.web.guard import guard
from hark.surfaces.web.live import events
from hark.surfaces.web.openai import completions

_SESSION_PATH = "/api/sessions/{session}"
_SSE = "text/event-stream"
_AUDIO = ("application/octet-stream", "audio/ogg")


async def get_openapi(web: WebContext, request: Request) -> dict[str, Any]:
    """Return this OpenAPI document."""
    from hark.surfaces.web.openapi import make_document  # imported on demand: few servers are asked for this document

    return make_document(ENDPOINTS, web.version, web.hooks.by_path)


ENDPOINTS = (
    HttpEndpoint("POST", f"{_SESSION_PATH}/messages", messages.post_message, (202,)),
    HttpEndpoint("POST", f"{_SESSION_PATH}/voice", voice.post_voice_message, (202,), errors=(404, 409), accepts=_AUDIO),
    HttpEndpoint("POST", f"{_SESSION_PATH}/interrupt", messages.interrupt_turn, is_body_optional=True),
    HttpEndpoint("GET", f"{_SESSION_PATH}/events", events.stream_events, content=(_SSE,), headers=("Last-Event-ID",)),
    HttpEndpoint("GET", f"{_SESSION_PATH}/transcript", sessions.get_transcript),
    HttpEndpoint("GET", f"{_SESSION_PATH}/queue", queue.list_queue),
    HttpEndpoint("PATCH", f"{_SESSION_PATH}/queue/{{message}}", queue.change_queued_message, errors=(404, 409)),
    HttpEndpoint("DELETE", f"{_SESSION_PATH}/queue/{{message}}", queue.withdraw_message, errors=(404, 409)),
    HttpEndpoint("POST", f"{_SESSION_PATH}/answers/{{question}}", queue.answer_question, errors=(409,)),
    HttpEndpoint("GET", "/api/sessions", sessions.list_sessions),
    HttpEndpoint("GET", "/api/search", sessions.search_messages),
    HttpEndpoint("GET", "/api/turns/{turn}/timeline", sessions.get_timeline, errors=(404,)),
    HttpEndpoint("POST", "/api/speech", voice.synthesize_speech, (200, 204), errors=(404,), content=("audio/wav",)),
    HttpEndpoint("GET", "/api/schedules", schedules.list_schedules),
    HttpEndpoint("POST", "/api/schedules", schedules.add_schedule, (201,), errors=(409,)),
    HttpEndpoint("PATCH", "/api/schedules/{name}", schedules.pause_or_resume_schedule, errors=(404, 409)),
    HttpEndpoint("DELETE", "/api/schedules/{name}", schedules.remove_schedule, errors=(404,)),
    HttpEndpoint("POST", "/api/schedules/{name}/run", schedules.run_schedule, (202,), errors=(404,)),
    HttpEndpoint("GET", "/api/status", sessions.get_status),
    HttpEndpoint("GET", "/healthz", sessions.get_health, (200, 503), response=sessions.HealthStatus),
    HttpEndpoint("GET", "/metrics", sessions.get_metrics, content=("text/plain",)),
    HttpEndpoint("GET", "/openapi.json", get_openapi),
    HttpEndpoint("GET", "/v1/models", completions.list_models),
    HttpEndpoint(
        *("POST", "/v1/chat/completions", completions.create_completion),
        errors=(404, 409, 502),
        content=("application/json", _SSE),
        headers=(completions.SESSION_HEADER,),
    ),
    HttpEndpoint("POST", "/login", guard.log_in, errors=(401, 429), response=guard.LoginRequirement),
    HttpEndpoint("POST", "/logout", guard.log_out, response=guard.LoginRequirement),
    HttpEndpoint("GET", "/", page_files.get_index, content=("text/html",)),
    HttpEndpoint("GET", "/page/{name:path}", page_files.get_page_file, errors=(404,), content=("*/*",)),
)
