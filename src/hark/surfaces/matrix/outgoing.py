"""What we say, as the content of Matrix events: marked up where it fits, and never larger than an event may be."""

import hashlib
from typing import Any

import msgspec

from hark.protocol.chat import Address, Outgoing
from hark.surfaces.matrix.markup import Markup, plain
from hark.surfaces.matrix.reaction_choices import in_words

# An event may have 65,536 bytes in all: the server's own part takes some, and a character takes up to four.
CONTENT_BYTES = 61_500
CHARACTERS = 14_000
SHORT_CHARACTERS = 200


class Outward:
    """Makes contents. Nobody is called by them by accident: mentions are said to be none."""

    def __init__(self) -> None:
        self._markup = Markup()

    def message(self, address: Address, message: Outgoing, *, has_markup: bool = True) -> dict[str, Any]:
        """Return a new message's content."""
        content = self._text(message, has_markup=has_markup)
        relation = _relation(address, message.reply_to)
        return {**content, "m.relates_to": relation} if relation else content

    def edit(self, event: str, message: Outgoing, *, has_markup: bool = True) -> dict[str, Any]:
        """Return the content that replaces an earlier one; what old clients show of it is kept short."""
        new = self._text(message, has_markup=has_markup)
        return {
            "msgtype": "m.text",
            "body": f"* {new['body'][:SHORT_CHARACTERS]}",
            "m.mentions": {},
            "m.new_content": new,
            "m.relates_to": {"rel_type": "m.replace", "event_id": event},
        }

    def voice(self, address: Address, message: Outgoing, uri: str, media_type: str) -> dict[str, Any]:
        """Return the content of a voice message."""
        content: dict[str, Any] = {
            "msgtype": "m.audio",
            "body": plain(message.text) or "voice message",
            "filename": "voice message",
            "url": uri,
            "info": {"mimetype": media_type, "size": len(message.voice)},
            "org.matrix.msc3245.voice": {},
            "m.mentions": {},
        }
        relation = _relation(address, message.reply_to)
        return {**content, "m.relates_to": relation} if relation else content

    def _text(self, message: Outgoing, *, has_markup: bool) -> dict[str, Any]:
        text = plain(in_words(message.text, message.buttons))
        content: dict[str, Any] = {"msgtype": "m.text", "body": text, "m.mentions": {}}
        html = self._markup.html(text) if has_markup else ""
        if not html:
            return content
        rich = {**content, "format": "org.matrix.custom.html", "formatted_body": html}
        return rich if len(msgspec.json.encode(rich)) <= CONTENT_BYTES - 2000 else content


def transaction(address: Address, key: str, kind: str = "message") -> str:
    """Return the transaction of a key. Threads of a room share its transactions, so it says which one is meant."""
    return hashlib.sha256("\0".join((kind, address.thread, key)).encode()).hexdigest()[:40]


def _relation(address: Address, reply_to: str) -> dict[str, Any]:
    reply = {"m.in_reply_to": {"event_id": reply_to or address.thread}}
    if address.thread:
        return {"rel_type": "m.thread", "event_id": address.thread, "is_falling_back": not reply_to, **reply}
    return reply if reply_to else {}
