"""JSON responses and errors: `{"error": {"code", "message"}}`, with OpenAI's fields for paths below /v1."""

import logging
from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from msgspec import UNSET, Struct, UnsetType
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from hark.protocol.schedules import ScheduleRefused
from hark.protocol.store import StoreError

LOG = logging.getLogger(__name__)
OPENAI_PATH = "/v1/"
_OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
_SCHEDULE_STATUSES = {"bad_schedule": 400, "unknown": 404, "exists": 409, "over": 409, "full": 409}


class ErrorDetails(Struct, frozen=True):
    """An error: a stable code, and a message that suggests a solution. `type` and `param` exist only below /v1."""

    code: str
    message: str
    type: str | UnsetType = UNSET
    param: UnsetType | None = UNSET


class ErrorResponse(Struct, frozen=True):
    """The body of every error response."""

    error: ErrorDetails


class ApiError(Exception):
    """An error that ends a request with an error response."""

    def __init__(self, status: int, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = headers or {}


def json_response(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a value as a JSON response that must not be cached."""
    body = msgspec.json.encode(value)
    return Response(body, status, {"Cache-Control": "no-store", **(headers or {})}, "application/json")


def error_body(status: int, code: str, message: str, path: str) -> ErrorResponse:
    """Return the body of an error response. Below /v1 it includes OpenAI's fields."""
    if not path.startswith(OPENAI_PATH):
        return ErrorResponse(ErrorDetails(code, message))
    default_type = "invalid_request_error" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "api_error"
    return ErrorResponse(ErrorDetails(code, message, _OPENAI_TYPES.get(status, default_type), None))


def error_response(error: ApiError, path: str) -> Response:
    """Return the response for an error."""
    return json_response(error_body(error.status, error.code, error.message, path), error.status, error.headers)


async def on_error(request: Request, error: Exception) -> Response:
    """Return the error response for any exception. Unexpected exceptions are logged."""
    match error:
        case ApiError():
            api_error = error
        case HTTPException(status_code=404):
            message = "There is nothing at this path. /openapi.json lists all paths."
            api_error = ApiError(404, "not_found", message)
        case HTTPException(status_code=405):
            message = f"This path does not support {request.method}."
            api_error = ApiError(405, "method_not_allowed", message, dict(error.headers or {}))
        case HTTPException(status_code=status):
            api_error = ApiError(status, "bad_request", HTTPStatus(status).phrase, dict(error.headers or {}))
        case ScheduleRefused():
            api_error = ApiError(_SCHEDULE_STATUSES[error.code], error.code, str(error))
        case StoreError():  # nothing was accepted
            api_error = ApiError(503, "store", str(error), {"Retry-After": "1"})
        case _:
            LOG.error("request failed: %s %s", request.method, request.url.path, exc_info=error)
            api_error = ApiError(500, "internal", "Internal error. See the log of hark serve for details.")
    return error_response(api_error, request.url.path)


HANDLERS = dict.fromkeys((ApiError, HTTPException, ScheduleRefused, StoreError, Exception), on_error)
