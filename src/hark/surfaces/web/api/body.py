"""Reading a request: its body, limited in size and time, and its query. Each is decoded into a struct."""

import re
from typing import Annotated, Any, TypeVar

import anyio
import msgspec
from msgspec import Meta, inspect
from starlette.requests import ClientDisconnect, Request

from hark.protocol.commands import ShownText
from hark.surfaces.web.api.errors import ApiError

BODY_SECONDS = 300.0
MAX_ID_CHARACTERS = 200
_CLOSE_CONNECTION = {"Connection": "close"}
JSON_TYPES = ("application/json", "text/json")

Label = Annotated[str, Meta(max_length=MAX_ID_CHARACTERS)]
TurnName = Annotated[str, Meta(max_length=2 * MAX_ID_CHARACTERS)]
CharacterCount = Annotated[int, Meta(ge=0, lt=2**31, description="Characters of the reply the user has seen or heard")]

T = TypeVar("T")


class ReplyProgress(ShownText, frozen=True):
    """How much of a turn's reply the user has seen or heard."""

    turn: TurnName
    characters: CharacterCount


async def read_body(request: Request, max_bytes: int) -> bytes:
    """Return the request's body.

    Raises:
        ApiError: The body is larger than `max_bytes`, did not arrive in time, or the connection was closed before its
            end.
    """
    stated_length = request.headers.get("content-length", "")
    if stated_length.isdigit() and int(stated_length) > max_bytes:
        raise _body_too_large_error(max_bytes)
    pieces: list[bytes] = []
    size = 0
    stream = request.stream()
    try:
        with anyio.fail_after(BODY_SECONDS):
            async for piece in stream:
                size += len(piece)
                if size > max_bytes:
                    raise _body_too_large_error(max_bytes)
                pieces.append(piece)
    except TimeoutError as error:
        raise ApiError(
            408, "too_slow", f"The body did not arrive within {BODY_SECONDS:g} s.", _CLOSE_CONNECTION
        ) from error
    except ClientDisconnect as error:
        raise ApiError(400, "cut", "The connection was closed before the body was complete.") from error
    return b"".join(pieces)


async def read_json(request: Request, kind: type[T], max_bytes: int, *, may_be_empty: bool = False) -> T:
    """Return the JSON body, decoded as `kind`.

    Raises:
        ApiError: The body is too large, is not JSON, or does not match the type.
    """
    body = await read_body(request, max_bytes)
    if not body and may_be_empty:
        body = b"{}"
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type and content_type not in JSON_TYPES and not content_type.endswith("+json") and body != b"{}":
        raise ApiError(415, "not_json", "Send the body as JSON, with Content-Type: application/json.")
    return decode_json(body, kind)


def decode_json(body: bytes, kind: type[T], document: str = "GET /openapi.json") -> T:
    """Return a JSON body, decoded as `kind`. `document` names the documentation of its fields.

    Raises:
        ApiError: The body is not JSON, or does not match the type.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise _validation_error("The body", error, kind, document) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError(400, "bad_json", f"The body is not valid JSON: {error}. Send application/json.") from error


def read_query(request: Request, kind: type[T]) -> T:
    """Return the query parameters, decoded as `kind`. An empty parameter counts as absent.

    Raises:
        ApiError: A parameter has an invalid value.
    """
    parameters = {name: value for name, value in request.query_params.items() if value}
    try:
        return msgspec.convert(parameters, kind, strict=False)
    except msgspec.ValidationError as error:
        raise _validation_error("The query", error, kind) from error


def validate_text(text: str, name: str, max_characters: int, *, may_be_empty: bool = True) -> str:
    """Validate a short text, such as an id or a name, and return it unchanged.

    Raises:
        ApiError: The text is too long, is empty without `may_be_empty`, or has unprintable characters.
    """
    if len(text) > max_characters or (not text and not may_be_empty):
        min_characters = 0 if may_be_empty else 1
        raise ApiError(400, "bad_request", f"{name} must have {min_characters} to {max_characters} characters.")
    if not text.isprintable():
        raise ApiError(400, "bad_request", f"{name} has unprintable characters.")
    return text


def _validation_error(
    subject: str, error: msgspec.ValidationError, kind: Any, document: str = "GET /openapi.json"
) -> ApiError:
    """Return the error that names the invalid field, such as "limit is invalid: expected `int` <= 200.".

    For an enum, the error lists the allowed values: "delivery must be interrupt, steer or queue.".
    """
    problem, _, field = str(error).partition(" - at `$.")
    field = field.removesuffix("`")
    message = f"{field or subject} is invalid: {problem[:1].lower()}{problem[1:]}."
    values = _allowed_values(inspect.type_info(kind), re.split(r"[.\[]", field))
    if problem.startswith("Invalid enum value") and values:
        message = f"{field} must be {' or '.join(', '.join(values).rsplit(', ', 1))}."
    return ApiError(400, "bad_request", f"{message} {document} describes all fields.")


def _allowed_values(kind: inspect.Type, path: list[str]) -> list[str]:
    """Return the values of the enum at `path` within a type."""
    match kind:
        case inspect.Metadata():
            return _allowed_values(kind.type, path)
        case inspect.UnionType():
            return [value for member in kind.types for value in _allowed_values(member, path)]
        case inspect.StructType():
            field_types = [field.type for field in kind.fields if path and field.encode_name == path[0]]
            return [value for inner in field_types for value in _allowed_values(inner, path[1:])]
        case inspect.ListType():
            return _allowed_values(kind.item_type, path[1:])
        case inspect.EnumType():
            return [str(member.value) for member in kind.cls]
        case inspect.LiteralType():
            return [str(value) for value in kind.values]
        case _:
            return []


def _body_too_large_error(max_bytes: int) -> ApiError:
    message = f"The body is larger than {max_bytes / 1_000_000:g} MB. Raise [serve] max_body_mb to allow more."
    return ApiError(413, "too_large", message, _CLOSE_CONNECTION)
