"""What happens in a room, as what it means to us: a message, an edit, a deletion, a tap."""

import re

from msgspec import UNSET

from hark.protocol.chat import Address, Author, ChatError, ChatGone, Incoming, Pressed, Removed, Rewritten, Written
from hark.protocol.messages import Attachment
from hark.surfaces.chat.download import download, not_downloaded
from hark.surfaces.chat.retry import retried
from hark.surfaces.matrix.platform import MatrixSettings
from hark.surfaces.matrix.reaction_choices import ReactionChoices
from hark.surfaces.matrix.sync_state import SyncState
from hark.surfaces.matrix.wire import Wire
from hark.surfaces.matrix.wire_types import Content, RoomEvent, Unsigned, content_of, understood

FILES = ("m.image", "m.file", "m.audio", "m.video")
QUOTED_CHARACTERS = 2000
_MEDIA = re.compile(r"mxc://([A-Za-z0-9.:\[\]-]{1,255})/([A-Za-z0-9_-]{1,255})")


class RoomEventReader:
    """Reads the events of an account. Asks the homeserver for what an event does not say itself."""

    def __init__(
        self, wire: Wire, memory: SyncState, choices: ReactionChoices, me: tuple[str, str], settings: MatrixSettings
    ) -> None:
        self._wire = wire
        self._memory = memory
        self._choices = choices
        self._me, self._name = me
        self._hears_all = settings.listen == "all"
        self._most_bytes = int(settings.attachment_megabytes * 1_000_000)
        names = "|".join(re.escape(name) for name in (self._me, self._name, self._me[1:].partition(":")[0]))
        self._naming = re.compile(rf"(?<![\w@])@?(?:{names})(?!\w)", re.IGNORECASE)
        self._calling = re.compile(rf"\s*@?(?:{names})(?:\s*[:,]\s*|\s+|$)", re.IGNORECASE)

    async def read(self, room: str, event: RoomEvent) -> Incoming | None:
        """Return what an event means to us; None for nothing. Our own and other bots' words mean nothing.

        Raises:
            ChatError: The homeserver does not tell what is needed to know it.
        """
        if event.sender == self._me:
            return None
        content = content_of(event)
        match event.type:
            case "m.room.message" if content.msgtype not in ("", "m.notice"):
                if content.relation.rel_type == "m.replace":
                    return await self._edit(room, event, content)
                return await self._message(room, event, content)
            case "m.room.redaction":
                gone = event.redacts or content.redacts
                return Removed(gone, Address("matrix", room, self._memory.thread_of(gone) or "")) if gone else None
            case "m.reaction":
                tapped = self._choices.tapped(content.relation.event_id, content.relation.key)
                if tapped is None or tapped[0].chat != room:
                    return None
                return Pressed(event.event_id, tapped[0], self._author(room, event), tapped[1])
            case _:
                return None

    async def _message(self, room: str, event: RoomEvent, content: Content) -> Incoming:
        thread = _thread_of(content)
        if thread:
            self._memory.note_thread(event.event_id, thread)
        address = Address("matrix", room, thread)
        quoted = await self._quoted(room, content)
        text = _own_words(content)
        is_ours = await self._is_for_us(room, content, quoted)
        text = self._without_call(text, is_private=self._is_private(room))
        value = self._choices.answered(address, text) if is_ours and content.msgtype == "m.text" else None
        author = self._author(room, event)
        if value is not None:
            return Pressed(event.event_id, address, author, value)
        files: tuple[Attachment, ...] = ()
        voice: Attachment | None = None
        if content.msgtype in FILES:
            text = content.body if content.filename and content.filename != content.body else ""
        if content.msgtype in FILES and (is_ours or self._hears_all):
            try:
                file = await self._download(content)
            except ChatError as error:
                text = f"{text}\n{not_downloaded(content.filename or content.body, error)}".strip()
            else:
                voice, files = (file, ()) if content.voice is not UNSET else (None, (file,))
        words = _text_of(quoted) if quoted is not None else ""
        at = event.origin_server_ts / 1000
        return Written(event.event_id, address, author, text, files, voice, is_ours, quoted=words, at=at)

    async def _download(self, content: Content) -> Attachment:
        address = _MEDIA.fullmatch(content.url)
        if address is None:
            raise ChatGone("it is encrypted" if not content.url else "its address is no mxc:// address")
        name, info = content.filename or content.body, content.info
        return await download(
            lambda: self._wire.content(address[1], address[2]),
            name,
            info.mimetype or "application/octet-stream",
            info.size,
            most_bytes=self._most_bytes,
        )

    async def _edit(self, room: str, event: RoomEvent, content: Content) -> Incoming | None:
        original = await self._event(room, content.relation.event_id)
        # Anyone can say that they replace a message; only its author does.
        if original is None or original.sender != event.sender or content.new is None:
            return None
        before = content_of(original)
        was_ours = self._hears_all or await self._is_for_us(room, before, await self._quoted(room, before))
        is_named = self._me in content.new.mentions.user_ids or bool(self._naming.search(content.new.body))
        if not was_ours and not is_named:
            return None
        thread = _thread_of(before) or self._memory.thread_of(original.event_id) or ""
        text = self._without_call(content.new.body, is_private=self._is_private(room))
        address, author, at = Address("matrix", room, thread), self._author(room, event), event.origin_server_ts / 1000
        if not was_ours:  # now it names us: we hear it for the first time
            return Written(original.event_id, address, author, text, at=at)
        return Rewritten(original.event_id, address, author, text, at)

    async def _quoted(self, room: str, content: Content) -> RoomEvent | None:
        replied = content.relation.in_reply_to.event_id
        if not replied or content.relation.is_falling_back:
            return None
        return await self._event(room, replied)

    async def _event(self, room: str, event: str) -> RoomEvent | None:
        try:
            return await retried(lambda: self._wire.event(room, event))
        except ChatGone:
            return None

    async def _is_for_us(self, room: str, content: Content, quoted: RoomEvent | None) -> bool:
        """Tell whether something was said to us alone, names us, answers us, or is in a thread under our words."""
        if self._is_private(room) or self._names_us(content):
            return True
        if quoted is not None and quoted.sender == self._me:
            return True
        thread = _thread_of(content)
        root = await self._event(room, thread) if thread else None
        return root is not None and root.sender == self._me

    def _is_private(self, room: str) -> bool:
        return self._wire.member_count(room) == 2

    def _names_us(self, content: Content) -> bool:
        return self._me in content.mentions.user_ids or bool(self._naming.search(_own_words(content)))

    def _without_call(self, text: str, *, is_private: bool) -> str:
        """Return a text without our name in front, so that "hark: stop" is a stop."""
        called = self._calling.match(text)
        if called is None or (is_private and not called[0].rstrip().endswith((":", ","))):
            return text
        return text[called.end() :]

    def _author(self, room: str, event: RoomEvent) -> Author:
        return Author(event.sender, self._wire.name_of(room, event.sender))


def _thread_of(content: Content) -> str:
    return content.relation.event_id if content.relation.rel_type == "m.thread" else ""


def _own_words(content: Content) -> str:
    """Return a message's text, without the lines of the other one that old clients put before a reply."""
    text = content.body
    if content.relation.in_reply_to.event_id and text.startswith("> "):
        lines = text.split("\n")
        while lines and lines[0].startswith(">"):
            lines.pop(0)
        text = "\n".join(lines).removeprefix("\n")
    return f"* {text}" if content.msgtype == "m.emote" else text


def _text_of(event: RoomEvent) -> str:
    """Return the text that a message has now."""
    unsigned = understood(event.unsigned, Unsigned)
    if unsigned is not None and unsigned.relations.replace is not None:
        new = content_of(unsigned.relations.replace).new
        if new is not None:
            return new.body[:QUOTED_CHARACTERS]
    return _own_words(content_of(event))[:QUOTED_CHARACTERS]
