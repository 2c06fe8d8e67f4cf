"""What went wrong with a server, in words for a person and a model."""

from typing import cast

import httpx2
import mcp_types as types
from mcp.client.auth import OAuthFlowError
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from hark.mcp.failure import ServerFailure
from hark.mcp.settings import ServerSettingsError

ERROR_CHARACTERS = 500


def failure_of(error: BaseException, known: str) -> ServerFailure:
    """Return why a connection failed. `known` is what the way to the server knows of it, and says more than errors."""
    first = _first(error)
    match first:
        case ServerFailure():
            return first
        case ServerSettingsError():
            return ServerFailure(str(first), is_final=True)
        case OAuthFlowError():
            return ServerFailure(f"the login failed: {first}"[:ERROR_CHARACTERS], is_final=True)
        case _:
            return ServerFailure(known or explained(first))


def explained(error: BaseException) -> str:
    """Return what an error of the SDK, of HTTP or of the system means."""
    match error:
        case MCPError(error=types.ErrorData(code=types.CONNECTION_CLOSED)):
            text = "the connection was closed"
        case MCPError():
            text = error.error.message
        case ValidationError():
            places = ".".join(str(part) for part in error.errors()[0]["loc"][:4])
            text = f"what it sent is not valid MCP: {places} {error.errors()[0]['msg']}"
        case httpx2.ConnectError() | httpx2.ConnectTimeout():
            text = f"it can't be reached: {error or 'no answer'}"
        case httpx2.HTTPError():
            text = f"the connection broke: {error or type(error).__name__}"
        case _:
            text = f"{error}" or type(error).__name__
    return text[:ERROR_CHARACTERS]


def _first(error: BaseException) -> BaseException:
    """Return the error that a group is about: task groups wrap even a single one."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error
