"""Telegram's limits: sizes of messages and buttons, and how often a bot may send."""

from hark.protocol.chat import PlatformLimits
from hark.timing.rate_limit import RateLimit

MOST_CHARACTERS = 4096
# Below 4096: signs such as 😀 count twice, and some markup shows a little more than its source.
LIMITS = PlatformLimits(characters=3800, edit_seconds=1.2, has_reactions=True)

BUTTON_BYTES = 64  # of the value that comes back
MOST_LETTERS = 60  # of a button
ROW_LETTERS = 26
ROW_BUTTONS = 3


def bot_limit() -> RateLimit:
    """Return the rate of a bot in all chats. Telegram takes 30 messages a second."""
    return RateLimit(10, 20.0)


def group_limit() -> RateLimit:
    """Return the rate in one group. Telegram takes 20 messages a minute."""
    return RateLimit(5, 15 / 60, reserve=2)
