"""A skill: a folder with a SKILL.md that says what it is for, and what stands beside it."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from hark.disk.regular_files import read_start
from hark.tools.skills.front_matter import BadFrontMatter, split_document

SKILL_FILE = "SKILL.md"
MAX_BYTES = 200_000
MAX_FILES = 200
UNLISTED = frozenset({".git", "__pycache__", "node_modules", ".venv"})

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class BadSkill(Exception):
    """It can't be used; the text says why."""


class Skill(Struct, frozen=True):
    """What a SKILL.md says of itself."""

    name: str
    description: str
    folder: Path
    version: str = ""


def is_skill_name(name: str) -> bool:
    """Whether a skill may be called so."""
    return _NAME.fullmatch(name) is not None


def read_skill(folder: Path) -> Skill:
    """Return the skill that stands in the folder.

    Raises:
        BadSkill: There is none, or its SKILL.md can't be used.
    """
    fields, _ = _document(folder)
    name = _text_field(fields, "name") or folder.name
    if not is_skill_name(name):
        raise BadSkill(f"its name {name[:80]!r} may have letters, digits, dots and hyphens only, and 64 of them")
    description = " ".join(_text_field(fields, "description").split())
    if not description:
        raise BadSkill("it has no description: say in SKILL.md what it does, and when to use it")
    return Skill(name, description, folder, _text_field(fields, "version"))


def read_body(skill: Skill) -> str:
    """Return its instructions.

    Raises:
        BadSkill: They can't be read any more.
    """
    return _document(skill.folder)[1]


def read_file(skill: Skill, name: str) -> str:
    """Return a file of the skill.

    Raises:
        BadSkill: It is not there, no text, or not inside of the skill's folder.
    """
    root = Path(os.path.realpath(skill.folder))
    if "\0" in name or not Path(os.path.realpath(root / name)).is_relative_to(root):
        raise BadSkill(f"{name!r} leads out of the skill's folder. Name one of its files")
    return _text(root / name, name)


def files(folder: Path) -> Iterator[str]:
    """Yield the names of the files in a skill's folder, links left out, those at the top first."""
    for place, inner, names in os.walk(folder):
        inner[:] = sorted(name for name in inner if name not in UNLISTED)
        for name in sorted(names):
            path = Path(place) / name
            if not path.is_symlink() and path.is_file():
                yield path.relative_to(folder).as_posix()


def _text_field(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name, "")
    if not isinstance(value, str):
        raise BadSkill(f"its {name} is not text: put it in quotes, or on lines after `{name}: >`")
    return value


def _document(folder: Path) -> tuple[dict[str, Any], str]:
    root = Path(os.path.realpath(folder))
    if not Path(os.path.realpath(root / SKILL_FILE)).is_relative_to(root):
        raise BadSkill(f"its {SKILL_FILE} is a link that leads out of its folder")
    try:
        return split_document(_text(root / SKILL_FILE, SKILL_FILE))
    except BadFrontMatter as error:
        raise BadSkill(f"{SKILL_FILE} can't be read: {error}") from error


def _text(path: Path, name: str) -> str:
    try:
        content = read_start(path, MAX_BYTES + 1, follows_link=True)
    except OSError as error:
        raise BadSkill(f"{name!r} can't be read: {error.strerror}") from error
    if len(content) > MAX_BYTES:
        raise BadSkill(f"{name!r} is longer than {MAX_BYTES:,} bytes")
    if b"\0" in content:
        raise BadSkill(f"{name!r} is no text; it is at {path}")
    return content.decode("utf-8", "replace")
