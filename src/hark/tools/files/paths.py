"""The paths that a model names: where they lead, how they are shown, and what they are when they can't be used."""

import difflib
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated

from hark.disk.regular_files import open_regular
from hark.protocol.tool import Foreseen, ToolError
from hark.tools.arguments import doc

LOOKED_AT = 5_000
SUGGESTED = 4
_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a disk device",
}

FileName = Annotated[str, doc("The file, relative to the workspace or absolute.")]


def resolve(name: str, workspace: Path) -> Path:
    """Return where a path leads: relative to the workspace, `~` is the person's home. It need not exist.

    Raises:
        ToolError: It can't be a path.
    """
    name = name.removeprefix("file://")
    if not name.strip():
        raise ToolError("The path is empty. Name a file or folder; `.` is the workspace.")
    if "\0" in name:
        raise ToolError("The path has a NUL character in it. Name it without.")
    if "://" in name[:12]:
        raise ToolError(f"{name} is an address, not a path on this machine. Fetch it first, then name the file.")
    try:
        os.fsencode(name)
        return workspace / Path(name).expanduser()
    except (ValueError, RuntimeError) as error:
        raise ToolError(f"{name!r} can't be a path: {error}. Name it relative to the workspace.") from error


def shown(path: Path, workspace: Path) -> str:
    """Return a path as people write it: relative to the workspace if it is inside."""
    text = str(path.relative_to(workspace)) if path.is_relative_to(workspace) else str(path)
    return text.encode(errors="replace").decode()


def writes_to(path: str) -> Foreseen:
    """Return what a tool that changes a file would do."""
    return Foreseen(is_changing=True, subject=path, writes=(written_path(path),))


def written_path(name: str) -> str:
    """Return the path that a call would write, as far as it is known without the workspace. Takes anything."""
    return os.path.expanduser(name.removeprefix("file://"))  # noqa: PTH111 - Path.expanduser may raise


@contextmanager
def open_file(path: Path, workspace: Path) -> Generator[int]:
    """Yield a descriptor to read a regular file with; opening it and reading it can't wait for a writer.

    Raises:
        ToolError: It is missing, not a regular file, not ours to read, or reading it failed.
    """
    try:
        _demand_regular(path, path.stat(), workspace)
        with open_regular(path, follows_link=True) as descriptor:
            yield descriptor
    except FileNotFoundError as error:
        raise ToolError(missing(path, workspace)) from error
    except OSError as error:
        raise ToolError(f"{shown(path, workspace)} can't be read: {error.strerror}.") from error


def content_of(path: Path, workspace: Path, most_bytes: int, limit: str) -> bytes:
    """Return all of a file's bytes; `limit` says what can't be done to a bigger one, and what to do.

    Raises:
        ToolError: As `open_file` does, or it has more than `most_bytes`.
    """
    with open_file(path, workspace) as descriptor, os.fdopen(descriptor, "rb", closefd=False) as file:
        size = os.fstat(descriptor).st_size
        if size > most_bytes:
            raise ToolError(f"{shown(path, workspace)} has {size:,} bytes; at most {most_bytes:,} {limit}")
        return file.read(most_bytes) or b""


def missing(path: Path, workspace: Path) -> str:
    """Say that there is no such file, and what there is instead."""
    name = shown(path, workspace)
    folder = path.parent
    if not folder.is_dir():
        return f"{name} does not exist, nor does its folder {shown(folder, workspace)}. Look with list or search."
    near = _near_names(path.name, folder)
    if near:
        return f"{name} does not exist. Near it: {', '.join(shown(folder / one, workspace) for one in near)}."
    return f"{name} does not exist. Look with list or search."


def _near_names(name: str, folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in islice(entries, LOOKED_AT)]
    except OSError:
        return []
    low = {one.lower(): one for one in names}
    return [low[one] for one in difflib.get_close_matches(name.lower(), low, SUGGESTED, 0.6)]


def _demand_regular(path: Path, status: os.stat_result, workspace: Path) -> None:
    name = shown(path, workspace)
    if stat.S_ISDIR(status.st_mode):
        raise ToolError(f"{name} is a folder. See what is in it with list.")
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "no regular file")
        raise ToolError(f"{name} is {kind}, not a file with text. Use the shell if you must, with a time limit.")
