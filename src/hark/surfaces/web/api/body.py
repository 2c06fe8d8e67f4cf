"""The body of a request: bounded in size and time, and read as what it must be."""

from typing import TypeVar

import anyio
import msgspec
from starlette.requests import ClientDisconnect, Request

from hark.protocol.commands import Shown
from hark.surfaces.web.api.errors import ApiError

BODY_SECONDS = 300.0
ID_CHARACTERS = 200
_CLOSE = {"Connection": "close"}
MOST_SHOWN = 2**31
JSON_TYPES = ("application/json", "text/json")

T = TypeVar("T")


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
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise ApiError(400, "bad_request", f"The body is not as it should be: {error}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError(400, "bad_json", f"The body is not valid JSON: {error}.") from error


def read_number(request: Request, name: str, usual: int, most: int) -> int:
    """Return a number of the query, from 1 on.

    Raises:
        ApiError: It is none.
    """
    word = request.query_params.get(name)
    if word is None:
        return usual
    if not word.isascii() or not word.isdigit() or len(word) > 9 or not 1 <= int(word) <= most:
        raise ApiError(400, "bad_request", f"{name} must be a number from 1 to {most}.")
    return int(word)


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


def checked_names(name: str, author: str) -> tuple[str, str]:
    """Return the id and the author that a client gives to a message.

    Raises:
        ApiError: One of them can't be used.
    """
    return checked_text(name, "id", ID_CHARACTERS), checked_text(author, "author", ID_CHARACTERS)


def _too_large(most: int) -> ApiError:
    words = f"The body is larger than {most / 1_000_000:g} MB. A larger one is allowed by [serve] max_body_mb."
    return ApiError(413, "too_large", words, _CLOSE)


def checked_shown(turn: str, characters: int) -> Shown:
    """Return how much of a turn's reply was seen or heard.

    Raises:
        ApiError: It can't be that much.
    """
    if not 0 <= characters < MOST_SHOWN:
        raise ApiError(400, "bad_request", "shown must be a number of characters, from 0 on.")
    return Shown(checked_text(turn, "turn", ID_CHARACTERS * 2), characters)
