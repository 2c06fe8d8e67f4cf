"""What we say, as the content of Matrix events: marked up where it fits, and never larger than an event may be.

Nobody is called by them by accident: mentions are said to be none.
"""

import hashlib
import re
from html import escape
from typing import Any

import msgspec

from hark.protocol.chat import Address, Outgoing
from hark.surfaces.chat.markdown import WEB_SCHEMES, parse, parser
from hark.surfaces.matrix.reaction_choices import in_words

# An event may have 65,536 bytes in all: the server's own part takes some, and a character takes up to four.
CONTENT_BYTES = 61_500
CHARACTERS = 14_000
SHORT_CHARACTERS = 200
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


def message_content(address: Address, message: Outgoing, *, has_markup: bool = True) -> dict[str, Any]:
    """Return a new message's content."""
    content = _text(message, has_markup=has_markup)
    relation = _relation(address, message.reply_to)
    return {**content, "m.relates_to": relation} if relation else content


def edit_content(event: str, message: Outgoing, *, has_markup: bool = True) -> dict[str, Any]:
    """Return the content that replaces an earlier one; what old clients show of it is kept short."""
    new = _text(message, has_markup=has_markup)
    return {
        "msgtype": "m.text",
        "body": f"* {new['body'][:SHORT_CHARACTERS]}",
        "m.mentions": {},
        "m.new_content": new,
        "m.relates_to": {"rel_type": "m.replace", "event_id": event},
    }


def voice_content(address: Address, message: Outgoing, uri: str, media_type: str) -> dict[str, Any]:
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


def _text(message: Outgoing, *, has_markup: bool) -> dict[str, Any]:
    text = plain(in_words(message.text, message.buttons))
    content: dict[str, Any] = {"msgtype": "m.text", "body": text, "m.mentions": {}}
    marked = html(text) if has_markup else ""
    if not marked:
        return content
    rich = {**content, "format": "org.matrix.custom.html", "formatted_body": marked}
    return rich if len(msgspec.json.encode(rich)) <= CONTENT_BYTES - 2000 else content


def plain(text: str) -> str:
    """Return text without what no homeserver takes and no one can see."""
    return _CONTROL.sub("", text.replace("\r\n", "\n"))


def html(text: str) -> str:
    """Return Markdown as HTML, or "" when it has no markup to show or can't be rendered.

    HTML in the text itself is shown as text.
    """
    tokens = parse(text)
    if tokens is None:
        return ""
    markdown = parser()
    markdown.add_render_rule("image", _image)
    shown = markdown.renderer.render(tokens, markdown.options, {}).strip()
    bare = "<p>" + escape(text.strip()).replace("&#x27;", "'").replace("\n", "<br />\n") + "</p>"
    return "" if shown == bare else shown


def _image(renderer: Any, tokens: Any, place: int, options: Any, env: Any) -> str:
    """Write an image as a link: nothing is fetched by looking at a message."""
    url, label = str(tokens[place].attrs["src"]), escape(tokens[place].content)
    return f'<a href="{escape(url)}">{label or escape(url)}</a>' if url.lower().startswith(WEB_SCHEMES) else label


def transaction(address: Address, key: str, kind: str = "message") -> str:
    """Return the transaction of a key. Threads of a room share its transactions, so it says which one is meant."""
    return hashlib.sha256("\0".join((kind, address.thread, key)).encode()).hexdigest()[:40]


def _relation(address: Address, reply_to: str) -> dict[str, Any]:
    reply = {"m.in_reply_to": {"event_id": reply_to or address.thread}}
    if address.thread:
        return {"rel_type": "m.thread", "event_id": address.thread, "is_falling_back": not reply_to, **reply}
    return reply if reply_to else {}
