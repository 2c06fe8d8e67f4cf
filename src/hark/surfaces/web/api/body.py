"""Reading a request: its body, bounded in size and time, and its query, each decoded to a struct."""

import re
from typing import Annotated, Any, TypeVar

import anyio
import msgspec
from msgspec import Meta, inspect
from starlette.requests import ClientDisconnect, Request

from hark.protocol.commands import Shown
from hark.surfaces.web.api.errors import ApiError

BODY_SECONDS = 300.0
ID_CHARACTERS = 200
_CLOSE = {"Connection": "close"}
JSON_TYPES = ("application/json", "text/json")

Label = Annotated[str, Meta(max_length=ID_CHARACTERS)]
TurnName = Annotated[str, Meta(max_length=2 * ID_CHARACTERS)]
CharacterCount = Annotated[int, Meta(ge=0, lt=2**31, description="Characters of the reply the user has seen or heard")]

T = TypeVar("T")


class SentShown(Shown, frozen=True):
    """How much of a turn's reply the user has seen or heard."""

    turn: TurnName
    characters: CharacterCount


async def read_body(request: Request, most: int) -> bytes:
    """Return the body, of at most so many bytes.

    Raises:
        ApiError: It is too large, or does not come.
    """
    stated = request.headers.get("content-length", "")
    if stated.isdigit() and int(stated) > most:
        raise _too_large(most)
    pieces: list[bytes] = []
    size = 0
    stream = request.stream()
    try:
        with anyio.fail_after(BODY_SECONDS):
            async for piece in stream:
                size += len(piece)
                if size > most:
                    raise _too_large(most)
                pieces.append(piece)
    except TimeoutError as error:
        raise ApiError(408, "too_slow", f"The body did not come within {BODY_SECONDS:g} s.", _CLOSE) from error
    except ClientDisconnect as error:
        raise ApiError(400, "cut", "The connection was closed before the body had come.") from error
    return b"".join(pieces)


async def read_json(request: Request, kind: type[T], most: int, *, may_be_empty: bool = False) -> T:
    """Return the body as a value of that type.

    Raises:
        ApiError: It is no JSON, or not of that type.
    """
    body = await read_body(request, most)
    if not body and may_be_empty:
        body = b"{}"
    stated = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if stated and stated not in JSON_TYPES and not stated.endswith("+json") and body != b"{}":
        raise ApiError(415, "not_json", "Send the body as JSON, with Content-Type: application/json.")
    return decode_json(body, kind)


def decode_json(body: bytes, kind: type[T], document: str = "GET /openapi.json") -> T:
    """Return a body as a value of that type. `document` is where its fields are described.

    Raises:
        ApiError: It is no JSON, or not of that type.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise _invalid("The body", error, kind, document) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError(400, "bad_json", f"The body is not valid JSON: {error}. Send application/json.") from error


def read_query(request: Request, kind: type[T]) -> T:
    """Return the query as a value of that type. An empty parameter counts as absent.

    Raises:
        ApiError: A parameter has an invalid value.
    """
    given = {name: value for name, value in request.query_params.items() if value}
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise _invalid("The query", error, kind) from error


def checked_text(text: str, name: str, most: int, *, may_be_empty: bool = True) -> str:
    """Return a short text if it can be used as a name of something.

    Raises:
        ApiError: It is too long, or has letters that nobody can see.
    """
    if len(text) > most or (not text and not may_be_empty):
        least = 0 if may_be_empty else 1
        raise ApiError(400, "bad_request", f"{name} must have {least} to {most} characters.")
    if not text.isprintable():
        raise ApiError(400, "bad_request", f"{name} has letters that can't be printed.")
    return text


def _invalid(whole: str, error: msgspec.ValidationError, kind: Any, document: str = "GET /openapi.json") -> ApiError:
    """Return the error that names the invalid field: "limit is invalid: expected `int` <= 200.".

    For an enum it lists the allowed values: "delivery must be interrupt, steer or queue.".
    """
    what, _, field = str(error).partition(" - at `$.")
    field = field.removesuffix("`")
    words = f"{field or whole} is invalid: {what[:1].lower()}{what[1:]}."
    values = _allowed_values(inspect.type_info(kind), re.split(r"[.\[]", field))
    if what.startswith("Invalid enum value") and values:
        words = f"{field} must be {' or '.join(', '.join(values).rsplit(', ', 1))}."
    return ApiError(400, "bad_request", f"{words} {document} describes all fields.")


def _allowed_values(kind: inspect.Type, path: list[str]) -> list[str]:
    """Return the values of the enum at a path below a type."""
    match kind:
        case inspect.Metadata():
            return _allowed_values(kind.type, path)
        case inspect.UnionType():
            return [value for one in kind.types for value in _allowed_values(one, path)]
        case inspect.StructType():
            found = [field.type for field in kind.fields if path and field.encode_name == path[0]]
            return [value for one in found for value in _allowed_values(one, path[1:])]
        case inspect.ListType():
            return _allowed_values(kind.item_type, path[1:])
        case inspect.EnumType():
            return [str(one.value) for one in kind.cls]
        case inspect.LiteralType():
            return [str(value) for value in kind.values]
        case _:
            return []


def _too_large(most: int) -> ApiError:
    words = f"The body is larger than {most / 1_000_000:g} MB. A larger one is allowed by [serve] max_body_mb."
    return ApiError(413, "too_large", words, _CLOSE)
