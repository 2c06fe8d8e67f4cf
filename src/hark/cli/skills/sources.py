"""The sources of skills: folders, git repositories and index files, asked side by side."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

import anyio
import msgspec
from msgspec import Struct

from hark.app.settings.secrets import without_secrets
from hark.cli.skills.clone import Clones, SourceError
from hark.disk.regular_files import read_start
from hark.tools.skills.folder import SKILL_FILE, BadSkill, is_skill_name, read_skill
from hark.tools.web.abandonable_thread import aside

MAX_BYTES = 2_000_000
MAX_SKILLS = 1_000
PARTS = ("", "skills", ".hark/skills", ".claude/skills", ".agents/skills")
_ARCHIVE = re.compile(r"\.(zip|tar|tgz|tbz2?|txz|7z|rar|tar\.\w+|skill)$", re.IGNORECASE)
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_SSH_PLACE = re.compile(r"[\w.-]+@[\w.-]+:(?!:)")
_GIT_SCHEMES = ("http", "https", "ssh", "git", "file")


class SkillOffer(Struct, frozen=True):
    """A skill that could be installed.

    `folder` is where it stands; None when it must be fetched from `origin` first. `sha256`: what its files must be.
    """

    name: str
    description: str
    source: str
    version: str = ""
    folder: Path | None = None
    origin: str = ""
    sha256: str = ""


class SourceResult(Struct, frozen=True):
    """What came of asking a source: its offers, and what is wrong with it or with some of them."""

    source: str
    offers: tuple[SkillOffer, ...] = ()
    problems: tuple[str, ...] = ()
    is_dead: bool = False


class _Entry(Struct):
    name: str
    description: str
    source: str
    version: str = ""
    sha256: str = ""


class _Index(Struct):
    skills: list[_Entry]


def _read(content: bytes, place: str, *, is_remote: bool) -> SourceResult:
    try:
        index = msgspec.json.decode(content, type=_Index)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise SourceError(f'it is no index, {{"skills": [{{"name", "description", "source"}}]}}: {error}') from error
    offers: list[SkillOffer] = []
    problems: list[str] = []
    for entry in index.skills:
        try:
            origin = _origin(entry.source, place, is_remote=is_remote)
        except SourceError as error:
            problems.append(f"{entry.name[:80]}: {error}")
            continue
        if not is_skill_name(entry.name):
            problems.append(f"{entry.name[:80]!r} can't be the name of a skill")
            continue
        offers.append(
            SkillOffer(entry.name, entry.description, place, entry.version, None, origin, entry.sha256.lower())
        )
    return SourceResult(place, tuple(offers), tuple(problems))


def _origin(source: str, place: str, *, is_remote: bool) -> str:
    """Return where an entry's skill is. Whoever writes an index on the web has no say over files here."""
    is_address = "://" in source or ("@" in source and ":" in source)
    if is_remote and (not is_address or source.removeprefix("git+").lower().startswith("file:")):
        raise SourceError(
            f"its source {source[:100]!r} is a place on this machine, which an index on the web can't name"
        )
    return source if is_address or Path(source).is_absolute() else str(Path(place).parent / source)


def _local_index(path: Path) -> SourceResult:
    try:
        content = read_start(path, MAX_BYTES, follows_link=True)
    except OSError as error:
        raise SourceError(f"it can't be read: {error.strerror}") from error
    return _read(content, str(path), is_remote=False)


async def _downloaded(url: str) -> bytes:
    import aiohttp
    from yarl import URL

    from hark.tools.web.connection import open_session
    from hark.tools.web.page import ENCODINGS, read_body

    headers = {"Accept": "application/json", "Accept-Encoding": ENCODINGS, "User-Agent": "hark-agent"}
    try:
        async with open_session() as session, session.get(URL(url), headers=headers) as response:
            if response.status != 200:
                raise SourceError(f"the server answered {response.status} {response.reason or ''}".rstrip())
            content, is_cut = await read_body(response, MAX_BYTES)
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise SourceError(f"it can't be reached: {error}") from error
    if is_cut:
        raise SourceError(f"it is longer than {MAX_BYTES:,} bytes")
    return content


