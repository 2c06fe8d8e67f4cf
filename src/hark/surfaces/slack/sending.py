"""Send, edit and react in Slack. A message is posted once even if Slack's response is lost."""

import hashlib
import logging
import secrets
import time
from typing import Any, cast

import aiohttp
import anyio
from msgspec import structs

from hark.protocol.chat import Address, ChatError, ChatGone, OutgoingMessage
from hark.surfaces.chat.markup_fallback import send_with_fallback
from hark.surfaces.chat.outbox import DUPLICATE_MARK
from hark.surfaces.chat.recent_values import RecentValues
from hark.surfaces.chat.retry import retry_call
from hark.surfaces.chat.streaming_reply import count_message
from hark.surfaces.slack.layout import SlackLayout, make_layouts
from hark.surfaces.slack.web_api import REQUEST_SECONDS, MissingScope, ResultUnknown, SlackWebApi
from hark.timing.backoff import Backoff
from hark.timing.rate_limit import RateLimit

LOG = logging.getLogger(__name__)

TYPING_STATUS = "is working…"
METADATA_EVENT_TYPE = "hark_message"
SEARCH_DELAY_SECONDS = 1.0  # before searching for a message whose post may still be in progress
MAX_RETRY_SECONDS = 30.0
MAX_CLOCK_SKEW_SECONDS = 300.0  # between our clock and Slack's
REACTION_NAMES = {
    "👀": "eyes",
    "⚡": "zap",
    "↪": "arrow_right_hook",
    "⏳": "hourglass_flowing_sand",
    "⏸": "double_vertical_bar",
    "⏹": "black_square_for_stop",
    "🗑": "wastebasket",
    "🎙": "studio_microphone",
    "✅": "white_check_mark",
    "❌": "x",
    "⚠": "warning",
    "👍": "+1",
}


