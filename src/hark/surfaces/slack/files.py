"""Download the files of a Slack message within limits. The token is sent only to Slack."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import aiohttp
from yarl import URL

from hark.protocol.chat import ChatError, ChatGone
from hark.protocol.messages import Attachment
from hark.surfaces.chat.download import CHUNK_BYTES, MAX_BYTES, describe_failed_download, download
from hark.surfaces.slack.web_api import SlackWebApi
from hark.surfaces.slack.wire_types import SlackFile, parse_struct

FETCH_SECONDS = 30.0  # for all files of a message
_HOSTS = (".slack.com", ".slack-gov.com")


@dataclass
class DownloadedFiles:
    """The downloaded files of a message. `notes` describes the files that were not downloaded."""

    attachments: list[Attachment] = field(default_factory=list[Attachment])
    voice: Attachment | None = None
    notes: list[str] = field(default_factory=list[str])


class FileDownloader:
    """Downloads the files of messages. Cancelling discards partial downloads."""

    def __init__(self, web: SlackWebApi, session: aiohttp.ClientSession) -> None:
        self._web = web
        self._session = session

    async def download_all(self, files: tuple[SlackFile, ...]) -> DownloadedFiles:
        """Download the files of a message. A file that can't be downloaded is named in the notes."""
        downloaded = DownloadedFiles()
        remaining_bytes = MAX_BYTES  # for all files of a message
        deadline = asyncio.get_running_loop().time() + FETCH_SECONDS
        for listed in files:
            try:
                file = await self._check_file(listed, remaining_bytes)
                seconds = deadline - asyncio.get_running_loop().time()
                attachment = await download(
                    lambda file=file: self._stream_file(file),
                    listed.name,
                    file.mimetype,
                    max_bytes=remaining_bytes,
                    seconds=seconds,
                )
            except ChatError as error:
                downloaded.notes.append(describe_failed_download(listed.name, error))
                continue
            remaining_bytes -= len(attachment.data) * 3 // 4
            if file.subtype == "slack_audio" and downloaded.voice is None:
                downloaded.voice = attachment
            else:
                downloaded.attachments.append(attachment)
        return downloaded

    async def _check_file(self, file: SlackFile, remaining_bytes: int) -> SlackFile:
        """Return the details of a file. Files shared from another workspace are looked up first.

        Raises:
            ChatError: The file can't be downloaded. The error text gives the reason.
        """
        if file.file_access == "check_file_info":
            file = parse_struct((await self._web.get("files.info", file=file.id)).get("file"), SlackFile) or SlackFile()
        if file.mode == "tombstone":
            raise ChatGone("the file was deleted")
        if file.is_external or file.mode == "external":
            raise ChatGone(f"the file is stored outside Slack, at {file.url_private[:500]}")
        if file.size > remaining_bytes:
            raise ChatGone(f"the files of a message exceed {MAX_BYTES // 1_000_000} MB")
        if not self._is_slack_url(file.url_private_download or file.url_private):
            raise ChatGone("the file is not stored by Slack")
        return file

    async def _stream_file(self, file: SlackFile) -> AsyncGenerator[bytes]:
        url = URL(file.url_private_download or file.url_private)
        headers = {"Authorization": f"Bearer {self._web.client.token}"}
        proxy, is_page = self._web.client.proxy, "html" in file.mimetype
        # A redirect leads to a login page, or to a server that must not see the token.
        async with self._session.get(url, headers=headers, allow_redirects=False, proxy=proxy) as answer:
            if answer.status != 200 or (answer.content_type == "text/html" and not is_page):
                raise ChatGone(f"Slack refused the download (HTTP {answer.status}); the app may lack files:read")
            async for chunk in answer.content.iter_chunked(CHUNK_BYTES):
                yield chunk

    def _is_slack_url(self, address: str) -> bool:
        """Return whether a URL belongs to Slack, so that the token may be sent to it."""
        try:
            url, base = URL(address), URL(self._web.client.base_url)
        except ValueError:
            return False
        if url.scheme == "https" and url.host is not None and url.host.endswith(_HOSTS):
            return True
        return url.host is not None and url.origin() == base.origin()
