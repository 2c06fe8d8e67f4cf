"""Buttons as Telegram has them: a short text, and at most 64 bytes that come back."""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hark.protocol.chat import Button

if TYPE_CHECKING:
    from aiogram.types import InlineKeyboardMarkup

MOST_BYTES = 64
MOST_LETTERS = 60
ROW_LETTERS = 26
ROW_BUTTONS = 3
REMEMBERED = 10_000
_MARK = "~"  # no value of ours begins with it


class Values:
    """What buttons stand for. A value that is too long is remembered here, and a short name of it is sent."""

    def __init__(self) -> None:
        self._long: dict[str, str] = {}

    def shortened(self, value: str) -> str:
        """Return what to send for a value."""
        if len(value.encode()) <= MOST_BYTES and not value.startswith(_MARK):
            return value
        name = _MARK + hashlib.sha256(value.encode()).hexdigest()[:40]
        self._long[name] = value
        if len(self._long) > REMEMBERED:
            del self._long[next(iter(self._long))]
        return name

    def of(self, sent: str) -> str:
        """Return the value that was sent so; "" when it was forgotten."""
        return self._long.get(sent, "") if sent.startswith(_MARK) else sent


def keyboard(buttons: Sequence[Button], values: Values) -> "InlineKeyboardMarkup | None":
    """Return the buttons in rows that fit on a phone."""
    from aiogram.types import InlineKeyboardButton, InlineKeyboardMarkup

    if not buttons:
        return None
    rows: list[list[InlineKeyboardButton]] = []
    letters = ROW_LETTERS
    for button in buttons:
        text = button.text if len(button.text) <= MOST_LETTERS else button.text[: MOST_LETTERS - 1] + "…"
        letters += len(text)
        if letters > ROW_LETTERS or len(rows[-1]) == ROW_BUTTONS:
            rows.append([])
            letters = len(text)
        rows[-1].append(InlineKeyboardButton(text=text or "·", callback_data=values.shortened(button.value)))
    return InlineKeyboardMarkup(inline_keyboard=rows)
