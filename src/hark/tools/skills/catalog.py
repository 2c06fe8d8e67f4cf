"""The skills that a session can use: from several folders, of two with the same name the nearest."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, field

from hark.tools.skills.folder import SKILL_FILE, BadSkill, Skill, read_skill

MAX_LINES = 50
MAX_LINE_CHARACTERS = 250
MAX_SKILLS = 500

Stamp = tuple[int, int, int]


class SkillCatalog(Struct, frozen=True):
    """All skills by name, and what is wrong with others."""

    skills: Mapping[str, Skill] = field(default_factory=dict[str, Skill])
    problems: tuple[str, ...] = ()


class _Read(Struct, frozen=True):
    """What came of a folder, when its SKILL.md was as the stamp says."""

    stamp: Stamp
    skill: Skill | None
    problem: str = ""


def skill_places(workspace: Path, home: Path, folders: Iterable[str] = ()) -> list[Path]:
    """Return the folders that hold skills, the nearest first; `folders` are the settings' own."""
    own = [workspace / name / "skills" for name in (".hark", ".claude", ".agents")]
    return [*own, *(workspace / Path(folder).expanduser() for folder in folders), home / "skills"]


class SkillCatalogs:
    """Reads skills again only when a SKILL.md has changed, come or gone: a look costs a few stats."""

    def __init__(self, places: Sequence[Path]) -> None:
        self._places = places
        self._read: dict[Path, _Read] = {}
        self._shelf = SkillCatalog()
        self._lines: tuple[str, ...] = ()

    def change(self, places: Sequence[Path]) -> None:
        """Have skills in these folders from now on."""
        self._places = places

    def look(self) -> SkillCatalog:
        """Return the skills as they are now."""
        stamps = self._stamps()
        if stamps != {folder: read.stamp for folder, read in self._read.items()}:
            self._read = {folder: self._read_again(folder, stamp) for folder, stamp in stamps.items()}
            self._shelf = _arranged(self._read)
            self._lines = _lines(self._shelf)
        return self._shelf

    def one_liners(self) -> tuple[str, ...]:
        """Return `name: description` of each skill, for the system prompt; of many only the first."""
        self.look()
        return self._lines

    def _stamps(self) -> dict[Path, Stamp]:
        found: dict[Path, Stamp] = {}
        for place in self._places:
            for folder in _folders(place):
                with suppress(OSError):  # no skill, or none any more
                    status = (folder / SKILL_FILE).stat()
                    found[folder] = (status.st_mtime_ns, status.st_size, status.st_ino)
        return found

    def _read_again(self, folder: Path, stamp: Stamp) -> _Read:
        before = self._read.get(folder)
        if before is not None and before.stamp == stamp:
            return before
        try:
            return _Read(stamp, read_skill(folder))
        except BadSkill as error:
            return _Read(stamp, None, f"{folder}: {error}.")


def _folders(place: Path) -> list[Path]:
    try:
        return sorted(folder for folder in place.iterdir() if not folder.name.startswith("."))[:MAX_SKILLS]
    except OSError:
        return []


def _arranged(read: Mapping[Path, _Read]) -> SkillCatalog:
    skills: dict[str, Skill] = {}
    problems: list[str] = []
    for folder, one in read.items():
        if one.skill is None:
            problems.append(one.problem)
        elif one.skill.name not in skills:
            skills[one.skill.name] = one.skill
        elif skills[one.skill.name].folder.parent == folder.parent:
            problems.append(f"{folder}: {skills[one.skill.name].folder.name} has the same name, {one.skill.name}.")
    return SkillCatalog(skills, tuple(problems))


def _lines(shelf: SkillCatalog) -> tuple[str, ...]:
    lines = [short(f"{skill.name}: {skill.description}") for skill in shelf.skills.values()]
    more = len(lines) - MAX_LINES
    return (*lines[:MAX_LINES], *([f"and {more} more: the skills tool lists them"] if more > 0 else []))


def short(line: str) -> str:
    """Return a line that is not longer than a line should be."""
    return line if len(line) <= MAX_LINE_CHARACTERS else f"{line[: MAX_LINE_CHARACTERS - 1]}…"
