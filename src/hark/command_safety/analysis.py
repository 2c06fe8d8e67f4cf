"""The judgement of a shell command: what it may do, and why a person should be asked."""

from collections.abc import Sequence
from pathlib import Path

from hark.command_safety.following.findings import Judgement, Risk
from hark.command_safety.following.paths import WorkspacePaths
from hark.command_safety.following.walk import CommandWalk

__all__ = ["Judgement", "Risk", "judge"]


def judge(command: str, workspace: Path, *, folder: Path | None = None, writable: Sequence[Path] = ()) -> Judgement:
    """Return the worst that a command may do, seen from `folder`, by default the workspace.

    Paths are resolved, so that links are followed; nothing else is touched. What can't be understood is RISKY.
    """
    walk = CommandWalk(WorkspacePaths(workspace, writable, Path.home()), str(folder or workspace))
    try:
        walk.judge(command)
    except RecursionError:  # the limits of the walk come first, unless it is called from deep down
        walk.verdict.note(Risk.RISKY, "it is too tangled to be judged")
    return walk.verdict.judgement()
