"""Files that come with a message: downloaded within limits of size and time, under safe names."""

import asyncio
import base64
import mimetypes
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

import aiohttp

from hark.disk.safe_name import safe_name
from hark.protocol.chat import ChatError, ChatGone
from hark.protocol.messages import Attachment
from hark.surfaces.chat.retry import retried

MOST_BYTES = 20_000_000
FETCH_SECONDS = 90.0
CHUNK_BYTES = 65_536
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,100}")


async def download(
    content: Callable[[], AsyncGenerator[bytes]],
    name: str,
    media_type: str,
    size: float = 0,
    *,
    most_bytes: int = MOST_BYTES,
    seconds: float = FETCH_SECONDS,
) -> Attachment:
    """Return a file. `content` starts one try; `size` is what the sender claims. Cancelling leaves nothing behind.

    Raises:
        ChatError: The file is too large, or could not be had. The text says why.
    """
    if size > most_bytes:
        raise _too_large(most_bytes)
    try:
        async with asyncio.timeout(seconds):
            data = await retried(lambda: _read(content, most_bytes))
    except TimeoutError:
        raise ChatError("it took too long") from None
    return Attachment(checked_media_type(media_type, name), safe_name(name), base64.b64encode(data).decode())


async def _read(content: Callable[[], AsyncGenerator[bytes]], most_bytes: int) -> bytes:
    found = bytearray()
    try:
        async with aclosing(content()) as chunks:
            async for chunk in chunks:
                found += chunk
                if len(found) > most_bytes:
                    raise _too_large(most_bytes)
    except (aiohttp.ClientError, OSError) as error:
        raise ChatError(f"the connection was lost ({type(error).__name__})") from None
    return bytes(found)


def checked_media_type(given: str, name: str) -> str:
    """Return the given media type if it is one. Without any, return the one that the file's name suggests."""
    kind = given.partition(";")[0].strip().lower() or mimetypes.guess_type(name)[0] or ""
    return kind if _MEDIA_TYPE.fullmatch(kind) else "application/octet-stream"


def not_downloaded(name: str, error: ChatError) -> str:
    """Return what stands in the message's text in the place of a file."""
    return f"[The file {safe_name(name)} was not fetched: {str(error).rstrip('.')}.]"


def _too_large(most_bytes: int) -> ChatGone:
    return ChatGone(f"it is larger than {most_bytes / 1_000_000:g} MB")
