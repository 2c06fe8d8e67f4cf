"""Control who may write to the agent: users allowed in the settings and users that the owner has paired."""

import logging
import secrets
from typing import Protocol

from anyio import to_thread

from hark.protocol.chat import Author
from hark.timing.rate_limit import RateLimit, RateLimits

LOG = logging.getLogger(__name__)
CODE_CHARACTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
CODE_LENGTH = 8
CODES_PER_SENDER = 3  # how many times per minute an unknown sender receives a pairing code
CODES_PER_SURFACE = 60  # per minute to all unknown senders, so that they can't make the bot flood others


class PairingStore(Protocol):
    """Stores the paired accounts and the codes of open pairing requests."""

    def is_paired(self, surface: str, person: str) -> bool:
        """Return whether the owner has paired this account."""
        ...

    def request_pairing(self, surface: str, author: Author, code: str) -> str:
        """Store a pairing request from an unknown sender. Return its code, which stays the same until it expires.

        Raises:
            OSError: The request could not be stored.
        """
        ...


def new_code() -> str:
    """Return a random pairing code that can't be guessed."""
    return "".join(secrets.choice(CODE_CHARACTERS) for _ in range(CODE_LENGTH))


class SenderPolicy:
    """Decides for each message on a surface whether its author may write, and applies the rate limits."""

    def __init__(self, surface: str, allowed: tuple[str, ...], pairings: PairingStore, per_minute: int) -> None:
        self._surface = surface
        self._allowed = {name.casefold().lstrip("@") for name in allowed}
        self._pairings = pairings
        self._messages = RateLimits(lambda: RateLimit(per_minute, per_minute / 60))
        self._warnings = RateLimits(lambda: RateLimit(1, 1 / 60))
        self._codes = RateLimits(lambda: RateLimit(CODES_PER_SENDER, CODES_PER_SENDER / 60))
        self._codes_to_all = RateLimit(CODES_PER_SURFACE, CODES_PER_SURFACE / 60)

    def is_allowed(self, author: Author) -> bool:
        """Return whether the author's id is in the settings or paired. Names are ignored, because they can be faked."""
        if "*" in self._allowed or author.id.casefold().lstrip("@") in self._allowed:
            return True
        return self._pairings.is_paired(self._surface, author.id)

    async def request_code(self, author: Author) -> str:
        """Return the code with which the owner can pair this author, or "" if the request could not be stored."""
        try:
            return await to_thread.run_sync(self._pairings.request_pairing, self._surface, author, new_code())
        except OSError as error:
            LOG.warning("A pairing request on %s could not be stored: %s.", self._surface, error)
            return ""

    def may_send_code(self, author: Author) -> bool:
        """Return whether an unknown sender may be sent a pairing code now. If so, the code counts towards the rate
        limit.
        """
        return self._codes.get_limit(author.id).try_consume_token() and self._codes_to_all.try_consume_token()

    def is_rate_limited(self, author: Author) -> bool:
        """Count a message. Return True if the author exceeded the limit of messages per minute."""
        return not self._messages.get_limit(author.id).try_consume_token()

    def should_warn(self, author: Author) -> bool:
        """Return whether to warn a rate-limited author now, at most once per minute."""
        return self._warnings.get_limit(author.id).try_consume_token()
