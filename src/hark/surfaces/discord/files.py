"""What is attached to a message: fetched within limits, under a name that is safe."""

import asyncio
import base64
import mimetypes
import re

import aiohttp

from hark.protocol.messages import Attachment

MOST_BYTES = 20 * 1024 * 1024
FETCH_SECONDS = 60.0
TRIES = 3
PAUSE_SECONDS = 0.5
LONGEST_NAME = 100


class NotFetched(Exception):
    """A file could not be had; the text says why."""


async def fetched(session: aiohttp.ClientSession, url: str, name: str, media_type: str, size: int) -> Attachment:
    """Fetch a file.

    Raises:
        NotFetched: It is too big, or could not be had.
    """
    if size > MOST_BYTES:
        raise NotFetched(f"{size / 1024 / 1024:.0f} MB are more than {MOST_BYTES // 1024 // 1024} MB")
    for attempt in range(TRIES):
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                body = await _body(session, url)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            if attempt == TRIES - 1:
                raise NotFetched("Discord did not hand it over") from error
            await asyncio.sleep(PAUSE_SECONDS)
        else:
            kind = media_type.partition(";")[0].strip() or mimetypes.guess_type(name)[0] or "application/octet-stream"
            return Attachment(kind, safe_name(name), base64.b64encode(body).decode())
    raise AssertionError


async def _body(session: aiohttp.ClientSession, url: str) -> bytes:
    body = bytearray()
    async with session.get(url) as response:
        if 400 <= response.status < 500:
            raise NotFetched(f"Discord answered {response.status}")
        response.raise_for_status()
        async for part in response.content.iter_chunked(64 * 1024):
            body += part
            if len(body) > MOST_BYTES:
                raise NotFetched("it is bigger than Discord said")
    return bytes(body)


def safe_name(name: str) -> str:
    """Return a file's name without a path, control characters, or a beginning that hides it."""
    last = re.split(r"[/\\]", name)[-1]
    clean = "".join(letter for letter in last if letter.isprintable()).strip(". ")
    return clean[-LONGEST_NAME:] or "file"
