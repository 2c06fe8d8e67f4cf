"""How names are built: sessions, and turns (SESSION.tNUMBER, counted from 1 in each session)."""

import re

_SESSION = re.compile(r"[A-Za-z0-9._:@+-]{1,200}")
_CHILD = ".c-"
_MARK = ".t"


def check_name(session: str) -> str:
    """Return the name if a session can have it.

    Raises:
        ValueError: It can't.
    """
    if not _SESSION.fullmatch(session):
        raise ValueError(f"{session!r} can't name a session: use 1 to 200 letters, digits and . _ : @ + -")
    return session


def child_name(session: str, call: str) -> str:
    """Return the session that a call of this session starts."""
    return f"{session}{_CHILD}{call}"


def turn_name(session: str, number: int | str) -> str:
    """Return the name of a session's turn."""
    return f"{session}{_MARK}{number}"


def turn_meant(session: str, words: str) -> str:
    """Return the turn that a person means: its whole name, `t3` or `3`."""
    return words if "." in words else turn_name(session, words.removeprefix("t"))


def session_of(turn: str) -> str:
    """Return the session that a turn is of."""
    return turn.rpartition(_MARK)[0]


def number_of(turn: str) -> int:
    """Return a turn's place in its session; 0 for what is no turn's name."""
    digits = turn.rpartition(_MARK)[2]
    return int(digits) if digits.isdigit() else 0


def short_name(turn: str) -> str:
    """Return a turn's name without its session's: `t3`."""
    return turn.rpartition(".")[2]
