"""Emulate buttons with reactions that users tap below the message."""

from collections.abc import Sequence

from msgspec import Struct, field

from hark.protocol.chat import Address, Button

MAX_OPEN_MESSAGES = 1000
STOP_REACTION = "⏹️"
NUMBER_REACTIONS = ("1️⃣", "2️⃣", "3️⃣", "4️⃣", "5️⃣", "6️⃣", "7️⃣", "8️⃣", "9️⃣", "🔟")
ANSWER_HINT = "Tap a number or reply with it."
TAP_HINT = "Tap a number."


class ButtonMessage(Struct):
    """A sent message with buttons. `taps` maps each reaction that users can tap to the bot's own reaction event."""

    address: Address
    buttons: tuple[Button, ...]
    taps: dict[str, str] = field(default_factory=dict[str, str])


def is_stop_button(button: Button) -> bool:
    """Return whether a button stops a turn. Such a button has its own reaction and needs no explanation."""
    return button.value.startswith("stop:")


def button_reactions(buttons: Sequence[Button]) -> list[str]:
    """Return the reaction for each button, or "" for the buttons that remain when all numbers are used."""
    choices = iter(NUMBER_REACTIONS)
    return [STOP_REACTION if is_stop_button(button) else next(choices, "") for button in buttons]


def append_choices(text: str, buttons: Sequence[Button]) -> str:
    """Return the text followed by the numbered choices and a hint on how to choose."""
    choices = [button for button in buttons if not is_stop_button(button)]
    if not choices:
        return text
    lines = [f"{number}. {button.text}" for number, button in enumerate(choices, 1)]
    is_question = any(button.value.startswith("answer:") for button in choices)
    return "\n".join([text, "", *lines, "", ANSWER_HINT if is_question else TAP_HINT])


class ReactionChoices:
    """The sent messages whose buttons are active. Not persisted, because a restart ends the turns that asked."""

    def __init__(self) -> None:
        self._messages: dict[str, ButtonMessage] = {}

    def set_buttons(self, message_id: str, address: Address, buttons: tuple[Button, ...]) -> ButtonMessage:
        """Record the buttons of a sent message. Return the message with the bot's existing reactions."""
        known = self._messages.get(message_id)
        if known is not None:
            known.buttons = buttons
            return known
        self._messages[message_id] = message = ButtonMessage(address, buttons)
        while len(self._messages) > MAX_OPEN_MESSAGES:
            del self._messages[next(iter(self._messages))]
        return message

    def remove_buttons(self, message_id: str) -> ButtonMessage | None:
        """Remove the buttons of a sent message. Return the message, or None if it has no known buttons."""
        return self._messages.pop(message_id, None)

    def find_by_reaction(self, message_id: str, reaction: str) -> tuple[Address, str] | None:
        """Return the address and the button value that a reaction to a sent message selects, or None."""
        message = self._messages.get(message_id)
        if message is None:
            return None
        for button, button_reaction in zip(message.buttons, button_reactions(message.buttons), strict=True):
            if button_reaction and _without_emoji_selector(button_reaction) == _without_emoji_selector(reaction):
                return message.address, button.value
        return None


def _without_emoji_selector(reaction: str) -> str:
    return reaction.replace("\ufe0f", "")
