"""The files of a workspace as digests, to compare them before and after an action."""

import hashlib
from pathlib import Path

State = dict[str, str]
SHELL = "shell"  # files with this word in their names are changed by commands, which sync nothing


def read_state(workspace: Path) -> State:
    """Return the digest of each file by its path, without the drafts that an interrupted write leaves."""
    return {
        str(path.relative_to(workspace)): hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        for path in sorted(workspace.rglob("*"))
        if path.is_file() and not path.is_symlink() and not _is_draft(path)
    }


def differing_paths(state: State, *legal: State) -> list[str]:
    """Return the paths whose content is in none of the legal states."""
    paths = state.keys() | {path for one in legal for path in one}
    return sorted(path for path in paths if state.get(path) not in [one.get(path) for one in legal])


def describe_content(workspace: Path, path: str) -> str:
    """Describe a wrong file at this path."""
    file = workspace / path
    if not file.is_file():
        return f"{path} is missing"
    size = file.stat().st_size
    return f"{path} is empty" if size == 0 else f"{path} has wrong content ({size} bytes)"


def _is_draft(path: Path) -> bool:
    return path.name.startswith(".hark-undo-") or (path.name.startswith(".") and path.suffix == ".hark")
