"""Files of a room: fetched with a limit, and named so that the name can do no harm."""

import asyncio
import base64
import re

from hark.protocol.chat import ChatError
from hark.protocol.messages import Attachment
from hark.surfaces.matrix.retries import patiently
from hark.surfaces.matrix.wire import Wire
from hark.surfaces.matrix.wire_types import Content

NAME_CHARACTERS = 120
FETCH_SECONDS = 120.0
_ADDRESS = re.compile(r"mxc://([A-Za-z0-9.:\[\]-]{1,255})/([A-Za-z0-9_-]{1,255})")
_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,100}")


def name_of(content: Content) -> str:
    """Return a file's name, without any way into folders."""
    name = (content.filename or content.body).replace("\\", "/").rpartition("/")[2]
    name = "".join(letter for letter in name if letter.isprintable()).strip(". ")
    return name[-NAME_CHARACTERS:].strip(". ") or "file"


async def fetch(wire: Wire, content: Content, most_bytes: int) -> Attachment:
    """Return the file of a message.

    Raises:
        ChatError: It can't be had; the text says why.
    """
    address = _ADDRESS.fullmatch(content.url)
    if address is None:
        raise ChatError("it is encrypted" if not content.url else "its address is no mxc:// address")
    if content.info.size > most_bytes:
        raise _too_large(most_bytes)
    try:
        async with asyncio.timeout(FETCH_SECONDS):
            found = await patiently(lambda: wire.download(address[1], address[2], most_bytes))
    except TimeoutError as error:
        raise ChatError("it took too long") from error
    if found is None:  # what the sender said about its size was not true
        raise _too_large(most_bytes)
    claimed = content.info.mimetype.partition(";")[0].strip().lower()
    media_type = claimed if _TYPE.fullmatch(claimed) else "application/octet-stream"
    return Attachment(media_type, name_of(content), base64.b64encode(found).decode())


def _too_large(most_bytes: int) -> ChatError:
    return ChatError(f"it is larger than {most_bytes / 1_000_000:g} MB")
