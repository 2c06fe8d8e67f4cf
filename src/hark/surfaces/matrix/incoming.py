"""Convert Matrix room events to incoming messages, edits, deletions and button presses."""

import re

from msgspec import UNSET

from hark.protocol.chat import (
    Address,
    Author,
    ButtonPressed,
    ChatError,
    ChatGone,
    IncomingEvent,
    IncomingMessage,
    MessageDeleted,
    MessageEdited,
)
from hark.protocol.messages import Attachment
from hark.surfaces.chat.download import describe_failed_download, download
from hark.surfaces.chat.retry import retry_call
from hark.surfaces.matrix.matrix_client import MatrixClient
from hark.surfaces.matrix.platform import MatrixSettings
from hark.surfaces.matrix.reaction_choices import ReactionChoices
from hark.surfaces.matrix.sync_state import SyncState
from hark.surfaces.matrix.wire_types import EventContent, RoomEvent, Unsigned, content_of, parse_json

FILE_TYPES = ("m.image", "m.file", "m.audio", "m.video")
MAX_QUOTED_CHARACTERS = 2000
_MEDIA = re.compile(r"mxc://([A-Za-z0-9.:\[\]-]{1,255})/([A-Za-z0-9_-]{1,255})")


class RoomEventReader:
    """Converts an account's room events, and fetches related events from the homeserver if necessary."""

    def __init__(
        self,
        wire: MatrixClient,
        state: SyncState,
        choices: ReactionChoices,
        account: tuple[str, str],
        settings: MatrixSettings,
    ) -> None:
        self._wire = wire
        self._state = state
        self._choices = choices
        self._user_id, self._name = account
        self._listens_to_all = settings.listen == "all"
        self._max_bytes = int(settings.attachment_megabytes * 1_000_000)
        names = "|".join(re.escape(name) for name in (self._user_id, self._name, self._user_id[1:].partition(":")[0]))
        self._mention = re.compile(rf"(?<![\w@])@?(?:{names})(?!\w)", re.IGNORECASE)
        self._prefix_pattern = re.compile(rf"\s*@?(?:{names})(?:\s*[:,]\s*|\s+|$)", re.IGNORECASE)

    async def read(self, room: str, event: RoomEvent) -> IncomingEvent | None:
        """Convert a room event to an incoming message, edit, deletion or button press, or None.

        Messages from the bot itself and from other bots are ignored.

        Raises:
            ChatError: The homeserver did not return a related event that is needed.
        """
        if event.sender == self._user_id:
            return None
        content = content_of(event)
        match event.type:
            case "m.room.message" if content.msgtype not in ("", "m.notice"):
                if content.relation.rel_type == "m.replace":
                    return await self._read_edit(room, event, content)
                return await self._read_message(room, event, content)
            case "m.room.redaction":
                deleted = event.redacts or content.redacts
                return (
                    MessageDeleted(deleted, Address("matrix", room, self._state.thread_of(deleted) or ""))
                    if deleted
                    else None
                )
            case "m.reaction":
                choice = self._choices.find_by_reaction(content.relation.event_id, content.relation.key)
                if choice is None or choice[0].chat != room:
                    return None
                return ButtonPressed(event.event_id, choice[0], self._author(room, event), choice[1])
            case _:
                return None

    async def _read_message(self, room: str, event: RoomEvent, content: EventContent) -> IncomingEvent:
        thread = _thread_of(content)
        if thread:
            self._state.remember_thread(event.event_id, thread)
        address = Address("matrix", room, thread)
        quoted = await self._fetch_quoted(room, content)
        text = _body_without_quote(content)
        is_addressed = await self._is_addressed(room, content, quoted)
        text = self._strip_bot_name(text, is_private=self._is_private(room))
        author = self._author(room, event)
        files: tuple[Attachment, ...] = ()
        voice: Attachment | None = None
        if content.msgtype in FILE_TYPES:
            text = content.body if content.filename and content.filename != content.body else ""
        if content.msgtype in FILE_TYPES and (is_addressed or self._listens_to_all):
            try:
                file = await self._download(content)
            except ChatError as error:
                text = f"{text}\n{describe_failed_download(content.filename or content.body, error)}".strip()
            else:
                voice, files = (file, ()) if content.voice is not UNSET else (None, (file,))
        quoted_text = _current_text(quoted) if quoted is not None else ""
        at = event.origin_server_ts / 1000
        return IncomingMessage(
            event.event_id,
            address,
            author,
            text,
            files,
            voice,
            is_addressed,
            quoted=quoted_text,
            at=at,
            replied_to=quoted.event_id if quoted is not None else thread,
            is_private=self._is_private(room),
        )

    async def _download(self, content: EventContent) -> Attachment:
        media = _MEDIA.fullmatch(content.url)
        if media is None:
            raise ChatGone("the file is encrypted" if not content.url else "the file's URL is not an mxc:// URL")
        name, info = content.filename or content.body, content.info
        return await download(
            lambda: self._wire.stream_media(media[1], media[2]),
            name,
            info.mimetype or "application/octet-stream",
            info.size,
            max_bytes=self._max_bytes,
        )

    async def _read_edit(self, room: str, event: RoomEvent, content: EventContent) -> IncomingEvent | None:
        original = await self._fetch_event(room, content.relation.event_id)
        # Any sender can claim to replace a message, so check that it is the author.
        if original is None or original.sender != event.sender or content.new is None:
            return None
        old = content_of(original)
        was_addressed = self._listens_to_all or await self._is_addressed(room, old, await self._fetch_quoted(room, old))
        is_mentioned = self._user_id in content.new.mentions.user_ids or bool(self._mention.search(content.new.body))
        if not was_addressed and not is_mentioned:
            return None
        thread = _thread_of(old) or self._state.thread_of(original.event_id) or ""
        text = self._strip_bot_name(content.new.body, is_private=self._is_private(room))
        address, author, at = Address("matrix", room, thread), self._author(room, event), event.origin_server_ts / 1000
        if not was_addressed:  # The edit added a mention, so the message is new to the bot.
            return IncomingMessage(original.event_id, address, author, text, at=at)
        return MessageEdited(original.event_id, address, author, text, at)

    async def _fetch_quoted(self, room: str, content: EventContent) -> RoomEvent | None:
        replied = content.relation.in_reply_to.event_id
        if not replied or content.relation.is_falling_back:
            return None
        return await self._fetch_event(room, replied)

    async def _fetch_event(self, room: str, event_id: str) -> RoomEvent | None:
        try:
            return await retry_call(lambda: self._wire.fetch_event(room, event_id))
        except ChatGone:
            return None

    async def _is_addressed(self, room: str, content: EventContent, quoted: RoomEvent | None) -> bool:
        """Return whether a message is in a private room, mentions the bot, replies to it, or is in its thread."""
        if self._is_private(room) or self._mentions_bot(content):
            return True
        if quoted is not None and quoted.sender == self._user_id:
            return True
        thread = _thread_of(content)
        root = await self._fetch_event(room, thread) if thread else None
        return root is not None and root.sender == self._user_id

    def _is_private(self, room: str) -> bool:
        return self._wire.member_count(room) == 2

    def _mentions_bot(self, content: EventContent) -> bool:
        return self._user_id in content.mentions.user_ids or bool(self._mention.search(_body_without_quote(content)))

    def _strip_bot_name(self, text: str, *, is_private: bool) -> str:
        """Strip the bot's name from the beginning of a text, so that "hark: stop" is a stop request."""
        prefix = self._prefix_pattern.match(text)
        if prefix is None or (is_private and not prefix[0].rstrip().endswith((":", ","))):
            return text
        return text[prefix.end() :]

    def _author(self, room: str, event: RoomEvent) -> Author:
        return Author(event.sender, self._wire.display_name(room, event.sender))


def _thread_of(content: EventContent) -> str:
    return content.relation.event_id if content.relation.rel_type == "m.thread" else ""


def _body_without_quote(content: EventContent) -> str:
    """Return a message's text without the quoted lines that old clients put before a reply."""
    text = content.body
    if content.relation.in_reply_to.event_id and text.startswith("> "):
        lines = text.split("\n")
        while lines and lines[0].startswith(">"):
            lines.pop(0)
        text = "\n".join(lines).removeprefix("\n")
    return f"* {text}" if content.msgtype == "m.emote" else text


def _current_text(event: RoomEvent) -> str:
    """Return the current text of a message, after its last edit."""
    unsigned = parse_json(event.unsigned, Unsigned)
    if unsigned is not None and unsigned.relations.replace is not None:
        new = content_of(unsigned.relations.replace).new
        if new is not None:
            return new.body[:MAX_QUOTED_CHARACTERS]
    return _body_without_quote(content_of(event))[:MAX_QUOTED_CHARACTERS]
