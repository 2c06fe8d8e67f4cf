"""The analysis of a call: what its command or its paths may do, and why a person should be asked."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from anyio import to_thread

from hark.protocol.tool import Foreseen, Judgement, Risk

INLINE_CHARACTERS = 2_000


class ShellAnalyzer:
    """Analyses calls. `home` is what `~` means in a command.

    Commands that would hold up the event loop are analysed in a thread.
    """

    def __init__(self, home: Path) -> None:
        self._home = home

    async def analyze(
        self, foreseen: Foreseen, workspace: Path, folder: Path | None, writable: Sequence[str]
    ) -> Judgement:
        """Return the worst that a call may do. Cancelling leaves a thread to finish on its own."""
        work = partial(_analyze, foreseen, workspace, self._home, folder, writable)
        if len(foreseen.command) <= INLINE_CHARACTERS:
            return work()
        return await to_thread.run_sync(work, abandon_on_cancel=True)


def _analyze(
    foreseen: Foreseen, workspace: Path, home: Path, folder: Path | None, writable: Sequence[str]
) -> Judgement:
    folders = [Path(name).expanduser() for name in writable]
    if foreseen.command:
        return judge(foreseen.command, workspace, home, folder=folder, writable=folders)
    outside = [path for path in foreseen.writes or () if _is_outside(path, workspace, folders)]
    if outside:
        return Judgement(Risk.LEAVING, tuple(f"writes to {path}, outside the workspace" for path in outside))
    return Judgement(Risk.CHANGING if foreseen.is_changing else Risk.READING)


def _is_outside(path: str, workspace: Path, writable: Sequence[Path]) -> bool:
    """Return whether a path, links followed, leads out of all that may be written to."""
    try:
        real = (workspace / Path(path).expanduser()).resolve()
        return not any(real.is_relative_to(folder.resolve()) for folder in (workspace, *writable))
    except (OSError, RuntimeError, ValueError):  # a loop of links, an unknown user's home: can't be told
        return True


def judge(
    command: str, workspace: Path, home: Path, *, folder: Path | None = None, writable: Sequence[Path] = ()
) -> Judgement:
    """Return the worst that a command may do, seen from `folder`, by default the workspace.

    Paths are resolved, so that links are followed; nothing else is touched. What can't be understood is RISKY.
    """
    # Not before the first command: these are large.
    from hark.command_safety.following.paths import WorkspacePaths
    from hark.command_safety.following.walk import CommandWalk

    walk = CommandWalk(WorkspacePaths(workspace, writable, home), str(folder or workspace))
    try:
        walk.judge(command)
    except RecursionError:  # the limits of the walk come first, unless it is called from deep down
        walk.verdict.note(Risk.RISKY, "it is too tangled to be judged")
    return walk.verdict.judgement()
