"""Lay out a message for Slack: as text, or as blocks if it has buttons or is long."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from hark.protocol.chat import Button, OutgoingMessage
from hark.surfaces.chat.split_text import cut_position, split_text, text_length
from hark.surfaces.slack.mrkdwn import escape, to_mrkdwn

MAX_TEXT_CHARACTERS = 4000  # the limit of chat.update
MAX_SECTION_CHARACTERS = 3000
MAX_LABEL_CHARACTERS = 75
MAX_BLOCK_BUTTONS = 25
MAX_PREVIEW_CHARACTERS = 300
_PART_SIZES = (2900, 1400, 550)  # Escaping turns a character into at most five, so the last size always fits.
_TRUNCATED = "\n… (truncated)"

Block = dict[str, Any]


class SlackLayout(Struct, frozen=True):
    """A laid-out message. If it has blocks, the text is used for notifications only."""

    text: str
    blocks: list[Block]


def make_layouts(message: OutgoingMessage) -> list[Callable[[], SlackLayout | None]]:
    """Return functions that render the layouts of a message, best first. If Slack refuses a layout, try the next."""
    content = message.text.strip("\n") if message.text.strip() else "…"  # Blanks at the start can be markup.

    def render_markup() -> SlackLayout | None:
        text = to_mrkdwn(content)
        if not text.strip():
            return None
        if not message.buttons and text_length(text) <= MAX_TEXT_CHARACTERS:
            return SlackLayout(text, [])
        rich = [_section_block("mrkdwn", part) for part in _mrkdwn_parts(content)]
        return SlackLayout(_preview_text(content), rich + _action_blocks(message.buttons))

    def render_plain() -> SlackLayout:
        # Plain text needs no escaping. Small parts fit even if Slack counts bytes.
        simple = [_section_block("plain_text", part) for part in split_text(content, _PART_SIZES[-1])]
        return SlackLayout(_preview_text(content), simple + _action_blocks(message.buttons))

    return [render_markup, render_plain, lambda: SlackLayout(_escaped_text(content), [])]


def _mrkdwn_parts(content: str) -> list[str]:
    parts: list[str] = []
    for size in _PART_SIZES:
        parts = [to_mrkdwn(part) for part in split_text(content, size)]
        if all(text_length(part) <= MAX_SECTION_CHARACTERS for part in parts):
            break
    return parts


def _section_block(kind: str, text: str) -> Block:
    return {"type": "section", "text": {"type": kind, "text": text}}


def _action_blocks(buttons: tuple[Button, ...]) -> list[Block]:
    elements: list[Block] = [
        {
            "type": "button",
            "action_id": f"hark_{index}",
            "text": {"type": "plain_text", "text": _shorten_label(button.text), "emoji": True},
            "value": button.value,
        }
        for index, button in enumerate(buttons)
    ]
    rows = [elements[start : start + MAX_BLOCK_BUTTONS] for start in range(0, len(elements), MAX_BLOCK_BUTTONS)]
    return [{"type": "actions", "elements": row} for row in rows]


def _shorten_label(text: str) -> str:
    return text if len(text) <= MAX_LABEL_CHARACTERS else text[: MAX_LABEL_CHARACTERS - 1] + "…"


def _preview_text(content: str) -> str:
    return escape(content[: cut_position(content, MAX_PREVIEW_CHARACTERS)])


def _escaped_text(content: str) -> str:
    """Return the text without markup and with &, < and > escaped, truncated if escaping makes it too long."""
    text = escape(content)
    while text_length(text) > MAX_TEXT_CHARACTERS:
        content = content[: cut_position(content, len(content) * 9 // 10)]
        text = escape(content) + _TRUNCATED
    return text
