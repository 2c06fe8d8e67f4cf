"""A message of ours as Slack takes it: a text, and blocks when there are buttons or much to say."""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from hark.protocol.chat import Button, Outgoing
from hark.surfaces.chat.split_text import pieces
from hark.surfaces.slack.mrkdwn import escape, mrkdwn

TEXT_CHARACTERS = 4000  # what chat.update takes
SECTION_CHARACTERS = 3000
BUTTON_CHARACTERS = 75
ACTIONS_BUTTONS = 25
PREVIEW_CHARACTERS = 300
_SIZES = (2900, 1400, 550)  # a letter grows to five at most, so the last one always fits
_CUT = "\n… (cut)"

Block = dict[str, Any]


class Shape(Struct, frozen=True):
    """What is sent: with blocks, the text is what notifications show."""

    text: str
    blocks: list[Block]


def shapes(message: Outgoing) -> Iterator[Shape]:
    """Yield the message in the ways to say it, the best first: the next is for when Slack refuses the one before."""
    words = message.text.strip() or "…"
    text = mrkdwn(words)
    if not message.buttons and len(text) <= TEXT_CHARACTERS:
        yield Shape(text, [])
    else:
        rich = [_section("mrkdwn", part) for part in _sections(words)]
        yield Shape(_preview(words), rich + _actions(message.buttons))
    # Plain text is shown as it is, so it does not grow: whatever is in it, it fits.
    simple = [_section("plain_text", part) for part in pieces(words, _SIZES[0])]
    yield Shape(_preview(words), simple + _actions(message.buttons))
    yield Shape(_bare(words), [])


def _sections(words: str) -> list[str]:
    parts: list[str] = []
    for size in _SIZES:
        parts = [mrkdwn(part) for part in pieces(words, size)]
        if all(len(part) <= SECTION_CHARACTERS for part in parts):
            break
    return parts


def _section(kind: str, text: str) -> Block:
    return {"type": "section", "text": {"type": kind, "text": text}}


def _actions(buttons: tuple[Button, ...]) -> list[Block]:
    elements: list[Block] = [
        {
            "type": "button",
            "action_id": f"hark_{place}",
            "text": {"type": "plain_text", "text": _short(button.text), "emoji": True},
            "value": button.value,
        }
        for place, button in enumerate(buttons)
    ]
    rows = [elements[at : at + ACTIONS_BUTTONS] for at in range(0, len(elements), ACTIONS_BUTTONS)]
    return [{"type": "actions", "elements": row} for row in rows]


def _short(text: str) -> str:
    return text if len(text) <= BUTTON_CHARACTERS else text[: BUTTON_CHARACTERS - 1] + "…"


def _preview(words: str) -> str:
    return escape(words[:PREVIEW_CHARACTERS])


def _bare(words: str) -> str:
    """Return the text without any markup of ours; only one of almost nothing but & < > has to be cut."""
    text = escape(words)
    while len(text) > TEXT_CHARACTERS:
        words = words[: len(words) * 9 // 10]
        text = escape(words) + _CUT
    return text