async def ask_all(sources: Sequence[str], clones: Clones, seconds: float) -> list[SourceResult]:
    """Ask all sources at once, and return their answers in order. One that fails or is too slow holds no other."""
    answers: dict[int, SourceResult] = {}

    async def ask_one(place: int, source: str) -> None:
        shown = shown_source(source)
        try:
            with anyio.fail_after(seconds):
                answers[place] = await ask(source, clones)
        except TimeoutError:
            answers[place] = SourceResult(shown, problems=(f"no answer within {seconds:g} seconds",), is_dead=True)
        except SourceError as error:
            answers[place] = SourceResult(shown, problems=(str(error),), is_dead=True)

    async with anyio.create_task_group() as tasks:
        for place, source in enumerate(sources):
            tasks.start_soon(ask_one, place, source)
    return [answers[place] for place in range(len(sources))]


async def ask(source: str, clones: Clones) -> SourceResult:
    """Return what a source offers. Cancelling ends what was started for it.

    Raises:
        SourceError: It can't be used.
    """
    whole, _, part = source.partition("#")
    if _ARCHIVE.search(whole):
        raise SourceError("archives are not taken; unpack it and name the folder, or name a git repository")
    if is_address(source):
        return await _ask_address(whole, part, clones)
    # A folder may be on a machine that is gone.
    return await aside(lambda: _ask_path(source), f"look at {source}")


def _ask_path(source: str) -> SourceResult:
    whole, _, part = source.partition("#")
    path = Path(source).expanduser()
    if not path.exists():
        path = Path(whole).expanduser() / part
    if path.is_dir():
        return _ask_folder(path, shown_source(source))
    if path.exists():
        return _local_index(path)
    raise SourceError("there is no such folder or file")


def is_address(source: str) -> bool:
    """Whether it is a place elsewhere, not a path."""
    return _SCHEME.match(source) is not None or _SSH_PLACE.match(source) is not None or "::" in source.split("/")[0]


def shown_source(source: str) -> str:
    """Return a source as people may see it: without passwords and control characters."""
    return "".join(letter for letter in str(without_secrets(source)) if letter.isprintable())


async def _ask_address(url: str, part: str, clones: Clones) -> SourceResult:
    place = url.removeprefix("git+")
    scheme = _SCHEME.match(place)
    if scheme and scheme.group(1).lower() not in _GIT_SCHEMES:
        raise SourceError(f"{scheme.group(1)} is none of {', '.join(_GIT_SCHEMES)}")
    if not scheme and not _SSH_PLACE.match(place):
        raise SourceError("git would run a command for that address; name it by https, ssh or a path")
    if scheme and place == url and place.lower().partition("?")[0].endswith(".json"):
        if scheme.group(1).lower() == "file":
            return await aside(lambda: _local_index(Path(place[len("file://") :])), f"look at {place}")
        return _read(await _downloaded(place), place, is_remote=True)
    folder = _part_of(await clones.clone(place), part)
    return _ask_folder(folder, shown_source(f"{url}#{part}" if part else url))


def _part_of(clone: Path, part: str) -> Path:
    folder = clone / part
    if not Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(clone)):
        raise SourceError(f"#{part} leads out of the repository")
    if not folder.is_dir():
        raise SourceError(f"the repository has no folder {part}")
    return folder


def _ask_folder(folder: Path, shown: str) -> SourceResult:
    """Offer the folder itself, or the skills that stand in it."""
    offers: list[SkillOffer] = []
    problems: list[str] = []
    for place in _skill_folders(folder)[:MAX_SKILLS]:
        try:
            skill = read_skill(place)
        except BadSkill as error:
            problems.append(f"{place.relative_to(folder.parent)}: {error}")
        else:
            offers.append(SkillOffer(skill.name, skill.description, shown, skill.version, place))
    if not offers and not problems:
        raise SourceError(f"there is no {SKILL_FILE} in it, nor in a folder in it")
    return SourceResult(shown, tuple(offers), tuple(problems))


def _skill_folders(folder: Path) -> list[Path]:
    try:
        if (folder / SKILL_FILE).is_file():
            return [folder]
        places = [folder / part for part in PARTS if (folder / part).is_dir()]
        return [file.parent for place in places for file in sorted(place.glob(f"*/{SKILL_FILE}"))]
    except OSError as error:
        raise SourceError(f"it can't be read: {error.strerror}") from error
