"""The values of the API, told in OpenAPI."""

from hark.protocol.commands import Delivery
from hark.protocol.receipts import ReceiptState
from hark.surfaces.web.api.attachments import MOST_ATTACHMENTS, NAME_CHARACTERS
from hark.surfaces.web.api.body import MOST_SHOWN
from hark.surfaces.web.api.messages import ID_CHARACTERS, SOURCE_CHARACTERS
from hark.surfaces.web.api.queue import MOST_POSITION
from hark.surfaces.web.openai.types import ROLES
from hark.surfaces.web.openapi.phrases import COUNT, NUMBER, TEXT, TRUTH, Json, a_list, an_object, ref

MEDIA_TYPE = r"^[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,63}/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,100}$"
BASE64 = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_SPOKEN: Json = {"type": "string", "pattern": r"\S"}
_MAYBE_TEXT: Json = {"type": ["string", "null"]}


def schemas() -> Json:
    """Return the values, by name."""
    return {**_sent(), **_answered()}


def _sent() -> Json:
    """Return what comes in."""
    short = {"type": "string", "maxLength": ID_CHARACTERS}
    return {
        "Attachment": an_object(
            ["media_type", "data"],
            media_type={"type": "string", "pattern": MEDIA_TYPE, "examples": ["image/png"]},
            data={"type": "string", "contentEncoding": "base64", "minLength": 4, "pattern": BASE64},
            name={"type": "string", "maxLength": NAME_CHARACTERS, "pattern": r"^[^/\\]*$"},
        ),
        "Message": an_object(
            ["text"],
            text=_SPOKEN,
            id=short,
            delivery={"type": ["string", "null"], "enum": [*Delivery, None]},
            attachments={"type": "array", "items": ref("Attachment"), "maxItems": MOST_ATTACHMENTS},
            author=short,
            shown={
                "type": ["object", "null"],
                "required": ["turn", "characters"],
                "properties": {
                    "turn": {"type": "string", "maxLength": 2 * ID_CHARACTERS},
                    "characters": {"type": "integer", "minimum": 0, "maximum": MOST_SHOWN - 1},
                },
            },
        ),
        "Interrupt": an_object(
            [],
            source={"type": "string", "minLength": 1, "maxLength": SOURCE_CHARACTERS},
            turn=_MAYBE_TEXT,
            shown={"type": ["integer", "null"], "minimum": 0, "maximum": 2**31 - 1},
        ),
        "QueueChange": an_object([], text=_SPOKEN, position={"type": "integer", "minimum": 1, "maximum": MOST_POSITION})
        | {"anyOf": [{"required": ["text"]}, {"required": ["position"]}]},
        "Answer": an_object([], choice=_SPOKEN, text=_SPOKEN)
        | {"oneOf": [{"required": ["choice"]}, {"required": ["text"]}]},
        "Completion": an_object(
            ["messages"],
            model=TEXT,
            messages=a_list(an_object(["role", "content"], role={"type": "string", "enum": ROLES}, content=_SPOKEN))
            | {"minItems": 1, "description": "The last one is of the user."},
            stream={"type": ["boolean", "null"]},
        ),
    }


def _answered() -> Json:
    """Return what goes out."""
    return {
        "Error": an_object(["error"], error=an_object(["code", "message"], code=TEXT, message=TEXT)),
        "Receipt": an_object(
            ["id", "session", "state"],
            id=TEXT,
            session=TEXT,
            state={"type": "string", "enum": list(ReceiptState)},
            turn=_MAYBE_TEXT,
            position={"type": ["integer", "null"]},
            transcript=_MAYBE_TEXT,
        ),
        "Settled": an_object(
            ["turn", "outcome"], turn=_MAYBE_TEXT, outcome={"type": ["object", "null"]}, timings={"type": "object"}
        ),
        "QueueItem": an_object(["id", "text", "delivery", "state"], id=TEXT, text=TEXT, delivery=TEXT, state=TEXT),
        "Transcript": an_object(
            ["messages", "running", "seq", "cut"],
            messages=a_list(an_object(["role", "text", "turn"], role=TEXT, text=TEXT, turn=TEXT)),
            running={"type": ["object", "null"]},
            seq={"type": ["integer", "null"]},
            cut=a_list(TEXT),
        ),
        "Session": an_object(
            ["session", "title", "turns", "updated_at", "is_open", "is_waiting"],
            session=TEXT,
            title=TEXT,
            turns=COUNT,
            updated_at=NUMBER,
            is_open=TRUTH,
            is_waiting=TRUTH,
        ),
        "Health": an_object(["status"], status={"type": "string", "enum": ["starting", "ready", "draining"]}),
    }
