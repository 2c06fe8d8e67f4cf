"""Spoken replies: uploaded as a file into the chat."""

import aiohttp

from hark.protocol.chat import Address, ChatError
from hark.surfaces.slack.web_api import SECONDS, Unsure, Web


async def upload_voice(web: Web, address: Address, recording: bytes) -> str:
    """Put a recording into a chat; return Slack's name of the file.

    When the last answer is lost it counts as sent: a recording that comes twice is worse than one that is missing.

    Raises:
        ChatError: It was not sent.
    """
    name = "reply.ogg" if recording.startswith(b"OggS") else "reply.wav"
    place = await web.ask("files.getUploadURLExternal", filename=name, length=len(recording))
    await _upload(str(place["upload_url"]), recording, web.client.proxy)
    file = str(place["file_id"])
    try:
        await web.change(
            "files.completeUploadExternal",
            files=[{"id": file, "title": name}],
            channel_id=address.chat,
            thread_ts=address.thread or None,
        )
    except Unsure:
        return file
    return file


async def _upload(address: str, content: bytes, proxy: str | None) -> None:
    """Send the file where Slack says; the address is its own right, so no token goes with it."""
    try:
        timeout = aiohttp.ClientTimeout(total=SECONDS)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(address, data=content, proxy=proxy, allow_redirects=False) as answer,
        ):
            if answer.status != 200:
                raise ChatError(f"Slack does not take the recording (HTTP {answer.status}).")
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise ChatError(f"The recording could not be sent ({type(error).__name__}).") from None
