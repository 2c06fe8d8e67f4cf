"""Whose child a process becomes when its parent ends: on Linux, that of the nearest ancestor which adopts."""

import ctypes
import sys

_PR_SET_CHILD_SUBREAPER = 36


def _nothing() -> None:
    """Elsewhere an orphan becomes a child of init, and only its group tells whose it was."""


def _adopt() -> None:
    # Kept over exec and not inherited by fork. So the first process of a call is the parent of all that lost theirs,
    # as long as it lives, and a daemon that cleared its environment and left its session is still seen as its child.
    _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


if sys.platform == "linux":
    _prctl = ctypes.CDLL(None).prctl
    adopt_orphans = _adopt
else:
    adopt_orphans = _nothing
