"""Files that come with a message: checked before anything of them is used."""

import base64
import binascii
import re
from typing import Annotated

from msgspec import Meta, Struct

from hark.protocol.messages import Attachment
from hark.surfaces.web.api.errors import ApiError

MOST_ATTACHMENTS = 20
NAME_CHARACTERS = 200
MEDIA_TYPE = r"^[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,63}/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,100}$"
_BASE64 = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_DATA_URL = re.compile(r"data:([^;,]*)(?:;[^;,]*)*;base64,(.*)", re.DOTALL)


class SentAttachment(Struct, frozen=True):
    """A file in base64. A path is never accepted: a client must not read the files of this machine."""

    media_type: Annotated[str, Meta(examples=["image/png"], extra_json_schema={"pattern": MEDIA_TYPE})]
    data: Annotated[str, Meta(extra_json_schema={"contentEncoding": "base64", "minLength": 4, "pattern": _BASE64})]
    name: Annotated[str, Meta(extra_json_schema={"maxLength": NAME_CHARACTERS, "pattern": r"^[^/\\]*$"})] = ""


def checked(sent: SentAttachment) -> Attachment:
    """Return a file that can be used.

    Raises:
        ApiError: Something is wrong with it.
    """
    media_type = sent.media_type.partition(";")[0].strip().lower()
    if not re.fullmatch(MEDIA_TYPE, media_type):
        raise _bad(f"{sent.media_type[:80]!r} is no media type, such as image/png")
    if sent.name and (len(sent.name) > NAME_CHARACTERS or not sent.name.isprintable()):
        raise _bad(f"its name must be of at most {NAME_CHARACTERS} letters that can be printed")
    if set(sent.name) & set("/\\") or sent.name in (".", ".."):
        raise _bad("its name must not be a path")
    if not sent.data:
        raise _bad("it has no data")
    try:
        base64.b64decode(sent.data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _bad(f"its data is not base64: {error}") from error
    return Attachment(media_type, sent.name, sent.data)


def all_checked(sent: list[SentAttachment]) -> list[Attachment]:
    """Return files that can be used.

    Raises:
        ApiError: There are too many, or something is wrong with one.
    """
    if len(sent) > MOST_ATTACHMENTS:
        raise ApiError(400, "bad_attachment", f"A message may have {MOST_ATTACHMENTS} attachments at most.")
    return [checked(one) for one in sent]


def from_data_url(url: str, name: str = "") -> Attachment:
    """Return the file that a URL holds.

    Raises:
        ApiError: It holds none: other addresses are not fetched.
    """
    found = _DATA_URL.fullmatch(url)
    if found is None:
        raise _bad("only data: URLs in base64 are taken; other addresses are not fetched")
    return checked(SentAttachment(found[1] or "application/octet-stream", found[2], name))


def _bad(why: str) -> ApiError:
    return ApiError(400, "bad_attachment", f"An attachment can't be taken: {why}.")
