"""Resolves paths given by a model, formats paths for display, and explains why a path can't be used."""

import difflib
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated

from hark.disk.regular_files import open_regular
from hark.protocol.tool import PredictedEffects, ToolError
from hark.tools.arguments import doc

MAX_SCANNED_NAMES = 5_000
MAX_SUGGESTIONS = 4
_KIND_LABELS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a disk device",
}

FilePath = Annotated[str, doc("The path of the file, relative to the workspace or absolute.")]


def resolve_path(name: str, workspace: Path) -> Path:
    """Resolve a path relative to the workspace. `~` is the user's home directory. The file need not exist.

    Raises:
        ToolError: The text is not a valid path.
    """
    name = name.removeprefix("file://")
    if not name.strip():
        raise ToolError("The path is empty. Name a file or folder; `.` is the workspace.")
    if "\0" in name:
        raise ToolError("The path contains a NUL character. Remove it.")
    if "://" in name[:12]:
        raise ToolError(f"{name} is a URL, not a path on this machine. Download it first, then name the file.")
    try:
        os.fsencode(name)
        return workspace / Path(name).expanduser()
    except (ValueError, RuntimeError) as error:
        raise ToolError(f"{name!r} is not a valid path: {error}. Give a path relative to the workspace.") from error


def display_path(path: Path, workspace: Path) -> str:
    """Format a path for display: relative to the workspace if it is inside, otherwise unchanged."""
    text = str(path.relative_to(workspace)) if path.is_relative_to(workspace) else str(path)
    return text.encode(errors="replace").decode()


def file_write_effects(path: str) -> PredictedEffects:
    """Return the predicted effects of a call that changes one file."""
    return PredictedEffects(is_changing=True, subject=path, writes=(expand_home(path),))


def expand_home(name: str) -> str:
    """Expand `~` in the path of a predicted write. Relative paths stay relative, and any text is accepted."""
    return os.path.expanduser(name.removeprefix("file://"))  # noqa: PTH111 - Path.expanduser may raise


@contextmanager
def open_file(path: Path, workspace: Path) -> Generator[int]:
    """Open a regular file for reading and yield its descriptor. Never waits for the writer of a pipe.

    Raises:
        ToolError: The file is missing, not regular or not readable, or reading it failed.
    """
    try:
        _require_regular(path, path.stat(), workspace)
        with open_regular(path, follow_symlink=True) as descriptor:
            yield descriptor
    except FileNotFoundError as error:
        raise ToolError(missing_file_text(path, workspace)) from error
    except OSError as error:
        raise ToolError(f"{display_path(path, workspace)} can't be read: {error.strerror}.") from error


def read_content(path: Path, workspace: Path, max_bytes: int, limit_text: str) -> bytes:
    """Return a file's whole content. `limit_text` completes the error message for a file that is too big.

    Raises:
        ToolError: As for `open_file`, or the file has more than `max_bytes`.
    """
    with open_file(path, workspace) as descriptor, os.fdopen(descriptor, "rb", closefd=False) as file:
        size = os.fstat(descriptor).st_size
        if size > max_bytes:
            raise ToolError(f"{display_path(path, workspace)} has {size:,} bytes; at most {max_bytes:,} {limit_text}")
        return file.read(max_bytes) or b""


def missing_file_text(path: Path, workspace: Path) -> str:
    """Return the message for a missing file, with similar names if there are any."""
    name = display_path(path, workspace)
    folder = path.parent
    if not folder.is_dir():
        return f"{name} does not exist, nor does its folder {display_path(folder, workspace)}. Use list or search."
    similar = _similar_names(path.name, folder)
    if similar:
        names = ", ".join(display_path(folder / other, workspace) for other in similar)
        return f"{name} does not exist. Similar names: {names}."
    return f"{name} does not exist. Use list or search to find it."


def _similar_names(name: str, folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in islice(entries, MAX_SCANNED_NAMES)]
    except OSError:
        return []
    low = {one.lower(): one for one in names}
    return [low[one] for one in difflib.get_close_matches(name.lower(), low, MAX_SUGGESTIONS, 0.6)]


def _require_regular(path: Path, status: os.stat_result, workspace: Path) -> None:
    name = display_path(path, workspace)
    if stat.S_ISDIR(status.st_mode):
        raise ToolError(f"{name} is a folder. Use list to see its contents.")
    if not stat.S_ISREG(status.st_mode):
        kind = _KIND_LABELS.get(stat.S_IFMT(status.st_mode), "not a regular file")
        raise ToolError(f"{name} is {kind} and can't be read as text. If needed, use the shell with a time limit.")
