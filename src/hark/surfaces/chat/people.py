"""Who may talk to the agent: those whom the settings name, and those whom its owner has let in."""

import secrets
import time
from collections import deque
from typing import Protocol

from hark.protocol.chat import Author
from hark.surfaces.chat.recent_values import Recent

CODE_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
CODE_LENGTH = 8
MINUTE = 60.0
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
        self._per_minute = per_minute
        self._times: dict[str, deque[float]] = {}
        self._told: Recent[float] = Recent()
        self._answered: deque[tuple[float, str]] = deque()

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
        now = time.monotonic()
        while self._answered and now - self._answered[0][0] > MINUTE:
            self._answered.popleft()
        to_them = sum(person == author.id for _, person in self._answered)
        if to_them >= ANSWERS_TO_ONE or len(self._answered) >= ANSWERS_TO_ALL:
            return False
        self._answered.append((now, author.id))
        return True

    def is_too_fast(self, author: Author) -> bool:
        """Count one more message; True when there were too many within a minute."""
        now = time.monotonic()
        times = self._times.setdefault(author.id, deque())
        while times and now - times[0] > 60:
            times.popleft()
        if len(times) >= self._per_minute:
            return True
        times.append(now)
        return False

    def is_to_be_told(self, author: Author) -> bool:
        """Tell whether somebody who is not heard does not know it yet: they are told once a minute."""
        now, told = time.monotonic(), self._told.get(author.id)
        if told is not None and now - told < 60:
            return False
        self._told.put(author.id, now)
        return True
