"""Installs a skill's folder: looked through first, then put in its place at once, or not at all."""

import hashlib
import os
import secrets
import shutil
import stat
from pathlib import Path

import anyio.lowlevel
from msgspec import Struct

from hark.disk.private_files import tighten
from hark.tools.skills.folder import UNLISTED, BadSkill, Skill, read_skill

MAX_FILES = 1_000
MAX_BYTES = 50_000_000


class Installed(Struct, frozen=True):
    """What was put where."""

    skill: Skill
    files: tuple[str, ...]
    executables: tuple[str, ...]
    sha256: str


class NotInstalled(Exception):
    """Nothing was changed; the text says why, and what to do."""


class _Contents(Struct, frozen=True):
    files: tuple[str, ...]
    links: tuple[str, ...]
    executables: tuple[str, ...]


async def install(
    source: Path, into: Path, sha256: str = "", *, is_forced: bool = False, is_private: bool = False
) -> Installed:
    """Put the skill that stands in `source` into a folder of skills. Cancelling leaves nothing of it behind.

    With `is_private` only its owner can access it.

    Raises:
        NotInstalled: It is no skill, has something in it that may not be, or is there already.
    """
    try:
        skill = read_skill(source)
        contents = _look_through(source)
    except BadSkill as error:
        raise NotInstalled(f"The skill can't be installed: {error}.") from error
    place = into / skill.name
    digest = sha256_of(source, contents.files)
    if sha256 and digest != sha256:
        raise NotInstalled(f"The files are not what the index says: their sha256 is {digest}, not {sha256}.")
    draft = into / f".{skill.name}.{secrets.token_hex(4)}.new"
    try:
        _prepare(draft, place, is_forced=is_forced)
        await _copy(source, draft, contents)
        if is_private:
            for path in (into, draft, *draft.rglob("*")):
                if not path.is_symlink():
                    tighten(path)
        _put(draft, place)
    except OSError as error:
        raise NotInstalled(f"{place} could not be written: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return Installed(Skill(skill.name, skill.description, place), contents.files, contents.executables, digest)


def sha256_of(folder: Path, files: tuple[str, ...]) -> str:
    """Return one sum for all files: that of the lines that `sha256sum` prints for them, by name."""
    lines = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in sorted(files)]
    return hashlib.sha256("".join(lines).encode(errors="surrogateescape")).hexdigest()


def _look_through(folder: Path) -> _Contents:
    root = Path(os.path.realpath(folder))
    files: list[str] = []
    links: list[str] = []
    executables: list[str] = []
    size = 0
    for place, inner, names in os.walk(root):
        inner[:] = sorted(name for name in inner if name not in UNLISTED)
        for name in [*sorted(names), *(name for name in inner if (Path(place) / name).is_symlink())]:
            path = Path(place) / name
            short = path.relative_to(root).as_posix()
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                _check_link(path, short, root)
                links.append(short)
            elif stat.S_ISREG(status.st_mode):
                files.append(short)
                size += status.st_size
                if status.st_mode & 0o111:
                    executables.append(short)
            else:
                raise BadSkill(f"{short} is neither a file nor a folder")
            if len(files) + len(links) > MAX_FILES or size > MAX_BYTES:
                raise BadSkill(f"it has more than {MAX_FILES:,} files or {MAX_BYTES // 1_000_000} MB")
    return _Contents(tuple(files), tuple(links), tuple(executables))


def _check_link(path: Path, short: str, root: Path) -> None:
    target = Path(os.path.realpath(path))
    if path.readlink().is_absolute() or not target.is_relative_to(root):
        raise BadSkill(f"{short} is a link that leads out of the skill")


def _prepare(draft: Path, place: Path, *, is_forced: bool) -> None:
    if os.path.lexists(place) and not is_forced:
        raise NotInstalled(f"{place} is there already. Install with --force to replace it.")
    draft.mkdir(parents=True)


async def _copy(source: Path, draft: Path, contents: _Contents) -> None:
    for name in contents.files:
        await anyio.lowlevel.checkpoint()
        (draft / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, draft / name)
        (draft / name).chmod(0o755 if name in contents.executables else 0o644)
    for name in contents.links:
        (draft / name).parent.mkdir(parents=True, exist_ok=True)
        (draft / name).symlink_to((source / name).readlink())


def _put(draft: Path, place: Path) -> None:
    """Give the draft its name; what had that name before comes back if it fails. Nothing can come in between."""
    if not os.path.lexists(place):
        draft.rename(place)
        return
    before = draft.with_suffix(".old")
    place.rename(before)
    try:
        draft.rename(place)
    except OSError:
        before.rename(place)
        raise
    if before.is_symlink() or before.is_file():
        before.unlink()
    else:
        shutil.rmtree(before, ignore_errors=True)
