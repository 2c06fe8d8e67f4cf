"""What was said lately at each address: for answers by their words, and for replies that name a message."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from hark.protocol.chat import Address, Button, Outgoing

MOST = 5_000
MOST_OPEN = 500
QUOTED_CHARACTERS = 500


class RecentMessages:
    """Of too many the oldest are forgotten; a restart forgets all, and with it every open question."""

    def __init__(self) -> None:
        self._texts: OrderedDict[tuple[Address, str], str] = OrderedDict()
        self._choices: OrderedDict[tuple[Address, str], Sequence[Button]] = OrderedDict()

    def heard(self, address: Address, message: str, text: str) -> None:
        """Keep what a program said."""
        self._texts[address, message] = text[:QUOTED_CHARACTERS]
        _bound(self._texts, MOST)

    def said(self, address: Address, message: str, new: Outgoing) -> None:
        """Keep what we said, or changed; a question that lost its choices is closed."""
        self.heard(address, message, new.text)
        self._choices.pop((address, message), None)
        if new.buttons:
            self._choices[address, message] = new.buttons
            _bound(self._choices, MOST_OPEN)

    def text(self, address: Address, message: str) -> str:
        """Return a message's text, "" when it is not known."""
        return self._texts.get((address, message), "")

    def choices(self, address: Address) -> list[Button]:
        """Return the choices that are open there, the newest question's first."""
        open_here = [buttons for (where, _), buttons in reversed(self._choices.items()) if where == address]
        return [button for buttons in open_here for button in buttons]


def _bound(table: "OrderedDict[Any, Any]", most: int) -> None:
    while len(table) > most:
        table.popitem(last=False)
