"""How names and ids are built: sessions, turns, children, background sessions, schedules and leases."""

import re

from hark.protocol.chat import Address

_SESSION = re.compile(r"[A-Za-z0-9._:@+-]{1,200}")
_SCHEDULE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TURN = ".t"
_CHILD = ".c-"
_BACKGROUND = ".m-"
_SCHEDULED = "schedule:"
_CONTINUES = "continue:"

# Leases whose names no session can have.
DRAINING = "=draining"  # held by a gateway that is about to end
SCHEDULER = "=schedules"  # held by the process that sends what comes due


# Sessions.


def check_name(session: str) -> str:
    """Return the name if a session can have it.

    Raises:
        ValueError: It can't.
    """
    if not _SESSION.fullmatch(session):
        raise ValueError(f"{session!r} can't name a session: use 1 to 200 letters, digits and . _ : @ + -")
    if not session.strip("."):
        raise ValueError(f"{session!r} can't name a session: it would be a folder")
    return session


def address_session(address: Address) -> str:
    """Return the session of a chat address. Threads are sessions of their own."""
    parts = [address.surface, address.chat, *([address.thread] if address.thread else [])]
    return ":".join("".join(_escaped(letter) for letter in part) for part in parts)


def surface_of(session: str) -> str:
    """Return the chat surface whose session this is; for other sessions a word that names no surface."""
    return session.partition(":")[0]


def fork_name(session: str, unique: str) -> str:
    """Return the name for a copy of a session."""
    return f"{session.split('.')[0]}-{unique[:6]}"


def _escaped(letter: str) -> str:
    is_plain = letter.isascii() and (letter.isalnum() or letter in "._@-")
    return letter if is_plain else f"+{ord(letter):x}+"


# Children and background sessions.


def child_name(session: str, call: str) -> str:
    """Return the session that a call of this session starts."""
    return f"{session}{_CHILD}{call}"


def is_child(session: str) -> bool:
    """Return whether a call of another session started this one."""
    return _CHILD in session


def child_depth(session: str) -> int:
    """Return how many parents a session has; 0 when no call started it."""
    return session.count(_CHILD)


def split_child(session: str) -> tuple[str, str]:
    """Return a child's parent and the call that started it; the parent is "" when no call did."""
    parent, _, call = session.rpartition(_CHILD)
    return parent, call


def is_child_of(name: str, session: str) -> bool:
    """Return whether a session is a child of another one, or a child of its children."""
    return name.startswith(f"{session}{_CHILD}")


def background_name(session: str, unique: str) -> str:
    """Return a session for background work on another one."""
    return f"{session}{_BACKGROUND}{unique}"


def is_background(session: str) -> bool:
    """Return whether a session does background work. It repeats messages of others, so lists leave it out."""
    return _BACKGROUND in session


def is_listed(session: str) -> bool:
    """Return whether a session stands in lists by itself: children and background work belong to another one."""
    return not is_child(session) and not is_background(session)


def belongs_to(name: str, session: str) -> bool:
    """Return whether a session is a child or background work of another one."""
    return name.startswith((f"{session}{_CHILD}", f"{session}{_BACKGROUND}"))


# Turns: SESSION.tNUMBER, counted from 1 in each session.


def turn_name(session: str, number: int | str) -> str:
    """Return the name of a session's turn."""
    return f"{session}{_TURN}{number}"


def turn_meant(session: str, words: str) -> str:
    """Return the turn that a person means: its whole name, `t3` or `3`."""
    return words if "." in words else turn_name(session, words.removeprefix("t"))


def session_of(turn: str) -> str:
    """Return the session that a turn is of."""
    return turn.rpartition(_TURN)[0]


def number_of(turn: str) -> int:
    """Return a turn's place in its session; 0 for what is no turn's name."""
    digits = turn.rpartition(_TURN)[2]
    return int(digits) if digits.isdigit() else 0


def short_name(turn: str) -> str:
    """Return a turn's name without its session's: `t3`."""
    return turn.rpartition(".")[2]


# Messages that no person wrote.


def continue_id(turn: str) -> str:
    """Return the id of the message that continues a turn."""
    return f"{_CONTINUES}{turn}"


def continued_turn(message: str) -> str:
    """Return the turn that a message of this id continues; "" when it continues none."""
    return message.removeprefix(_CONTINUES) if message.startswith(_CONTINUES) else ""


def is_schedule_name(name: str) -> bool:
    """Return whether a schedule can have that name."""
    return _SCHEDULE.fullmatch(name) is not None


def scheduled_id(schedule: str, moment: int | str) -> str:
    """Return the id of the message that a schedule sends at a moment."""
    return f"{_SCHEDULED}{schedule}:{moment}"


def is_scheduled(message: str) -> bool:
    """Return whether a schedule sent the message of this id."""
    return message.startswith(_SCHEDULED)


def is_same_schedule(message: str, other: str) -> bool:
    """Return whether the schedule that sent the message of the first id sent the other one, too."""
    return other.startswith(message[: message.index(":", len(_SCHEDULED)) + 1])
