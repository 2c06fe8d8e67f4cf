"""Telegram's limits on the size of messages and buttons, and on how often a bot may send."""

from hark.protocol.chat import PlatformLimits
from hark.timing.rate_limit import RateLimit

MAX_CHARACTERS = 4096  # in UTF-16 code units, after Telegram has parsed the markup
# Below 4096, because some markup displays a little more than its source.
LIMITS = PlatformLimits(characters=3800, edit_seconds=1.2, has_reactions=True)

BUTTON_BYTES = 64  # of a button's value
MAX_LABEL_CHARACTERS = 60  # of a button's label
MAX_ROW_CHARACTERS = 26
MAX_ROW_BUTTONS = 3


def new_bot_limit() -> RateLimit:
    """Return a rate limit for all messages from a bot. Telegram allows 30 per second."""
    return RateLimit(10, 20.0)


def new_group_limit() -> RateLimit:
    """Return a rate limit for the messages in one group. Telegram allows 20 per minute."""
    return RateLimit(5, 15 / 60, reserve=2)
