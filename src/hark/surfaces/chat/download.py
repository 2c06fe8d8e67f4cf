"""Downloads message attachments, with limits on size and time and with safe file names."""

import asyncio
import base64
import mimetypes
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

import aiohttp

from hark.disk.file_names import sanitize_file_name
from hark.protocol.chat import ChatError, ChatGone
from hark.protocol.messages import Attachment
from hark.surfaces.chat.retry import retry_call

MAX_BYTES = 20_000_000
FETCH_SECONDS = 90.0
CHUNK_BYTES = 65_536
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,100}")


async def download(
    content: Callable[[], AsyncGenerator[bytes]],
    name: str,
    media_type: str,
    size: float = 0,
    *,
    max_bytes: int = MAX_BYTES,
    seconds: float = FETCH_SECONDS,
) -> Attachment:
    """Download a file. `content` starts one attempt; `size` is the size that the sender claims. Safe to cancel.

    Raises:
        ChatError: The file is too large or could not be downloaded. The text says why.
    """
    if size > max_bytes:
        raise _too_large(max_bytes)
    try:
        async with asyncio.timeout(seconds):
            data = await retry_call(lambda: _read_limited(content, max_bytes))
    except TimeoutError:
        raise ChatError("the download timed out") from None
    return Attachment(checked_media_type(media_type, name), sanitize_file_name(name), base64.b64encode(data).decode())


async def _read_limited(content: Callable[[], AsyncGenerator[bytes]], max_bytes: int) -> bytes:
    data = bytearray()
    try:
        async with aclosing(content()) as chunks:
            async for chunk in chunks:
                data += chunk
                if len(data) > max_bytes:
                    raise _too_large(max_bytes)
    except (aiohttp.ClientError, OSError) as error:
        raise ChatError(f"the connection was lost ({type(error).__name__})") from None
    return bytes(data)


def checked_media_type(claimed: str, name: str) -> str:
    """Return the claimed media type, or guess it from the file name. An invalid type becomes a generic one."""
    kind = claimed.partition(";")[0].strip().lower() or mimetypes.guess_type(name)[0] or ""
    return kind if _MEDIA_TYPE.fullmatch(kind) else "application/octet-stream"


def describe_failed_download(name: str, error: ChatError) -> str:
    """Return the text that replaces a file that could not be downloaded."""
    return f"[The file {sanitize_file_name(name)} was not downloaded: {str(error).rstrip('.')}.]"


def _too_large(max_bytes: int) -> ChatGone:
    return ChatGone(f"the file is larger than {max_bytes / 1_000_000:g} MB")
