"""The API, told in OpenAPI."""

from typing import Any

from hark.protocol.commands import Delivery
from hark.protocol.receipts import ReceiptState
from hark.surfaces.web.attachments import MOST_ATTACHMENTS, NAME_CHARACTERS
from hark.surfaces.web.messages import ID_CHARACTERS, SOURCE_CHARACTERS
from hark.surfaces.web.queue import MOST_POSITION
from hark.surfaces.web.sessions import MOST_SESSIONS, USUAL_SESSIONS, WORDS_CHARACTERS

Json = dict[str, Any]

SESSION_NAME = r"^[A-Za-z0-9._:@+-]{1,200}$"
_TEXT: Json = {"type": "string"}
_NUMBER: Json = {"type": "number"}
_COUNT: Json = {"type": "integer"}
_TRUTH: Json = {"type": "boolean"}


def document(version: str) -> Json:
    """Return the whole document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Hark",
            "version": version,
            "description": "An agent that listens while it works. Errors are always {error: {code, message}}.",
        },
        "security": [{}, {"token": []}],
        "paths": {**_session_paths(), **_other_paths()},
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": _schemas(),
        },
    }


def _session_paths() -> Json:
    session = "/api/sessions/{session}"
    name = _in_path("session", {"type": "string", "pattern": SESSION_NAME})
    message = _in_path("message", {"type": "string", "minLength": 1})
    question = _in_path("question", {"type": "string", "minLength": 1})
    delivery = _in_query("delivery", {"type": "string", "enum": list(Delivery)})
    voice_query = [delivery, _in_query("id", _TEXT), _in_query("author", _TEXT)]
    audio = {"type": "string", "format": "binary"}
    queue = _object(["queue"], queue=_list(_ref("QueueItem")))
    return {
        f"{session}/messages": {
            "parameters": [name],
            "post": _operation("Say something", {202: _ref("Receipt")}, body=_ref("Message"), errors=(400, 413, 415)),
        },
        f"{session}/voice": {
            "parameters": [name, *voice_query],
            "post": {
                **_operation("Say something aloud", {202: _ref("Receipt")}, errors=(400, 409, 413, 415, 501, 503)),
                "requestBody": {
                    "required": True,
                    "content": {"application/octet-stream": {"schema": audio}, "audio/ogg": {}},
                },
            },
        },
        f"{session}/interrupt": {
            "parameters": [name],
            "post": _operation(
                "End the running turn; answers when it has settled",
                {200: _ref("Settled")},
                body=_ref("Interrupt"),
                needs_body=False,
                errors=(400, 413, 415),
            ),
        },
        f"{session}/events": {
            "parameters": [name, _in_query("last_event_id", _TEXT)],
            "get": {
                **_operation("The events as they come", {}, errors=(400,)),
                "responses": {"200": {"description": "Server-sent events", "content": {"text/event-stream": {}}}}
                | _errors(400),
            },
        },
        f"{session}/transcript": {
            "parameters": [name],
            "get": _operation("What was said", {200: _ref("Transcript")}, errors=(400,)),
        },
        f"{session}/queue": {
            "parameters": [name],
            "get": _operation("What waits", {200: queue}, errors=(400,)),
        },
        f"{session}/queue/{{message}}": {
            "parameters": [name, message],
            "patch": _operation(
                "Edit or move", {200: queue}, body=_ref("QueueChange"), errors=(400, 404, 409, 413, 415)
            ),
            "delete": _operation("Take out of the queue", {200: queue}, errors=(400, 404, 409)),
        },
        f"{session}/answers/{{question}}": {
            "parameters": [name, question],
            "post": _operation(
                "Answer a question",
                {200: _object(["question", "answer"], question=_TEXT, answer=_TEXT)},
                body=_ref("Answer"),
                errors=(400, 409, 413, 415),
            ),
        },
    }


def _other_paths() -> Json:
    turn = _in_path("turn", {"type": "string", "minLength": 1})
    words = _in_query("q", {"type": "string", "maxLength": WORDS_CHARACTERS})
    limit = _in_query("limit", {"type": "integer", "minimum": 1, "maximum": MOST_SESSIONS})
    hits = _in_query("limit", {"type": "integer", "minimum": 1, "maximum": USUAL_SESSIONS})
    return {
        "/api/sessions": {
            "parameters": [words, limit],
            "get": _operation(
                "The sessions, the last changed first",
                {200: _object(["sessions"], sessions=_list(_ref("Session")))},
                errors=(400,),
            ),
        },
        "/api/search": {
            "parameters": [words, hits],
            "get": _operation(
                "Messages with all the words", {200: _object(["hits"], hits=_list({"type": "object"}))}, errors=(400,)
            ),
        },
        "/api/turns/{turn}/timeline": {
            "parameters": [turn],
            "get": _operation("Where a turn's time went", {200: {"type": "object"}}, errors=(400, 404)),
        },
        "/api/status": {"get": _operation("How all of it stands", {200: {"type": "object"}})},
        "/healthz": {
            "get": _operation("Whether new turns are begun", {200: _ref("Health"), 503: _ref("Health")}, is_open=True)
        },
        "/metrics": {
            "get": {
                **_operation("Counters for Prometheus", {}),
                "responses": {"200": {"description": "Prometheus' text format", "content": {"text/plain": {}}}},
            }
        },
        "/v1/models": {"get": _operation("The routes", {200: _object(["data"], data=_list({"type": "object"}))})},
        "/v1/chat/completions": {
            "post": _operation(
                "A turn as a chat completion",
                {200: {"type": "object"}},
                body=_ref("Completion"),
                errors=(400, 404, 409, 413, 415, 502, 503),
            )
        },
        "/login": {
            "post": _operation(
                "Change the token for a cookie",
                {200: _object(["login"], login=_TRUTH)},
                body=_object(["token"], token=_TEXT),
                errors=(400, 401, 413, 415),
                is_open=True,
            )
        },
        "/logout": {"post": _operation("Forget the cookie", {200: _object(["login"], login=_TRUTH)}, is_open=True)},
        "/openapi.json": {"get": _operation("This document", {200: {"type": "object"}})},
    }


def _schemas() -> Json:
    short = {"type": "string", "maxLength": ID_CHARACTERS}
    maybe_text = {"type": ["string", "null"]}
    return {
        "Error": _object(["error"], error=_object(["code", "message"], code=_TEXT, message=_TEXT)),
        "Attachment": _object(
            ["media_type", "data"],
            media_type={"type": "string", "examples": ["image/png"]},
            data={"type": "string", "contentEncoding": "base64"},
            name={"type": "string", "maxLength": NAME_CHARACTERS},
        ),
        "Message": _object(
            ["text"],
            text=_TEXT,
            id=short,
            delivery={"type": ["string", "null"], "enum": [*Delivery, None]},
            attachments={"type": "array", "items": _ref("Attachment"), "maxItems": MOST_ATTACHMENTS},
            author=short,
        ),
        "Receipt": _object(
            ["id", "session", "state"],
            id=_TEXT,
            session=_TEXT,
            state={"type": "string", "enum": list(ReceiptState)},
            turn=maybe_text,
            position={"type": ["integer", "null"]},
            transcript=maybe_text,
        ),
        "Interrupt": _object(
            [],
            source={"type": "string", "minLength": 1, "maxLength": SOURCE_CHARACTERS},
            turn=maybe_text,
            shown={"type": ["integer", "null"], "minimum": 0, "maximum": 2**31 - 1},
        ),
        "Settled": _object(
            ["turn", "outcome"], turn=maybe_text, outcome={"type": ["object", "null"]}, timings={"type": "object"}
        ),
        "QueueItem": _object(["id", "text", "delivery", "state"], id=_TEXT, text=_TEXT, delivery=_TEXT, state=_TEXT),
        "QueueChange": _object(
            [], text=maybe_text, position={"type": ["integer", "null"], "minimum": 1, "maximum": MOST_POSITION}
        ),
        "Answer": _object([], choice=maybe_text, text=maybe_text),
        "Transcript": _object(
            ["messages", "running", "seq"],
            messages=_list(_object(["role", "text", "turn"], role=_TEXT, text=_TEXT, turn=_TEXT)),
            running={"type": ["object", "null"]},
            seq={"type": ["integer", "null"]},
        ),
        "Session": _object(
            ["session", "title", "turns", "updated_at", "is_open", "is_waiting"],
            session=_TEXT,
            title=_TEXT,
            turns=_COUNT,
            updated_at=_NUMBER,
            is_open=_TRUTH,
            is_waiting=_TRUTH,
        ),
        "Health": _object(["status"], status={"type": "string", "enum": ["starting", "ready", "draining"]}),
        "Completion": _object(
            ["messages"],
            model=_TEXT,
            messages=_list(_object(["role", "content"], role=_TEXT, content=_TEXT)),
            stream={"type": ["boolean", "null"]},
        ),
    }


def _operation(
    summary: str,
    answers: dict[int, Json],
    *,
    body: Json | None = None,
    needs_body: bool = True,
    errors: tuple[int, ...] = (),
    is_open: bool = False,
) -> Json:
    responses: Json = {
        str(status): {"description": summary, "content": {"application/json": {"schema": schema}}}
        for status, schema in answers.items()
    }
    refusals = (403,) if is_open else (401, 403)
    operation: Json = {"summary": summary, "responses": responses | _errors(*errors, *refusals)}
    if body is not None:
        operation["requestBody"] = {"required": needs_body, "content": {"application/json": {"schema": body}}}
    return operation


def _errors(*statuses: int) -> Json:
    answer = {"description": "Why not", "content": {"application/json": {"schema": _ref("Error")}}}
    return {str(status): answer for status in statuses}


def _in_path(name: str, schema: Json) -> Json:
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _in_query(name: str, schema: Json) -> Json:
    return {"name": name, "in": "query", "required": False, "schema": schema}


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(required: list[str], **properties: Json) -> Json:
    return {"type": "object", "required": required, "properties": properties}


def _list(items: Json) -> Json:
    return {"type": "array", "items": items}
