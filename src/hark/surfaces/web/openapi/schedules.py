"""The schedules, told in OpenAPI."""

from hark.protocol.commands import Delivery
from hark.protocol.schedules import RunState
from hark.surfaces.web.api.schedules import PROMPT_CHARACTERS, WORDS_CHARACTERS
from hark.surfaces.web.openapi.phrases import NUMBER, TEXT, TRUTH, Json, a_list, an_object, in_path, operation, ref


def schedule_paths() -> Json:
    """Return the addresses of schedules."""
    name = in_path("name", {"type": "string", "minLength": 1})
    return {
        "/api/schedules": {
            "get": operation("The schedules", {200: an_object(["schedules"], schedules=a_list(ref("Schedule")))}),
            "post": operation("Add a schedule", {201: ref("Schedule")}, body=ref("NewSchedule"), errors=(400, 409)),
        },
        "/api/schedules/{name}": {
            "parameters": [name],
            "patch": operation(
                "Pause or resume",
                {200: ref("Schedule")},
                body=an_object(["paused"], paused=TRUTH),
                errors=(400, 404, 409),
            ),
            "delete": operation("Forget a schedule", {200: ref("Schedule")}, errors=(400, 404)),
        },
        "/api/schedules/{name}/run": {
            "parameters": [name],
            "post": operation("Say its prompt now", {202: ref("Receipt")}, errors=(400, 404)),
        },
    }


def schedule_schemas() -> Json:
    """Return the shapes of schedules."""
    words = {"type": "string", "maxLength": WORDS_CHARACTERS}
    run = an_object(
        ["due", "at", "state", "message", "turn", "note", "detail"],
        due=NUMBER,
        at=NUMBER,
        state={"type": "string", "enum": list(RunState)},
        message=TEXT,
        turn=TEXT,
        note=TEXT,
        detail=TEXT,
    )
    return {
        "NewSchedule": an_object(
            ["when", "prompt"],
            when={**words, "examples": ["0 9 * * mon-fri", "every 30 minutes", "at 18:30", "2026-12-01 09:00"]},
            prompt={"type": "string", "minLength": 1, "maxLength": PROMPT_CHARACTERS},
            session=words,
            name=words,
            timezone={**words, "examples": ["Europe/Zurich", "UTC"]},
            delivery={"type": "string", "enum": list(Delivery)},
            once=TRUTH,
        ),
        "Schedule": an_object(
            ["name", "when", "rule", "prompt", "session", "timezone", "delivery", "once", "state", "next", "last"],
            name=TEXT,
            when=TEXT,
            rule=TEXT,
            prompt=TEXT,
            session=TEXT,
            timezone=TEXT,
            delivery={"type": "string", "enum": list(Delivery)},
            once=TRUTH,
            state={"type": "string", "enum": ["active", "paused", "over"]},
            next_at={"type": ["number", "null"]},
            next={"type": ["string", "null"]},
            last={"anyOf": [run, {"type": "null"}]},
        ),
    }
