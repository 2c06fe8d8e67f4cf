"""Who may talk to the agent: those whom the settings name, and those whom its owner has let in."""

import secrets
from typing import Protocol

from hark.protocol.chat import Author
from hark.timing.rate_limit import RateLimit, RateLimits

CODE_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
CODE_LENGTH = 8
ANSWERS_TO_ONE = 3  # how often a stranger is told their code within a minute
ANSWERS_TO_ALL = 60  # and all strangers of a surface together: nobody may have us write to others without end


class Doorkeeper(Protocol):
    """What lasts of people: who was let in, and the codes of those who knocked."""

    def is_let_in(self, surface: str, person: str) -> bool:
        """Tell whether the owner has let this person in."""
        ...

    def knock(self, surface: str, author: Author, code: str) -> str:
        """Keep that somebody unknown wrote; return their code, the same as long as it holds."""
        ...


def new_code() -> str:
    """Return a code that nobody can guess."""
    return "".join(secrets.choice(CODE_LETTERS) for _ in range(CODE_LENGTH))


class People:
    """Decides about each message of a surface: may its author talk, and not too fast."""

    def __init__(self, surface: str, allowed: tuple[str, ...], doorkeeper: Doorkeeper, per_minute: int) -> None:
        self._surface = surface
        self._allowed = {name.casefold().lstrip("@") for name in allowed}
        self._doorkeeper = doorkeeper
        self._messages = RateLimits(lambda: RateLimit(per_minute, per_minute / 60))
        self._warnings = RateLimits(lambda: RateLimit(1, 1 / 60))
        self._answers = RateLimits(lambda: RateLimit(ANSWERS_TO_ONE, ANSWERS_TO_ONE / 60))
        self._answers_to_all = RateLimit(ANSWERS_TO_ALL, ANSWERS_TO_ALL / 60)

    def is_known(self, author: Author) -> bool:
        """Tell whether somebody may talk: the settings have their id (names can be taken), or the owner let them in."""
        if "*" in self._allowed or author.id.casefold().lstrip("@") in self._allowed:
            return True
        return self._doorkeeper.is_let_in(self._surface, author.id)

    def code_for(self, author: Author) -> str:
        """Return the code with which the owner can let this person in."""
        return self._doorkeeper.knock(self._surface, author, new_code())

    def is_answered(self, author: Author) -> bool:
        """Tell whether a stranger is told their code now; count it if so."""
        return self._answers.of(author.id).take() and self._answers_to_all.take()

    def is_too_fast(self, author: Author) -> bool:
        """Count one more message; True when there were too many within a minute."""
        return not self._messages.of(author.id).take()

    def is_to_be_told(self, author: Author) -> bool:
        """Tell whether somebody who is not heard does not know it yet: they are told once a minute."""
        return self._warnings.of(author.id).take()
