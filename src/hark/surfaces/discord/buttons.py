"""Buttons as Discord has them: in rows of five, each with an id of at most a hundred characters."""

import hashlib
from collections.abc import Sequence
from typing import Any

from hark.protocol.chat import Button

LONGEST_ID = 100
LONGEST_LABEL = 80
IN_A_ROW = 5
ROWS = 5
MOST_KEPT = 2000
SHORT = "~"


class Buttons:
    """Turns buttons into components, and the id of a pressed one back into its value.

    A value that is too long is kept here under a short name, in memory: after a restart that button is too old.
    """

    def __init__(self) -> None:
        self._long: dict[str, str] = {}

    def rows(self, buttons: Sequence[Button]) -> list[dict[str, Any]]:
        """Return them as rows of components; more than Discord shows are left out."""
        shown = [self._component(button) for button in buttons[: IN_A_ROW * ROWS]]
        return [{"type": 1, "components": shown[at : at + IN_A_ROW]} for at in range(0, len(shown), IN_A_ROW)]

    def value(self, name: str) -> str | None:
        """Return what a button stands for; None when that is not known any more."""
        return self._long.get(name) if name.startswith(SHORT) else name

    def _component(self, button: Button) -> dict[str, Any]:
        label = button.text.strip()[:LONGEST_LABEL] or "…"
        style = 4 if button.value.startswith("stop:") else 2
        return {"type": 2, "style": style, "label": label, "custom_id": self._name(button.value)}

    def _name(self, value: str) -> str:
        if value and len(value) <= LONGEST_ID and not value.startswith(SHORT):
            return value
        name = SHORT + hashlib.sha256(value.encode()).hexdigest()[:40]
        self._long.pop(name, None)
        self._long[name] = value
        while len(self._long) > MOST_KEPT:
            del self._long[next(iter(self._long))]
        return name
