"""Validation of the files that are attached to a message."""

import base64
import binascii
import re
from typing import Annotated

from msgspec import Meta, Struct

from hark.protocol.messages import Attachment
from hark.surfaces.web.api.errors import ApiError

MAX_ATTACHMENTS = 20
MAX_NAME_CHARACTERS = 200
MEDIA_TYPE_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,63}/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,100}$"
_BASE64 = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_DATA_URL = re.compile(r"data:([^;,]*)(?:;[^;,]*)*;base64,(.*)", re.DOTALL)


class AttachmentUpload(Struct, frozen=True):
    """A file in base64. Paths are not accepted, so that a client can't read the server's files."""

    media_type: Annotated[str, Meta(examples=["image/png"], extra_json_schema={"pattern": MEDIA_TYPE_PATTERN})]
    data: Annotated[str, Meta(extra_json_schema={"contentEncoding": "base64", "minLength": 4, "pattern": _BASE64})]
    name: Annotated[str, Meta(extra_json_schema={"maxLength": MAX_NAME_CHARACTERS, "pattern": r"^[^/\\]*$"})] = ""


def validate_attachment(upload: AttachmentUpload) -> Attachment:
    """Validate an uploaded file and return it as an attachment.

    Raises:
        ApiError: The media type, name or data is invalid.
    """
    media_type = upload.media_type.partition(";")[0].strip().lower()
    if not re.fullmatch(MEDIA_TYPE_PATTERN, media_type):
        raise _attachment_error(f"{upload.media_type[:80]!r} is not a media type such as image/png")
    if upload.name and (len(upload.name) > MAX_NAME_CHARACTERS or not upload.name.isprintable()):
        raise _attachment_error(f"its name must have at most {MAX_NAME_CHARACTERS} printable characters")
    if set(upload.name) & set("/\\") or upload.name in (".", ".."):
        raise _attachment_error("its name must not be a path")
    if not upload.data:
        raise _attachment_error("it has no data")
    try:
        base64.b64decode(upload.data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _attachment_error(f"its data is not base64: {error}") from error
    return Attachment(media_type, upload.name, upload.data)


def validate_attachments(uploads: list[AttachmentUpload]) -> list[Attachment]:
    """Validate the uploaded files and return them as attachments.

    Raises:
        ApiError: There are too many files, or one of them is invalid.
    """
    if len(uploads) > MAX_ATTACHMENTS:
        raise ApiError(400, "bad_attachment", f"A message can have at most {MAX_ATTACHMENTS} attachments.")
    return [validate_attachment(upload) for upload in uploads]


def attachment_from_data_url(url: str, name: str = "") -> Attachment:
    """Return the file that a base64 data: URL contains.

    Raises:
        ApiError: The URL is not a base64 data: URL. Other URLs are never fetched.
    """
    match = _DATA_URL.fullmatch(url)
    if match is None:
        raise _attachment_error("only base64 data: URLs are accepted; other URLs are not fetched")
    return validate_attachment(AttachmentUpload(match[1] or "application/octet-stream", match[2], name))


def _attachment_error(reason: str) -> ApiError:
    return ApiError(400, "bad_attachment", f"Invalid attachment: {reason}.")
