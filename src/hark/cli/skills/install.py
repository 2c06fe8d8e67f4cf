"""Installs a skill's folder. Checks it first, then moves it into place atomically."""

import hashlib
import os
import secrets
import shutil
import stat
from pathlib import Path

import anyio.lowlevel
from msgspec import Struct

from hark.disk.durable import sync_files, sync_folders
from hark.disk.private_files import restrict_access
from hark.tools.skills.skill import EXCLUDED_FOLDERS, BadSkill, Skill, read_skill

MAX_FILES = 1_000
MAX_BYTES = 50_000_000


class InstalledSkill(Struct, frozen=True):
    """An installed skill, with its files and their checksum."""

    skill: Skill
    files: tuple[str, ...]
    executables: tuple[str, ...]
    sha256: str


class InstallError(Exception):
    """The skill was not installed, and nothing was changed. The message says why and what to do."""


class _FolderContents(Struct, frozen=True):
    files: tuple[str, ...]
    links: tuple[str, ...]
    executables: tuple[str, ...]


async def install_skill(
    source: Path, into: Path, sha256: str = "", *, is_forced: bool = False, is_private: bool = False
) -> InstalledSkill:
    """Install the skill in the folder `source` into the skills folder `into`. Cancelling leaves no partial copy.

    With `is_private`, only the owner can access the installed skill.

    Raises:
        InstallError: The folder is not a skill, has forbidden content, or the skill is already installed.
    """
    try:
        skill = read_skill(source)
        contents = _scan_folder(source)
    except BadSkill as error:
        raise InstallError(f"The skill can't be installed: {error}.") from error
    target = into / skill.name
    digest = checksum_of(source, contents.files)
    if sha256 and digest != sha256:
        raise InstallError(f"The files differ from the index: their sha256 is {digest}, not {sha256}.")
    draft = into / f".{skill.name}.{secrets.token_hex(4)}.new"
    try:
        _create_draft(draft, target, is_forced=is_forced)
        await _copy_files(source, draft, contents)
        if is_private:
            for path in (into, draft, *draft.rglob("*")):
                if not path.is_symlink():
                    restrict_access(path)
        folders = {draft, *((draft / name).parent for name in (*contents.files, *contents.links))}
        sync_files([draft / name for name in contents.files])
        sync_folders(folders)
        _move_into_place(draft, target)
        sync_folders([into])
    except OSError as error:
        raise InstallError(f"{target} could not be written: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return InstalledSkill(Skill(skill.name, skill.description, target), contents.files, contents.executables, digest)


def checksum_of(folder: Path, files: tuple[str, ...]) -> str:
    """Return one checksum for all files: the sha256 of the lines that `sha256sum` prints for them, sorted by name."""
    lines = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in sorted(files)]
    return hashlib.sha256("".join(lines).encode(errors="surrogateescape")).hexdigest()


def _scan_folder(folder: Path) -> _FolderContents:
    root = Path(os.path.realpath(folder))
    files: list[str] = []
    links: list[str] = []
    executables: list[str] = []
    size = 0
    for directory, inner, names in os.walk(root):
        inner[:] = sorted(name for name in inner if name not in EXCLUDED_FOLDERS)
        for name in [*sorted(names), *(name for name in inner if (Path(directory) / name).is_symlink())]:
            path = Path(directory) / name
            name_in_skill = path.relative_to(root).as_posix()
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                _check_link(path, name_in_skill, root)
                links.append(name_in_skill)
            elif stat.S_ISREG(status.st_mode):
                files.append(name_in_skill)
                size += status.st_size
                if status.st_mode & 0o111:
                    executables.append(name_in_skill)
            else:
                raise BadSkill(f"{name_in_skill} is neither a file nor a folder")
            if len(files) + len(links) > MAX_FILES or size > MAX_BYTES:
                raise BadSkill(f"it has more than {MAX_FILES:,} files or {MAX_BYTES // 1_000_000} MB")
    return _FolderContents(tuple(files), tuple(links), tuple(executables))


def _check_link(path: Path, name_in_skill: str, root: Path) -> None:
    target = Path(os.path.realpath(path))
    if path.readlink().is_absolute() or not target.is_relative_to(root):
        raise BadSkill(f"{name_in_skill} is a link that points outside of the skill")


def _create_draft(draft: Path, target: Path, *, is_forced: bool) -> None:
    if os.path.lexists(target) and not is_forced:
        raise InstallError(f"{target} already exists. Install with --force to replace it.")
    draft.mkdir(parents=True)


async def _copy_files(source: Path, draft: Path, contents: _FolderContents) -> None:
    for name in contents.files:
        await anyio.lowlevel.checkpoint()
        (draft / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, draft / name)
        (draft / name).chmod(0o755 if name in contents.executables else 0o644)
    for name in contents.links:
        (draft / name).parent.mkdir(parents=True, exist_ok=True)
        (draft / name).symlink_to((source / name).readlink())


def _move_into_place(draft: Path, target: Path) -> None:
    """Rename the draft to its final name. If that fails, the previous folder is restored."""
    if not os.path.lexists(target):
        draft.rename(target)
        return
    before = draft.with_suffix(".old")
    target.rename(before)
    try:
        draft.rename(target)
    except OSError:
        before.rename(target)
        raise
    if before.is_symlink() or before.is_file():
        before.unlink()
    else:
        shutil.rmtree(before, ignore_errors=True)
