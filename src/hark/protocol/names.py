"""Formats of names and ids: sessions, turns, children, background sessions, schedules and leases."""

import re

from hark.protocol.chat import Address

_SESSION = re.compile(r"[A-Za-z0-9._:@+-]{1,200}")
_SCHEDULE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TURN = ".t"
_CHILD = ".c-"
_BACKGROUND = ".m-"
_SCHEDULED = "schedule:"
_CONTINUES = "continue:"
_WAKE_UP = "wake-"

# Names of special leases; no session can have these names.
DRAINING = "=draining"  # held by a gateway that is about to stop
SCHEDULER = "=schedules"  # held by the process that fires due schedules


# Sessions.


def check_session_name(session: str) -> str:
    """Return the name if it is valid for a session.

    Raises:
        ValueError: The name is not valid; the text says why.
    """
    if not _SESSION.fullmatch(session):
        raise ValueError(f"{session!r} is not a valid session name: use 1 to 200 letters, digits and . _ : @ + -")
    if not session.strip("."):
        raise ValueError(f"{session!r} is not a valid session name: it consists only of dots")
    return session


def session_of_address(address: Address) -> str:
    """Return the session name for a chat address. Each thread has a separate session."""
    parts = [address.surface, address.chat, *([address.thread] if address.thread else [])]
    return ":".join("".join(_escape(letter) for letter in part) for part in parts)


def surface_of_session(session: str) -> str:
    """Return the surface part of a chat session's name. For other sessions, the result is not a surface name."""
    return session.partition(":")[0]


def fork_name(session: str, unique: str) -> str:
    """Return a name for a copy of a session."""
    return f"{session.split('.')[0]}-{unique[:6]}"


def _escape(character: str) -> str:
    is_plain = character.isascii() and (character.isalnum() or character in "._@-")
    return character if is_plain else f"+{ord(character):x}+"


# Children and background sessions.


def child_session_name(session: str, call: str) -> str:
    """Return the name of the child session started by a tool call in this session."""
    return f"{session}{_CHILD}{call}"


def is_child(session: str) -> bool:
    """Return whether this session was started by a tool call in another session."""
    return _CHILD in session


def child_depth(session: str) -> int:
    """Return the number of a session's ancestors, which is 0 for a session that is not a child."""
    return session.count(_CHILD)


def split_child(session: str) -> tuple[str, str]:
    """Return a child session's parent and the call that started the child. A session without a parent has parent ""."""
    parent, _, call = session.rpartition(_CHILD)
    return parent, call


def is_descendant(name: str, session: str) -> bool:
    """Return whether a session is a descendant of another session."""
    return name.startswith(f"{session}{_CHILD}")


def background_session_name(session: str, unique: str) -> str:
    """Return a name for a session that does background work for another session."""
    return f"{session}{_BACKGROUND}{unique}"


def is_background(session: str) -> bool:
    """Return whether a session does background work. Lists omit such sessions: they repeat other sessions' messages."""
    return _BACKGROUND in session


def is_listed(session: str) -> bool:
    """Return whether lists show a session as an entry. Children and background sessions belong to another session."""
    return not is_child(session) and not is_background(session)


def belongs_to(name: str, session: str) -> bool:
    """Return whether a session is a descendant or background session of another session."""
    return name.startswith((f"{session}{_CHILD}", f"{session}{_BACKGROUND}"))


# Turns: SESSION.tNUMBER, counted from 1 in each session.


def turn_name(session: str, number: int | str) -> str:
    """Return the name of a session's turn."""
    return f"{session}{_TURN}{number}"


def parse_turn(session: str, text: str) -> str:
    """Resolve a turn reference such as `demo.t3`, `t3` or `3` to the turn's full name."""
    return text if "." in text else turn_name(session, text.removeprefix("t"))


def session_of_turn(turn: str) -> str:
    """Return the session that a turn belongs to."""
    return turn.rpartition(_TURN)[0]


def turn_number(turn: str) -> int:
    """Return a turn's number in its session, or 0 if the text is not a turn's name."""
    digits = turn.rpartition(_TURN)[2]
    return int(digits) if digits.isdigit() else 0


def short_turn_name(turn: str) -> str:
    """Return a turn's name without the session, such as `t3`."""
    return turn.rpartition(".")[2]


# Messages that no user wrote.


def continue_message_id(turn: str) -> str:
    """Return the id of the message that continues a turn."""
    return f"{_CONTINUES}{turn}"


def continued_turn(message: str) -> str:
    """Return the turn that a message with this id continues, or ""."""
    return message.removeprefix(_CONTINUES) if message.startswith(_CONTINUES) else ""


def wake_up_id(work: str) -> str:
    """Return the id of the message that reports the end of background work. Each work item has one such message."""
    return f"{_WAKE_UP}{work}"


def is_wake_up(message: str) -> bool:
    """Return whether the message with this id reports the end of background work."""
    return message.startswith(_WAKE_UP)


def is_from_user(message: str) -> bool:
    """Return whether a user sent the message with this id, rather than a schedule or background work."""
    return not is_scheduled(message) and not is_wake_up(message)


def is_schedule_name(name: str) -> bool:
    """Return whether a name is valid for a schedule."""
    return _SCHEDULE.fullmatch(name) is not None


def scheduled_id(schedule: str, moment: int | str) -> str:
    """Return the id of the message that a schedule sends at a given time."""
    return f"{_SCHEDULED}{schedule}:{moment}"


def is_scheduled(message: str) -> bool:
    """Return whether a schedule sent the message with this id."""
    return message.startswith(_SCHEDULED)


def is_same_schedule(message: str, other: str) -> bool:
    """Return whether the same schedule sent both messages. `message` must be the id of a scheduled message."""
    return other.startswith(message[: message.index(":", len(_SCHEDULED)) + 1])
