"""A skill: a folder with a SKILL.md that describes its purpose, and optional other files."""

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
EXCLUDED_FOLDERS = frozenset({".git", "__pycache__", "node_modules", ".venv"})

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class BadSkill(Exception):
    """The skill can't be used. The error's text gives the reason."""


class Skill(Struct, frozen=True):
    """A skill, as described by its SKILL.md."""

    name: str
    description: str
    folder: Path
    version: str = ""


def is_skill_name(name: str) -> bool:
    """Return whether the text is a valid skill name."""
    return _NAME.fullmatch(name) is not None


def read_skill(folder: Path) -> Skill:
    """Return the skill in the folder.

    Raises:
        BadSkill: The folder has no skill, or its SKILL.md can't be used.
    """
    fields, _ = _read_document(folder)
    name = _text_field(fields, "name") or folder.name
    if not is_skill_name(name):
        raise BadSkill(f"its name {name[:80]!r} is invalid: use up to 64 letters, digits, dots, hyphens, underscores")
    description = " ".join(_text_field(fields, "description").split())
    if not description:
        raise BadSkill("it has no description: state its purpose and when to use it in SKILL.md")
    return Skill(name, description, folder, _text_field(fields, "version"))


def read_instructions(skill: Skill) -> str:
    """Return the skill's instructions.

    Raises:
        BadSkill: The instructions can't be read any more.
    """
    return _read_document(skill.folder)[1]


def read_skill_file(skill: Skill, name: str) -> str:
    """Return the text of one of the skill's files.

    Raises:
        BadSkill: The file is missing, not text, or outside the skill's folder.
    """
    root = Path(os.path.realpath(skill.folder))
    if "\0" in name or not Path(os.path.realpath(root / name)).is_relative_to(root):
        raise BadSkill(f"{name!r} is outside the skill's folder. Name one of its files")
    return _read_text(root / name, name)


def list_files(folder: Path) -> Iterator[str]:
    """Yield the names of the files in a skill's folder, top level first. Symbolic links are omitted."""
    for parent, inner, names in os.walk(folder):
        inner[:] = sorted(name for name in inner if name not in EXCLUDED_FOLDERS)
        for name in sorted(names):
            path = Path(parent) / name
            if not path.is_symlink() and path.is_file():
                yield path.relative_to(folder).as_posix()


def _text_field(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name, "")
    if not isinstance(value, str):
        raise BadSkill(f"its {name} is not text: put it in quotes, or on lines after `{name}: >`")
    return value


def _read_document(folder: Path) -> tuple[dict[str, Any], str]:
    root = Path(os.path.realpath(folder))
    if not Path(os.path.realpath(root / SKILL_FILE)).is_relative_to(root):
        raise BadSkill(f"its {SKILL_FILE} is a link to a file outside its folder")
    try:
        return split_document(_read_text(root / SKILL_FILE, SKILL_FILE))
    except BadFrontMatter as error:
        raise BadSkill(f"{SKILL_FILE} can't be read: {error}") from error


def _read_text(path: Path, name: str) -> str:
    try:
        content = read_start(path, MAX_BYTES + 1, follow_symlink=True)
    except OSError as error:
        raise BadSkill(f"{name!r} can't be read: {error.strerror}") from error
    if len(content) > MAX_BYTES:
        raise BadSkill(f"{name!r} is longer than {MAX_BYTES:,} bytes")
    if b"\0" in content:
        raise BadSkill(f"{name!r} is not text; its path is {path}")
    return content.decode("utf-8", "replace")
