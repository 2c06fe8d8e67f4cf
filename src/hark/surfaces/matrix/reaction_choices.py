"""Buttons on a platform that has none: people tap a reaction under the message, or answer with its number."""

from collections.abc import Sequence

from msgspec import Struct, field

from hark.protocol.chat import Address, Button

MOST_OPEN = 1000
STOP_SIGN = "⏹️"
NUMBERS = ("1️⃣", "2️⃣", "3️⃣", "4️⃣", "5️⃣", "6️⃣", "7️⃣", "8️⃣", "9️⃣", "🔟")
HOW = "Tap a number, or answer with it."


class ButtonMessage(Struct):
    """A message of ours with buttons. `taps`: our own reactions under it, by sign; people have only to tap them."""

    address: Address
    buttons: tuple[Button, ...]
    taps: dict[str, str] = field(default_factory=dict[str, str])


def is_stop(button: Button) -> bool:
    """Tell whether a button stops: it has a sign of its own, and words that everybody knows."""
    return button.value.startswith("stop:")


def signs(buttons: Sequence[Button]) -> list[str]:
    """Return the reaction that stands for each button."""
    choices = iter(NUMBERS)
    return [STOP_SIGN if is_stop(button) else next(choices, "") for button in buttons]


def in_words(text: str, buttons: Sequence[Button]) -> str:
    """Return a text that says which choices there are, and how to choose."""
    choices = [button for button in buttons if not is_stop(button)]
    if not choices:
        return text
    lines = [f"{place}. {button.text}" for place, button in enumerate(choices, 1)]
    return "\n".join([text, "", *lines, "", HOW])


class ReactionChoices:
    """The messages with buttons that are open now. A restart forgets them, as it ends the turns that asked."""

    def __init__(self) -> None:
        self._offers: dict[str, ButtonMessage] = {}

    def open(self, message: str, address: Address, buttons: tuple[Button, ...]) -> ButtonMessage:
        """A message of ours has these buttons now; return it, with the taps that it has already."""
        known = self._offers.get(message)
        if known is not None:
            known.buttons = buttons
            return known
        self._offers[message] = offer = ButtonMessage(address, buttons)
        while len(self._offers) > MOST_OPEN:
            del self._offers[next(iter(self._offers))]
        return offer

    def close(self, message: str) -> ButtonMessage | None:
        """A message of ours has no buttons any more; return what it had."""
        return self._offers.pop(message, None)

    def tapped(self, message: str, sign: str) -> tuple[Address, str] | None:
        """Return what a reaction to a message of ours stands for, and where."""
        offer = self._offers.get(message)
        if offer is None:
            return None
        for button, own in zip(offer.buttons, signs(offer.buttons), strict=True):
            if own and _bare(own) == _bare(sign):
                return offer.address, button.value
        return None

    def answered(self, address: Address, text: str) -> str | None:
        """Return what a text stands for when it is the number or the words of a choice that is open there."""
        said = text.strip().strip(".!").casefold()
        for offer in reversed(self._offers.values()):
            choices = [button for button in offer.buttons if not is_stop(button)]
            if offer.address != address or not choices:
                continue
            for place, button in enumerate(choices, 1):
                if said in (str(place), button.text.casefold()):
                    return button.value
            return None  # an older question is not what is answered now
        return None


def _bare(sign: str) -> str:
    return sign.replace("\ufe0f", "")
