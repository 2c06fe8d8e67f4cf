"""What we say in Slack: posted once even when the answer is lost, changed, and signs put on others' messages."""

import hashlib
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

import aiohttp
import anyio
from msgspec import structs

from hark.protocol.chat import Address, ChatError, ChatGone, Outgoing
from hark.surfaces.chat.outbox import AGAIN
from hark.surfaces.chat.recent_values import Recent
from hark.surfaces.chat.reply import count_message
from hark.surfaces.chat.retry import retried
from hark.surfaces.slack.layout import Shape, shapes
from hark.surfaces.slack.web_api import SECONDS, Forbidden, MarkupRefused, Unsure, Web
from hark.timing.backoff import Backoff
from hark.timing.rate_limit import RateLimit

LOG = logging.getLogger(__name__)
T = TypeVar("T")

STATUS = "is at work…"
EVENT = "hark_message"
FIND_SECONDS = 1.0  # before we look whether it was posted: it may be on its way still
LONGEST_SECONDS = 30.0
CLOCK_SECONDS = 300.0  # by which our clock and Slack's may differ
SIGNS = {
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


class Sender:
    """Says things. Its methods raise ChatError as the surface's do."""

    def __init__(self, web: Web) -> None:
        self.web = web
        self._signs: Recent[str] = Recent()
        self._has_status = True
        self._edits = RateLimit(10, 40 / 60, reserve=4)  # Slack takes 50 a minute, in all chats together

    async def send(self, address: Address, message: Outgoing) -> str:
        """Post a message; return Slack's name of it. A recording goes behind its words, or alone."""
        if message.voice and not message.text.strip():
            return await upload_voice(self.web, address, message.voice)
        sent = await self._send_text(address, message)
        if message.voice:
            try:
                await upload_voice(self.web, address, message.voice)
            except ChatError as error:
                LOG.warning("slack: the words were sent, the recording was not: %s", error)
        return sent

    async def _send_text(self, address: Address, message: Outgoing) -> str:
        """Post a text, once.

        Slack has no key that makes a post count once. So each is marked, and when it is not known whether one was
        taken, we look for its mark. Only where we may not look, it is posted again with a word about it.
        """
        mark = hashlib.sha256((message.key or secrets.token_hex()).encode()).hexdigest()[:32]
        backoff = Backoff(FIND_SECONDS, LONGEST_SECONDS)
        while True:
            began = time.time()
            try:
                return await self._post(address, message, mark)
            except Unsure:
                try:
                    sent = await self._find(address, mark, began)
                except ChatGone:
                    message = structs.replace(message, text=AGAIN + message.text.removeprefix(AGAIN))
                    await anyio.sleep(backoff.next_delay())
                    continue
                if sent:
                    return sent
                raise

    async def edit(self, address: Address, message: str, new: Outgoing) -> None:
        """Change a message of ours."""
        count_message(new, self._edits)

        async def update(shape: Shape) -> None:
            # Blocks that are left out stay: an empty list takes the buttons away.
            await self.web.change(
                "chat.update",
                channel=address.chat,
                ts=message,
                text=shape.text,
                blocks=shape.blocks,
                link_names=False,
            )

        await _in_some_shape(new, update)

    async def typing(self, address: Address) -> None:
        """Show a status in the thread, where Slack lets us; it goes with our next message there."""
        if not address.thread or not self._has_status:
            return
        try:
            await self.web.change(
                "assistant.threads.setStatus", channel_id=address.chat, thread_ts=address.thread, status=STATUS
            )
        except Forbidden:
            self._has_status = False

    async def react(self, address: Address, message: str, sign: str) -> None:
        """Put a sign on a message, in place of the one that we put there before."""
        name = SIGNS.get(sign.removesuffix("\ufe0f"))
        if name is None:
            raise ChatError(f"Slack has no name for {sign}.")
        place = f"{address.chat}:{message}"
        before = self._signs.get(place)
        if before == name:
            return
        self._signs.put(place, name)
        try:
            await self.web.change("reactions.add", channel=address.chat, timestamp=message, name=name)
        except ChatError as error:
            if "already_reacted" not in str(error):
                raise
        if before is not None:
            await self.web.change("reactions.remove", channel=address.chat, timestamp=message, name=before)

    async def _post(self, address: Address, message: Outgoing, mark: str) -> str:
        async def post(shape: Shape) -> str:
            answer = await self.web.change(
                "chat.postMessage",
                channel=address.chat,
                text=shape.text,
                blocks=shape.blocks or None,
                thread_ts=address.thread or None,
                unfurl_links=False,
                unfurl_media=False,
                link_names=False,
                metadata={"event_type": EVENT, "event_payload": {"mark": mark}},
            )
            return str(answer["ts"])

        return await _in_some_shape(message, post)

    async def _find(self, address: Address, mark: str, began: float) -> str:
        """Return the name of the message with this mark, "" when there is none; asks until Slack answers.

        Raises:
            ChatGone: There is no such chat any more, or we may not look.
        """
        await anyio.sleep(FIND_SECONDS)
        backoff = Backoff(2 * FIND_SECONDS, LONGEST_SECONDS)

        async def look() -> list[dict[str, Any]]:
            try:
                return await self._messages(address, began - CLOCK_SECONDS)
            except Forbidden as error:
                raise ChatGone(str(error)) from None

        messages = await retried(look, backoff, tries=None)
        return next((str(one["ts"]) for one in messages if _mark(one) == mark), "")

    async def _messages(self, address: Address, oldest: float) -> list[dict[str, Any]]:
        """Return what was written at an address since then, the newest hundred at least."""
        method, thread = "conversations.history", {}
        if address.thread:
            method, thread = "conversations.replies", {"ts": address.thread}
        answer = await self.web.ask(
            method, channel=address.chat, oldest=f"{oldest:.6f}", limit=200, include_all_metadata=True, **thread
        )
        return cast("list[dict[str, Any]]", answer.get("messages") or [])


async def _in_some_shape(message: Outgoing, act: Callable[[Shape], Awaitable[T]]) -> T:
    """Do it with the best shape that Slack takes.

    Raises:
        ChatGone: It takes none, and never will: what is said next must not wait for it.
    """
    refusal = ""
    for shape in shapes(message):
        try:
            return await act(shape)
        except MarkupRefused as error:
            refusal = str(error)
    LOG.warning("slack: a message of %d characters is taken in no shape: %s", len(message.text), refusal)
    raise ChatGone(refusal)


def _mark(message: dict[str, Any]) -> str:
    match message:
        case {"metadata": {"event_payload": {"mark": str(mark)}}}:
            return mark
        case _:
            return ""


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
