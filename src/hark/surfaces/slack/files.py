"""Files that come with a message: fetched with the token from Slack alone, within limits, under harmless names."""

import asyncio
import base64
import re
from dataclasses import dataclass, field

import aiohttp
from yarl import URL

from hark.protocol.chat import ChatError
from hark.protocol.messages import Attachment
from hark.surfaces.slack.web_api import Web
from hark.surfaces.slack.wire_types import File, read_file

MOST_BYTES = 20_000_000  # of all files of a message together
FETCH_SECONDS = 30.0
NAME_CHARACTERS = 100
_HOSTS = (".slack.com", ".slack-gov.com")


class NotTaken(Exception):
    """A file is left where it is; the text says why."""


@dataclass
class Taken:
    """What came with a message; `notes` tells of what was left."""

    attachments: list[Attachment] = field(default_factory=list[Attachment])
    voice: Attachment | None = None
    notes: list[str] = field(default_factory=list[str])


class Files:
    """Fetches files. Cancelling it leaves nothing behind."""

    def __init__(self, web: Web, session: aiohttp.ClientSession) -> None:
        self._web = web
        self._session = session

    async def take(self, files: tuple[File, ...]) -> Taken:
        """Return the files of a message; what can't be had is named in the notes, and harms nothing else."""
        taken = Taken()
        room = MOST_BYTES
        deadline = asyncio.get_running_loop().time() + FETCH_SECONDS
        for named in files:
            name = safe_name(named.name)
            try:
                async with asyncio.timeout_at(deadline):
                    file = await self._look_up(named)
                    content = await self._fetch(file, room)
            except NotTaken as error:
                taken.notes.append(f"[The file {name} was not taken: {error}]")
            except TimeoutError:
                taken.notes.append(f"[The file {name} was not taken: it did not come in time]")
            else:
                room -= len(content)
                media_type = file.mimetype.partition(";")[0].strip().lower() or "application/octet-stream"
                attachment = Attachment(media_type, name, base64.b64encode(content).decode())
                if file.subtype == "slack_audio" and taken.voice is None:
                    taken.voice = attachment
                else:
                    taken.attachments.append(attachment)
        return taken

    async def _fetch(self, file: File, room: int) -> bytes:
        if file.mode == "tombstone":
            raise NotTaken("it was deleted")
        if file.is_external or file.mode == "external":
            raise NotTaken(f"it is kept elsewhere, at {file.url_private[:500]}")
        if file.size > room:
            raise NotTaken(f"a message may bring {MOST_BYTES // 1_000_000} MB at most")
        address = file.url_private_download or file.url_private
        if not self._is_slack(address):
            raise NotTaken("it is not kept by Slack")
        try:
            return await self._download(URL(address), room, is_page="html" in file.mimetype)
        except (aiohttp.ClientError, OSError) as error:
            raise NotTaken(f"the connection was lost ({type(error).__name__})") from None

    async def _look_up(self, file: File) -> File:
        if file.file_access != "check_file_info":  # else it was shared from another workspace, and is only named
            return file
        try:
            answer = await self._web.ask("files.info", file=file.id)
        except ChatError as error:
            raise NotTaken(str(error)) from None
        return read_file(answer.get("file"))

    async def _download(self, address: URL, room: int, *, is_page: bool) -> bytes:
        headers = {"Authorization": f"Bearer {self._web.client.token}"}
        proxy = self._web.client.proxy
        # A redirect leads to a log-in page, or to somebody who must not see the token.
        async with self._session.get(address, headers=headers, allow_redirects=False, proxy=proxy) as answer:
            if answer.status != 200 or (answer.content_type == "text/html" and not is_page):
                raise NotTaken(f"Slack does not give it (HTTP {answer.status}); the app may lack the right files:read")
            content = bytearray()
            async for piece in answer.content.iter_chunked(65536):
                content += piece
                if len(content) > room:
                    raise NotTaken(f"a message may bring {MOST_BYTES // 1_000_000} MB at most")
        return bytes(content)

    def _is_slack(self, address: str) -> bool:
        """Tell whether the token may go there."""
        try:
            url, base = URL(address), URL(self._web.client.base_url)
        except ValueError:
            return False
        if url.scheme == "https" and url.host is not None and url.host.endswith(_HOSTS):
            return True
        return url.host is not None and url.origin() == base.origin()


def safe_name(name: str) -> str:
    """Return a file's name without anything that could lead elsewhere."""
    last = re.split(r"[/\\]", name)[-1]
    kept = "".join(letter for letter in last if letter.isprintable()).strip(" .")
    if len(kept) > NAME_CHARACTERS:
        stem, dot, ending = kept.rpartition(".")
        kept = f"{stem[: NAME_CHARACTERS - 10]}{dot}{ending[:9]}" if dot else kept[:NAME_CHARACTERS]
    return kept or "file"
