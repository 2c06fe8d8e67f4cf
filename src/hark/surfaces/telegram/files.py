"""Files that people send: fetched within limits, under names that can do no harm."""

import asyncio
import base64
import re
import unicodedata
from dataclasses import dataclass

from aiogram.types import Message

from hark.protocol.chat import ChatError, ChatGone
from hark.protocol.messages import Attachment
from hark.surfaces.telegram.client import TelegramClient

MOST_BYTES = 20 * 1024 * 1024
AT_ONCE = 4
TRIES = 3
FETCH_SECONDS = 90.0
_MEDIA_TYPE = re.compile(r"[a-z0-9.+-]+/[a-z0-9.+-]+")
_NAME_LETTERS = 100


@dataclass(frozen=True, slots=True)
class Enclosure:
    """A file of a message, not fetched yet."""

    id: str
    name: str
    media_type: str
    size: int
    is_voice: bool = False


def enclosed(message: Message) -> Enclosure | None:
    """Return the file that a message has. A recording without words beside it stands for the text.

    A round video is one too: it can't have words beside it, and people speak in it.
    """
    if message.photo:
        photo = message.photo[-1]  # the largest
        return Enclosure(photo.file_id, f"photo-{message.message_id}.jpg", "image/jpeg", photo.file_size or 0)
    if voice := message.voice:
        kind = media_type(voice.mime_type, "audio/ogg")
        return Enclosure(voice.file_id, f"voice-{message.message_id}.ogg", kind, voice.file_size or 0, True)
    if audio := message.audio:
        kind = media_type(audio.mime_type, "audio/mpeg")
        name = safe_name(audio.file_name, f"audio-{message.message_id}")
        return Enclosure(audio.file_id, name, kind, audio.file_size or 0, not message.caption)
    if note := message.video_note:
        return Enclosure(note.file_id, f"video-{message.message_id}.mp4", "video/mp4", note.file_size or 0, True)
    if file := message.document or message.video:
        kind = media_type(file.mime_type, "application/octet-stream")
        return Enclosure(
            file.file_id, safe_name(file.file_name, f"file-{message.message_id}"), kind, file.file_size or 0
        )
    return None


def safe_name(name: str | None, otherwise: str) -> str:
    """Return a name without folders, hidden files and signs that are not seen; its ending stays when it is long."""
    last = (name or "").replace("\\", "/").rpartition("/")[2]
    seen = "".join(letter for letter in last if unicodedata.category(letter)[0] != "C").strip(" .")
    if len(seen) > _NAME_LETTERS:
        stem, dot, ending = seen.rpartition(".")
        tail = dot + ending if 0 < len(ending) <= 10 else ""
        seen = (stem or seen)[: _NAME_LETTERS - len(tail)] + tail
    return seen or otherwise


def media_type(given: str | None, otherwise: str) -> str:
    """Return a media type that is one."""
    kind = (given or "").lower()
    return kind if _MEDIA_TYPE.fullmatch(kind) else otherwise


class Fetching:
    """Fetches files, a few at once."""

    def __init__(self, client: TelegramClient) -> None:
        self._client = client
        self._places = asyncio.Semaphore(AT_ONCE)

    async def fetch(self, file: Enclosure) -> Attachment | str:
        """Return the file; or, for the text, why it is not there."""
        what = "A recording" if file.is_voice else f"The file {file.name}"
        if file.size > MOST_BYTES:
            return f"[{what} was not fetched: it is larger than 20 MB.]"
        try:
            async with self._places, asyncio.timeout(FETCH_SECONDS):
                content = await self._try(file.id)
        except TimeoutError:
            return f"[{what} was not fetched: it took too long.]"
        except ChatError as error:
            return f"[{what} was not fetched: {error}]"
        return Attachment(file.media_type, file.name, base64.b64encode(content).decode())

    async def _try(self, file: str) -> bytes:
        for number in range(1, TRIES):
            try:
                return await self._client.download(file, MOST_BYTES)
            except ChatGone:
                raise
            except ChatError as error:
                await asyncio.sleep(error.retry_after if error.retry_after is not None else 0.5 * number)
        return await self._client.download(file, MOST_BYTES)
