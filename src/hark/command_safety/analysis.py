"""Analysis of a tool call: its risk level, and the reasons why the user should be asked for approval."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from anyio import to_thread

from hark.protocol.tool import PredictedEffects, Risk, RiskAssessment

INLINE_CHARACTERS_MAX = 2_000


class ShellAnalyzer:
    """Analyzes the risk of tool calls. `home` is the directory that `~` stands for in a command.

    Commands long enough to block the event loop are analyzed in a thread.
    """

    def __init__(self, home: Path) -> None:
        self._home = home

    async def analyze(
        self, effects: PredictedEffects, workspace: Path, folder: Path | None, writable: Sequence[str]
    ) -> RiskAssessment:
        """Return the highest risk of a call, and the reasons for it. Cancelling abandons the thread, if any."""
        work = partial(_analyze_effects, effects, workspace, self._home, folder, writable)
        if len(effects.command) <= INLINE_CHARACTERS_MAX:
            return work()
        return await to_thread.run_sync(work, abandon_on_cancel=True)


def _analyze_effects(
    effects: PredictedEffects, workspace: Path, home: Path, folder: Path | None, writable: Sequence[str]
) -> RiskAssessment:
    writable_folders = [Path(name).expanduser() for name in writable]
    if effects.command:
        return analyze_command(effects.command, workspace, home, folder=folder, writable=writable_folders)
    outside = [path for path in effects.writes or () if _is_outside(path, workspace, writable_folders)]
    if outside:
        return RiskAssessment(Risk.LEAVING, tuple(f"changes a file outside the workspace: {path}" for path in outside))
    return RiskAssessment(Risk.CHANGING if effects.is_changing else Risk.READING)


def _is_outside(path: str, workspace: Path, writable: Sequence[Path]) -> bool:
    """Return whether a path, with symbolic links resolved, is outside the workspace and all writable folders."""
    try:
        real = (workspace / Path(path).expanduser()).resolve()
        return not any(real.is_relative_to(folder.resolve()) for folder in (workspace, *writable))
    except (OSError, RuntimeError, ValueError):  # a symlink loop or an unknown user's home can't be resolved
        return True


def analyze_command(
    command: str, workspace: Path, home: Path, *, folder: Path | None = None, writable: Sequence[Path] = ()
) -> RiskAssessment:
    """Return the highest risk of a command that starts in `folder`, by default the workspace, and the reasons.

    Symbolic links are resolved on disk; nothing is changed. Commands that can't be understood are RISKY.
    """
    # Imported on the first command, because these modules are large.
    from hark.command_safety.following.command_analysis import CommandAnalysis
    from hark.command_safety.following.paths import WorkspacePaths

    analyzer = CommandAnalysis(WorkspacePaths(workspace, writable, home), str(folder or workspace))
    try:
        analyzer.analyze(command)
    except RecursionError:  # the analyzer's own limits apply first, unless the stack is already deep
        analyzer.findings.add_risk(Risk.RISKY, "too complex to analyze")
    return analyzer.findings.build_result()
