"""Errors as every endpoint tells them: `{"error": {"code", "message"}}`, and OpenAI's shape below /v1."""

import logging
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from hark.protocol.store import StoreError
from hark.surfaces.web.api.json_response import json_answer

LOG = logging.getLogger(__name__)
OPENAI_PATH = "/v1/"
_OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


class ApiError(Exception):
    """What is told instead of an answer: the status, a stable code, and words that say what to do."""

    def __init__(self, status: int, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = headers or {}


def error_body(status: int, code: str, message: str, path: str) -> dict[str, object]:
    """Return the body of an error."""
    error: dict[str, object] = {"code": code, "message": message}
    if path.startswith(OPENAI_PATH):
        kind = _OPENAI_TYPES.get(
            status, "invalid_request_error" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "api_error"
        )
        error |= {"type": kind, "param": None}
    return {"error": error}


def error_answer(error: ApiError, path: str) -> Response:
    """Return an error as an answer."""
    return json_answer(error_body(error.status, error.code, error.message, path), error.status, error.headers)


async def on_api_error(request: Request, error: Exception) -> Response:
    """Tell an error of ours."""
    assert isinstance(error, ApiError)
    return error_answer(error, request.url.path)


async def on_http_error(request: Request, error: Exception) -> Response:
    """Tell what the router found wrong: no such path, no such method."""
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    code = {404: "not_found", 405: "method_not_allowed"}.get(status, "bad_request")
    words = {
        404: "There is nothing under this address; /openapi.json tells what there is.",
        405: f"{request.method} is not possible here.",
    }.get(status, status.phrase)
    return error_answer(ApiError(status, code, words, dict(error.headers or {})), request.url.path)


async def on_store_error(request: Request, error: Exception) -> Response:
    """The sessions can't be read or written at present: nothing was accepted."""
    return error_answer(ApiError(503, "store", str(error), {"Retry-After": "1"}), request.url.path)


async def on_any_error(request: Request, error: Exception) -> Response:
    """The surface's boundary: the log has what happened, the outside has a sentence."""
    LOG.error("a request failed: %s %s", request.method, request.url.path, exc_info=error)
    told = ApiError(500, "internal", "Something went wrong inside; the log of hark has the details.")
    return error_answer(told, request.url.path)


HANDLERS = {ApiError: on_api_error, HTTPException: on_http_error, StoreError: on_store_error, Exception: on_any_error}