class SlackSender:
    """Sends messages to Slack. Its methods raise the same errors as those of ChatWriter."""

    def __init__(self, web: SlackWebApi) -> None:
        self.web = web
        self._reactions: RecentValues[str] = RecentValues()
        self._has_status = True
        self._edits = RateLimit(10, 40 / 60, reserve=4)  # Slack allows 50 a minute for all chats combined.

    async def send(self, address: Address, message: OutgoingMessage) -> str:
        """Post a message and return its timestamp id. A voice recording follows the text, or is sent on its own."""
        if message.voice and not message.text.strip():
            return await upload_voice(self.web, address, message.voice)
        sent_id = await self._send_text(address, message)
        if message.voice:
            try:
                await upload_voice(self.web, address, message.voice)
            except ChatError as error:
                LOG.warning("slack: the text was sent, but the voice recording was not: %s", error)
        return sent_id

    async def _send_text(self, address: Address, message: OutgoingMessage) -> str:
        """Post a text message, only once if possible.

        Slack has no idempotency keys, so each post carries a marker. If the result is unknown, search for the marker.
        If searching is forbidden, post again with a note that the message may be a duplicate.
        """
        marker = hashlib.sha256((message.key or secrets.token_hex()).encode()).hexdigest()[:32]
        backoff = Backoff(SEARCH_DELAY_SECONDS, MAX_RETRY_SECONDS)
        while True:
            started_at = time.time()
            try:
                return await self._post(address, message, marker)
            except ResultUnknown:
                try:
                    found_id = await self._find_posted(address, marker, started_at)
                except ChatGone:
                    message = structs.replace(message, text=DUPLICATE_MARK + message.text.removeprefix(DUPLICATE_MARK))
                    await anyio.sleep(backoff.next_delay())
                    continue
                if found_id:
                    return found_id
                raise

    async def edit(self, address: Address, message: str, new: OutgoingMessage) -> None:
        """Edit a message that the bot sent."""
        count_message(new, self._edits)

        async def update_message(layout: SlackLayout) -> None:
            # Omitted blocks would stay; an empty list removes the buttons.
            await self.web.post(
                "chat.update",
                channel=address.chat,
                ts=message,
                text=layout.text,
                blocks=layout.blocks,
                link_names=False,
            )

        await send_with_fallback(make_layouts(new), update_message)

    async def show_typing(self, address: Address) -> None:
        """Show a status in the thread if Slack allows it. Slack clears the status when the bot sends a message."""
        if not address.thread or not self._has_status:
            return
        try:
            await self.web.post(
                "assistant.threads.setStatus", channel_id=address.chat, thread_ts=address.thread, status=TYPING_STATUS
            )
        except MissingScope:
            self._has_status = False

    async def react(self, address: Address, message: str, reaction: str) -> None:
        """Set the bot's reaction to a message, replacing any earlier reaction by the bot."""
        name = REACTION_NAMES.get(reaction.removesuffix("\ufe0f"))
        if name is None:
            raise ChatError(f"Slack has no emoji name for {reaction}.")
        key = f"{address.chat}:{message}"
        previous = self._reactions.get(key)
        if previous == name:
            return
        self._reactions.put(key, name)
        try:
            await self.web.post("reactions.add", channel=address.chat, timestamp=message, name=name)
        except ChatError as error:
            if "already_reacted" not in str(error):
                raise
        if previous is not None:
            await self.web.post("reactions.remove", channel=address.chat, timestamp=message, name=previous)

    async def _post(self, address: Address, message: OutgoingMessage, marker: str) -> str:
        async def post_layout(layout: SlackLayout) -> str:
            answer = await self.web.post(
                "chat.postMessage",
                channel=address.chat,
                text=layout.text,
                blocks=layout.blocks or None,
                thread_ts=address.thread or None,
                unfurl_links=False,
                unfurl_media=False,
                link_names=False,
                metadata={"event_type": METADATA_EVENT_TYPE, "event_payload": {"mark": marker}},
            )
            return str(answer["ts"])

        return await send_with_fallback(make_layouts(message), post_layout)

    async def _find_posted(self, address: Address, marker: str, started_at: float) -> str:
        """Return the id of the message with this marker, or "" if no message has it. Retries until Slack responds.

        Raises:
            ChatGone: The chat no longer exists, or the bot may not read it.
        """
        await anyio.sleep(SEARCH_DELAY_SECONDS)
        backoff = Backoff(2 * SEARCH_DELAY_SECONDS, MAX_RETRY_SECONDS)

        async def list_messages() -> list[dict[str, Any]]:
            try:
                return await self._recent_messages(address, started_at - MAX_CLOCK_SKEW_SECONDS)
            except MissingScope as error:
                raise ChatGone(str(error)) from None

        messages = await retry_call(list_messages, backoff, max_tries=None)
        return next((str(message["ts"]) for message in messages if _marker_of(message) == marker), "")

    async def _recent_messages(self, address: Address, oldest: float) -> list[dict[str, Any]]:
        """Return the messages at an address since the Unix time `oldest`, at most 200."""
        method, thread = "conversations.history", {}
        if address.thread:
            method, thread = "conversations.replies", {"ts": address.thread}
        answer = await self.web.get(
            method, channel=address.chat, oldest=f"{oldest:.6f}", limit=200, include_all_metadata=True, **thread
        )
        return cast("list[dict[str, Any]]", answer.get("messages") or [])


def _marker_of(message: dict[str, Any]) -> str:
    match message:
        case {"metadata": {"event_payload": {"mark": str(mark)}}}:
            return mark
        case _:
            return ""


async def upload_voice(web: SlackWebApi, address: Address, recording: bytes) -> str:
    """Upload a voice recording to a chat and return Slack's file id.

    If Slack's last response is lost, the recording counts as sent, because a duplicate is worse than a loss.

    Raises:
        ChatError: The recording was not sent.
    """
    name = "reply.ogg" if recording.startswith(b"OggS") else "reply.wav"
    upload = await web.get("files.getUploadURLExternal", filename=name, length=len(recording))
    await _upload_content(str(upload["upload_url"]), recording, web.client.proxy)
    file_id = str(upload["file_id"])
    try:
        await web.post(
            "files.completeUploadExternal",
            files=[{"id": file_id, "title": name}],
            channel_id=address.chat,
            thread_ts=address.thread or None,
        )
    except ResultUnknown:
        return file_id
    return file_id


async def _upload_content(url: str, content: bytes, proxy: str | None) -> None:
    """Upload content to the URL that Slack returned. The URL itself grants access, so no token is sent."""
    try:
        timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(url, data=content, proxy=proxy, allow_redirects=False) as answer,
        ):
            if answer.status != 200:
                raise ChatError(f"Slack refused the voice recording (HTTP {answer.status}).")
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise ChatError(f"The voice recording could not be uploaded ({type(error).__name__}).") from None
