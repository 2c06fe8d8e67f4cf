"""The phrases of which the OpenAPI document is made."""

from typing import Any

Json = dict[str, Any]

SESSION_NAME = r"^[A-Za-z0-9._:@+-]{1,200}$"
EVENT_STREAM = "text/event-stream"
TEXT: Json = {"type": "string"}
NUMBER: Json = {"type": "number"}
COUNT: Json = {"type": "integer"}
TRUTH: Json = {"type": "boolean"}
_OF_BODIES = (408, 413, 415)
_ALWAYS = (403, 405, 503)  # foreign pages and names, other methods, a start or a store that is not there


def operation(
    summary: str,
    answers: dict[int, Json],
    *,
    body: Json | None = None,
    needs_body: bool = True,
    errors: tuple[int, ...] = (),
    others: Json | None = None,
    is_open: bool = False,
) -> Json:
    """Return an operation. `errors` are its own; those that any may have are added."""
    responses: Json = {
        str(status): {"description": summary, "content": {"application/json": {"schema": schema}}}
        for status, schema in answers.items()
    }
    if body is not None:
        errors = (*errors, *_OF_BODIES)
    refusals = _ALWAYS if is_open else (*_ALWAYS, 401, 429)
    operation: Json = {"summary": summary, "responses": _errors(*errors, *refusals) | responses | (others or {})}
    if body is not None:
        operation["requestBody"] = {"required": needs_body, "content": {"application/json": {"schema": body}}}
    return operation


def _errors(*statuses: int) -> Json:
    answer = {"description": "Why not", "content": {"application/json": {"schema": ref("Error")}}}
    return {str(status): answer for status in statuses}


def content(*types: str) -> Json:
    """Return an answer of these media types."""
    return {"description": "As it is", "content": {kind: {} for kind in types}}


def in_path(name: str, schema: Json) -> Json:
    """Return a parameter that is part of the address."""
    return {"name": name, "in": "path", "required": True, "schema": schema}


def in_query(name: str, schema: Json) -> Json:
    """Return a parameter behind the question mark."""
    return {"name": name, "in": "query", "required": False, "schema": schema}


def ref(name: str) -> Json:
    """Return what stands for one of the values."""
    return {"$ref": f"#/components/schemas/{name}"}


def an_object(required: list[str], **properties: Json) -> Json:
    """Return an object with these properties."""
    return {"type": "object", "required": required, "properties": properties}


def a_list(items: Json) -> Json:
    """Return a list of these."""
    return {"type": "array", "items": items}
