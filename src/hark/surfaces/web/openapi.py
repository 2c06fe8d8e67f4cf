"""The API, told in OpenAPI."""

from hark.protocol.commands import Delivery
from hark.surfaces.web.access import COOKIE
from hark.surfaces.web.body import MOST_SHOWN
from hark.surfaces.web.openapi_schedules import schedule_paths, schedule_schemas
from hark.surfaces.web.openapi_values import schemas
from hark.surfaces.web.openapi_words import (
    TEXT,
    TRUTH,
    Json,
    a_list,
    an_object,
    content,
    in_path,
    in_query,
    operation,
    ref,
)
from hark.surfaces.web.sessions import MOST_SESSIONS, USUAL_SESSIONS, WORDS_CHARACTERS
from hark.surfaces.web.speech import TEXT_CHARACTERS

SESSION_NAME = r"^[A-Za-z0-9._:@+-]{1,200}$"
EVENT_STREAM = "text/event-stream"


def document(version: str) -> Json:
    """Return the whole document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Hark",
            "version": version,
            "description": "An agent that listens while it works. Errors are always {error: {code, message}}.",
        },
        "security": [{}, {"token": []}, {"login": []}],
        "paths": {**_session_paths(), **_other_paths(), **schedule_paths()},
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "login": {"type": "apiKey", "in": "cookie", "name": COOKIE},
            },
            "schemas": {**schemas(), **schedule_schemas()},
        },
    }


def _session_paths() -> Json:
    session = "/api/sessions/{session}"
    name = in_path("session", {"type": "string", "pattern": SESSION_NAME})
    message = in_path("message", {"type": "string", "minLength": 1})
    question = in_path("question", {"type": "string", "minLength": 1})
    delivery = in_query("delivery", {"type": "string", "enum": list(Delivery)})
    shown = in_query("shown", {"type": "integer", "minimum": 0, "maximum": MOST_SHOWN - 1})
    voice_query = [delivery, in_query("id", TEXT), in_query("author", TEXT), in_query("turn", TEXT), shown]
    audio = {"type": "string", "format": "binary"}
    queue = an_object(["queue"], queue=a_list(ref("QueueItem")))
    return {
        f"{session}/messages": {
            "parameters": [name],
            "post": operation("Say something", {202: ref("Receipt")}, body=ref("Message"), errors=(400,)),
        },
        f"{session}/voice": {
            "parameters": [name, *voice_query],
            "post": {
                **operation("Say something aloud", {202: ref("Receipt")}, errors=(400, 404, 408, 409, 413, 415)),
                "requestBody": {
                    "required": True,
                    "content": {"application/octet-stream": {"schema": audio}, "audio/ogg": {}},
                },
            },
        },
        f"{session}/interrupt": {
            "parameters": [name],
            "post": operation(
                "End the running turn; answers when it has settled",
                {200: ref("Settled")},
                body=ref("Interrupt"),
                needs_body=False,
                errors=(400,),
            ),
        },
        f"{session}/events": {
            "parameters": [
                name,
                in_query("last_event_id", TEXT),
                {"name": "Last-Event-ID", "in": "header", "required": False, "schema": TEXT},
            ],
            "get": operation("The events as they come", {}, errors=(400,), others={"200": content(EVENT_STREAM)}),
        },
        f"{session}/transcript": {
            "parameters": [name],
            "get": operation("What was said", {200: ref("Transcript")}, errors=(400,)),
        },
        f"{session}/queue": {
            "parameters": [name],
            "get": operation("What waits", {200: queue}, errors=(400,)),
        },
        f"{session}/queue/{{message}}": {
            "parameters": [name, message],
            "patch": operation("Edit or move", {200: queue}, body=ref("QueueChange"), errors=(400, 404, 409)),
            "delete": operation("Take out of the queue", {200: queue}, errors=(400, 404, 409)),
        },
        f"{session}/answers/{{question}}": {
            "parameters": [name, question],
            "post": operation(
                "Answer a question",
                {200: an_object(["question", "answer"], question=TEXT, answer=TEXT)},
                body=ref("Answer"),
                errors=(400, 409),
            ),
        },
    }


def _other_paths() -> Json:
    turn = in_path("turn", {"type": "string", "minLength": 1})
    words = in_query("q", {"type": "string", "maxLength": WORDS_CHARACTERS})
    limit = in_query("limit", {"type": "integer", "minimum": 1, "maximum": MOST_SESSIONS})
    hits = in_query("limit", {"type": "integer", "minimum": 1, "maximum": USUAL_SESSIONS})
    return {
        "/api/sessions": {
            "parameters": [words, limit],
            "get": operation(
                "The sessions, the last changed first",
                {200: an_object(["sessions"], sessions=a_list(ref("Session")))},
                errors=(400,),
            ),
        },
        "/api/search": {
            "parameters": [words, hits],
            "get": operation(
                "Messages with all the words",
                {200: an_object(["hits"], hits=a_list({"type": "object"}))},
                errors=(400,),
            ),
        },
        "/api/turns/{turn}/timeline": {
            "parameters": [turn],
            "get": operation("Where a turn's time went", {200: {"type": "object"}}, errors=(400, 404)),
        },
        "/api/speech": {
            "post": operation(
                "A text spoken aloud; 204 when there is nothing in it that can be said",
                {},
                body=an_object(["text"], text={"type": "string", "maxLength": TEXT_CHARACTERS}),
                errors=(400, 404),
                others={"200": content("audio/wav"), "204": {"description": "There is nothing to say"}},
            )
        },
        "/api/status": {"get": operation("How all of it stands", {200: {"type": "object"}})},
        "/healthz": {
            "get": operation("Whether new turns are begun", {200: ref("Health"), 503: ref("Health")}, is_open=True)
        },
        "/metrics": {"get": operation("Counters for Prometheus", {}, others={"200": content("text/plain")})},
        "/v1/models": {"get": operation("The routes", {200: an_object(["data"], data=a_list({"type": "object"}))})},
        "/v1/chat/completions": {
            "parameters": [
                {
                    "name": "X-Hark-Session",
                    "in": "header",
                    "required": False,
                    "schema": {"type": "string", "pattern": SESSION_NAME},
                }
            ],
            "post": operation(
                "A turn as a chat completion; with `stream`, as it comes",
                {},
                body=ref("Completion"),
                errors=(400, 404, 409, 502),
                others={"200": content("application/json", EVENT_STREAM)},
            ),
        },
        "/login": {
            "post": operation(
                "Change the token for a cookie",
                {200: an_object(["login"], login=TRUTH)},
                body=an_object(["token"], token=TEXT),
                errors=(400, 401, 429),
                is_open=True,
            )
        },
        "/logout": {"post": operation("Forget the cookie", {200: an_object(["login"], login=TRUTH)}, is_open=True)},
        "/openapi.json": {"get": operation("This document", {200: {"type": "object"}})},
        "/": {"get": operation("The web page", {}, others={"200": content("text/html")}, is_open=True)},
        "/page/{name}": {
            "parameters": [in_path("name", {"type": "string", "minLength": 1})],
            "get": operation("A file of the page", {}, errors=(404,), others={"200": content("*/*")}, is_open=True),
        },
    }
