"""What there is beside sessions, told in OpenAPI: reading across them, completions, and the page."""

from hark.surfaces.web.api.sessions import MOST_SESSIONS, USUAL_SESSIONS, WORDS_CHARACTERS
from hark.surfaces.web.api.speech import TEXT_CHARACTERS
from hark.surfaces.web.openapi.phrases import (
    EVENT_STREAM,
    SESSION_NAME,
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


def other_paths() -> Json:
    """Return the addresses that are no session's."""
    return {**_reading(), **_completions(), **_page()}


def _reading() -> Json:
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
    }


def _completions() -> Json:
    return {
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
    }


def _page() -> Json:
    return {
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
