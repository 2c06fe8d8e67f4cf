"""The skills available to a session, from several folders. If names collide, the nearest folder's skill is used."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, field

from hark.text.graphemes import shorten
from hark.tools.skills.skill import SKILL_FILE, BadSkill, Skill, read_skill

MAX_LINES = 50
MAX_LINE_CHARACTERS = 250
MAX_SKILLS = 500

FileStamp = tuple[int, int, int]


class SkillCatalog(Struct, frozen=True):
    """All skills by name, and descriptions of the problems with unusable skills."""

    skills: Mapping[str, Skill] = field(default_factory=dict[str, Skill])
    problems: tuple[str, ...] = ()


class _CachedSkill(Struct, frozen=True):
    """The result of reading a skill's folder, and the file stamp that its SKILL.md had at that time."""

    stamp: FileStamp
    skill: Skill | None
    problem: str = ""


def skill_folders(workspace: Path, home: Path, folders: Iterable[str] = ()) -> list[Path]:
    """Return the folders that contain skills, nearest first. `folders` come from the settings."""
    project_folders = [workspace / name / "skills" for name in (".hark", ".claude", ".agents")]
    return [*project_folders, *(workspace / Path(folder).expanduser() for folder in folders), home / "skills"]


class SkillCatalogCache:
    """A cached catalog. A skill is read again only if its SKILL.md was changed, added or removed."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._cached: dict[Path, _CachedSkill] = {}
        self._catalog = SkillCatalog()
        self._summary_lines: tuple[str, ...] = ()

    def set_folders(self, folders: Sequence[Path]) -> None:
        """Use the skills in these folders from now on."""
        self._folders = folders

    def load(self) -> SkillCatalog:
        """Return the current catalog. Skills that have changed are read again first."""
        stamps = self._read_stamps()
        if stamps != {folder: read.stamp for folder, read in self._cached.items()}:
            self._cached = {folder: self._reload(folder, stamp) for folder, stamp in stamps.items()}
            self._catalog = _build_catalog(self._cached)
            self._summary_lines = _format_summaries(self._catalog)
        return self._catalog

    def summary_lines(self) -> tuple[str, ...]:
        """Return a line `name: description` for each skill, for the system prompt. Long lists are truncated."""
        self.load()
        return self._summary_lines

    def _read_stamps(self) -> dict[Path, FileStamp]:
        found: dict[Path, FileStamp] = {}
        for parent in self._folders:
            for folder in _list_subfolders(parent):
                with suppress(OSError):  # not a skill, or removed meanwhile
                    status = (folder / SKILL_FILE).stat()
                    found[folder] = (status.st_mtime_ns, status.st_size, status.st_ino)
        return found

    def _reload(self, folder: Path, stamp: FileStamp) -> _CachedSkill:
        before = self._cached.get(folder)
        if before is not None and before.stamp == stamp:
            return before
        try:
            return _CachedSkill(stamp, read_skill(folder))
        except BadSkill as error:
            return _CachedSkill(stamp, None, f"{folder}: {error}.")


def _list_subfolders(parent: Path) -> list[Path]:
    try:
        return sorted(folder for folder in parent.iterdir() if not folder.name.startswith("."))[:MAX_SKILLS]
    except OSError:
        return []


def _build_catalog(cached: Mapping[Path, _CachedSkill]) -> SkillCatalog:
    skills: dict[str, Skill] = {}
    problems: list[str] = []
    for folder, one in cached.items():
        if one.skill is None:
            problems.append(one.problem)
        elif one.skill.name not in skills:
            skills[one.skill.name] = one.skill
        elif skills[one.skill.name].folder.parent == folder.parent:
            problems.append(f"{folder}: {skills[one.skill.name].folder.name} has the same name, {one.skill.name}.")
    return SkillCatalog(skills, tuple(problems))


def _format_summaries(catalog: SkillCatalog) -> tuple[str, ...]:
    lines = [truncate_line(f"{skill.name}: {skill.description}") for skill in catalog.skills.values()]
    more = len(lines) - MAX_LINES
    return (*lines[:MAX_LINES], *([f"and {more} more: the skills tool lists them"] if more > 0 else []))


def truncate_line(line: str) -> str:
    """Truncate a line if it is too long."""
    return shorten(line, MAX_LINE_CHARACTERS)
