"""What can be said and read in one session, told in OpenAPI."""

from hark.protocol.commands import Delivery
from hark.surfaces.web.api.body import MOST_SHOWN
from hark.surfaces.web.openapi.phrases import (
    EVENT_STREAM,
    SESSION_NAME,
    TEXT,
    Json,
    a_list,
    an_object,
    content,
    in_path,
    in_query,
    operation,
    ref,
)

_SESSION = "/api/sessions/{session}"
_NAME = in_path("session", {"type": "string", "pattern": SESSION_NAME})


def session_paths() -> Json:
    """Return the addresses of a session."""
    return {**_talk(), **_waiting()}


def _talk() -> Json:
    delivery = in_query("delivery", {"type": "string", "enum": list(Delivery)})
    shown = in_query("shown", {"type": "integer", "minimum": 0, "maximum": MOST_SHOWN - 1})
    voice_query = [delivery, in_query("id", TEXT), in_query("author", TEXT), in_query("turn", TEXT), shown]
    audio = {"type": "string", "format": "binary"}
    return {
        f"{_SESSION}/messages": {
            "parameters": [_NAME],
            "post": operation("Say something", {202: ref("Receipt")}, body=ref("Message"), errors=(400,)),
        },
        f"{_SESSION}/voice": {
            "parameters": [_NAME, *voice_query],
            "post": {
                **operation("Say something aloud", {202: ref("Receipt")}, errors=(400, 404, 408, 409, 413, 415)),
                "requestBody": {
                    "required": True,
                    "content": {"application/octet-stream": {"schema": audio}, "audio/ogg": {}},
                },
            },
        },
        f"{_SESSION}/interrupt": {
            "parameters": [_NAME],
            "post": operation(
                "End the running turn; answers when it has settled",
                {200: ref("Settled")},
                body=ref("Interrupt"),
                needs_body=False,
                errors=(400,),
            ),
        },
        f"{_SESSION}/events": {
            "parameters": [
                _NAME,
                in_query("last_event_id", TEXT),
                {"name": "Last-Event-ID", "in": "header", "required": False, "schema": TEXT},
            ],
            "get": operation("The events as they come", {}, errors=(400,), others={"200": content(EVENT_STREAM)}),
        },
    }


def _waiting() -> Json:
    message = in_path("message", {"type": "string", "minLength": 1})
    question = in_path("question", {"type": "string", "minLength": 1})
    queue = an_object(["queue"], queue=a_list(ref("QueueItem")))
    return {
        f"{_SESSION}/transcript": {
            "parameters": [_NAME],
            "get": operation("What was said", {200: ref("Transcript")}, errors=(400,)),
        },
        f"{_SESSION}/queue": {
            "parameters": [_NAME],
            "get": operation("What waits", {200: queue}, errors=(400,)),
        },
        f"{_SESSION}/queue/{{message}}": {
            "parameters": [_NAME, message],
            "patch": operation("Edit or move", {200: queue}, body=ref("QueueChange"), errors=(400, 404, 409)),
            "delete": operation("Take out of the queue", {200: queue}, errors=(400, 404, 409)),
        },
        f"{_SESSION}/answers/{{question}}": {
            "parameters": [_NAME, question],
            "post": operation(
                "Answer a question",
                {200: an_object(["question", "answer"], question=TEXT, answer=TEXT)},
                body=ref("Answer"),
                errors=(400, 409),
            ),
        },
    }
