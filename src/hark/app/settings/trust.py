"""What a project's own settings may not do before it is trusted: reach keys, start programs, or ask less often."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hark.disk.private_files import append_private
from hark.protocol.rules import ApprovalMode

_LOOSENING = ("allow", "writable")
# Routes, voice and web would send the person's keys and words to servers of the project's choice, mcp and voice start
# programs, serve and surfaces open doors, sandbox takes walls away, and store and telemetry put what is said elsewhere.
_TRUSTED_ALONE = ("routes", "mcp", "serve", "surfaces", "voice", "web", "sandbox", "store", "telemetry")


def is_trusted(home: Path, workspace: Path) -> bool:
    """Tell whether the person has said that this project's settings hold."""
    try:
        lines = (home / "trusted").read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return False
    return str(workspace.resolve()) in lines


def trust(home: Path, workspace: Path) -> None:
    """Keep that this project's settings hold.

    Raises:
        OSError: It could not be kept.
    """
    if not is_trusted(home, workspace):
        append_private(home / "trusted", f"{workspace.resolve()}\n".encode(), is_durable=False)


def without_trust(layer: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return a project's settings as they hold without trust, and what was left out of them.

    It may always ask more often and deny more.
    """
    kept = dict(layer)
    left: list[str] = []
    left.extend(key for key in _TRUSTED_ALONE if kept.pop(key, None))
    approvals = kept.get("approvals")
    if isinstance(approvals, dict):
        given: dict[str, Any] = dict(approvals)  # pyright: ignore[reportUnknownArgumentType] - as TOML has it
        loose = [key for key in _LOOSENING if given.pop(key, None)]
        if given.get("mode") not in (None, ApprovalMode.ASK):
            loose.append("mode")
            del given["mode"]
        left.extend(f"approvals.{key}" for key in loose)
        kept["approvals"] = given
    return kept, left
