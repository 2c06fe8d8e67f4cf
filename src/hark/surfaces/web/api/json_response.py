"""Answers as JSON."""

from collections.abc import Mapping

import msgspec
from starlette.responses import Response


def json_answer(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a value as JSON; nobody may keep it."""
    body = msgspec.json.encode(value)
    return Response(body, status, {"Cache-Control": "no-store", **(headers or {})}, "application/json")
