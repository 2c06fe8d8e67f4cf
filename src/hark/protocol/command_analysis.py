"""The port to the analysis of a call before it runs: the worst that it may do, and why."""

from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from hark.protocol.tool import Foreseen


class Risk(IntEnum):
    """What a call may do, from the least to the worst.

    LEAVING writes outside the workspace. RISKY is dangerous, but a rule may allow it. HARD is always asked.
    """

    READING = 0
    CHANGING = 1
    LEAVING = 2
    RISKY = 3
    HARD = 4


class Judgement(Struct, frozen=True):
    """The worst that a call does, why, the worst first, and each simple command in it as plain text."""

    risk: Risk
    reasons: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


class CommandAnalyzer(Protocol):
    """Analyses shell commands and paths. It may read the disk to follow links, and changes nothing."""

    async def analyze(
        self, foreseen: Foreseen, workspace: Path, folder: Path | None, writable: Sequence[str]
    ) -> Judgement:
        """Return the worst that a call may do.

        A command starts in `folder`, None for the workspace. `writable` are folders besides the workspace that may be
        written to; `~` is the home directory. Commands that can't be understood are RISKY. Safe to cancel.
        """
        ...
