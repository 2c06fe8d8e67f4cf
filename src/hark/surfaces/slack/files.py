"""Files that come with a message: fetched with the token from Slack alone, within limits."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import aiohttp
from yarl import URL

from hark.protocol.chat import ChatError, ChatGone
from hark.protocol.messages import Attachment
from hark.surfaces.chat.download import CHUNK_BYTES, MOST_BYTES, download, not_downloaded
from hark.surfaces.slack.web_api import Web
from hark.surfaces.slack.wire_types import File, read

FETCH_SECONDS = 30.0  # for all files of a message together
_HOSTS = (".slack.com", ".slack-gov.com")


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
        room = MOST_BYTES  # for all files of a message together
        deadline = asyncio.get_running_loop().time() + FETCH_SECONDS
        for named in files:
            try:
                file = await self._look_up(named, room)
                seconds = deadline - asyncio.get_running_loop().time()
                attachment = await download(
                    lambda file=file: self._content(file), named.name, file.mimetype, most_bytes=room, seconds=seconds
                )
            except ChatError as error:
                taken.notes.append(not_downloaded(named.name, error))
                continue
            room -= len(attachment.data) * 3 // 4
            if file.subtype == "slack_audio" and taken.voice is None:
                taken.voice = attachment
            else:
                taken.attachments.append(attachment)
        return taken

    async def _look_up(self, file: File, room: int) -> File:
        """Return what Slack knows of a file; one that was shared from another workspace is only named.

        Raises:
            ChatError: It can't be fetched.
        """
        if file.file_access == "check_file_info":
            file = read((await self._web.ask("files.info", file=file.id)).get("file"), File) or File()
        if file.mode == "tombstone":
            raise ChatGone("it was deleted")
        if file.is_external or file.mode == "external":
            raise ChatGone(f"it is kept elsewhere, at {file.url_private[:500]}")
        if file.size > room:
            raise ChatGone(f"a message may bring {MOST_BYTES // 1_000_000} MB at most")
        if not self._is_slack(file.url_private_download or file.url_private):
            raise ChatGone("it is not kept by Slack")
        return file

    async def _content(self, file: File) -> AsyncGenerator[bytes]:
        address = URL(file.url_private_download or file.url_private)
        headers = {"Authorization": f"Bearer {self._web.client.token}"}
        proxy, is_page = self._web.client.proxy, "html" in file.mimetype
        # A redirect leads to a log-in page, or to somebody who must not see the token.
        async with self._session.get(address, headers=headers, allow_redirects=False, proxy=proxy) as answer:
            if answer.status != 200 or (answer.content_type == "text/html" and not is_page):
                raise ChatGone(f"Slack does not give it (HTTP {answer.status}); the app may lack the right files:read")
            async for chunk in answer.content.iter_chunked(CHUNK_BYTES):
                yield chunk

    def _is_slack(self, address: str) -> bool:
        """Tell whether the token may go there."""
        try:
            url, base = URL(address), URL(self._web.client.base_url)
        except ValueError:
            return False
        if url.scheme == "https" and url.host is not None and url.host.endswith(_HOSTS):
            return True
        return url.host is not None and url.origin() == base.origin()
