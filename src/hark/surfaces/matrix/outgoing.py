"""Build the content of Matrix events within the size limit. Markup is omitted if it would exceed the limit.

The content declares no mentions, so that no user is notified by accident.
"""

import hashlib
import re
from html import escape
from typing import Any

import msgspec

from hark.protocol.chat import Address, OutgoingMessage
from hark.surfaces.chat.markdown import WEB_SCHEMES, get_parser, parse
from hark.surfaces.matrix.reaction_choices import append_choices

# An event may have 65,536 bytes in total. The server's fields need some, and a character takes up to four.
MAX_CONTENT_BYTES = 61_500
MAX_CHARACTERS = 14_000
MAX_FALLBACK_CHARACTERS = 200
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


def message_content(address: Address, message: OutgoingMessage, *, has_markup: bool = True) -> dict[str, Any]:
    """Return the event content of a new message."""
    content = _text_content(message, has_markup=has_markup)
    relation = _make_relation(address, message.reply_to)
    return {**content, "m.relates_to": relation} if relation else content


def edit_content(event_id: str, message: OutgoingMessage, *, has_markup: bool = True) -> dict[str, Any]:
    """Return the event content that replaces a message. The fallback text for old clients is shortened."""
    new = _text_content(message, has_markup=has_markup)
    return {
        "msgtype": "m.text",
        "body": f"* {new['body'][:MAX_FALLBACK_CHARACTERS]}",
        "m.mentions": {},
        "m.new_content": new,
        "m.relates_to": {"rel_type": "m.replace", "event_id": event_id},
    }


def voice_content(address: Address, message: OutgoingMessage, uri: str, media_type: str) -> dict[str, Any]:
    """Return the event content of a voice message."""
    content: dict[str, Any] = {
        "msgtype": "m.audio",
        "body": strip_control_characters(message.text) or "voice message",
        "filename": "voice message",
        "url": uri,
        "info": {"mimetype": media_type, "size": len(message.voice)},
        "org.matrix.msc3245.voice": {},
        "m.mentions": {},
    }
    relation = _make_relation(address, message.reply_to)
    return {**content, "m.relates_to": relation} if relation else content


def _text_content(message: OutgoingMessage, *, has_markup: bool) -> dict[str, Any]:
    text = strip_control_characters(append_choices(message.text, message.buttons))
    content: dict[str, Any] = {"msgtype": "m.text", "body": text, "m.mentions": {}}
    formatted = to_html(text) if has_markup else ""
    if not formatted:
        return content
    rich = {**content, "format": "org.matrix.custom.html", "formatted_body": formatted}
    return rich if len(msgspec.json.encode(rich)) <= MAX_CONTENT_BYTES - 2000 else content


def strip_control_characters(text: str) -> str:
    """Return text without control characters and unpaired surrogates, which homeservers reject."""
    return _CONTROL.sub("", text.replace("\r\n", "\n"))


def to_html(text: str) -> str:
    """Convert Markdown to HTML with raw HTML escaped. Return "" if it has no markup or can't be rendered."""
    tokens = parse(text)
    if tokens is None:
        return ""
    markdown = get_parser()
    markdown.add_render_rule("image", _render_image_as_link)
    rendered = markdown.renderer.render(tokens, markdown.options, {}).strip()
    unformatted = "<p>" + escape(text.strip()).replace("&#x27;", "'").replace("\n", "<br />\n") + "</p>"
    return "" if rendered == unformatted else rendered


def _render_image_as_link(renderer: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
    """Render an image as a link, so that clients don't fetch it when they display the message."""
    url, label = str(tokens[index].attrs["src"]), escape(tokens[index].content)
    return f'<a href="{escape(url)}">{label or escape(url)}</a>' if url.lower().startswith(WEB_SCHEMES) else label


def transaction_id(address: Address, key: str, kind: str = "message") -> str:
    """Return the transaction id for a key. The thread is included, because ids must be unique in the whole room."""
    return hashlib.sha256("\0".join((kind, address.thread, key)).encode()).hexdigest()[:40]


def _make_relation(address: Address, reply_to: str) -> dict[str, Any]:
    reply = {"m.in_reply_to": {"event_id": reply_to or address.thread}}
    if address.thread:
        return {"rel_type": "m.thread", "event_id": address.thread, "is_falling_back": not reply_to, **reply}
    return reply if reply_to else {}
