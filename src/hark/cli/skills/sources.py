"""The sources of skills: folders, git repositories and index files, read concurrently."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

import anyio
import msgspec
from msgspec import Struct

from hark.app.settings.secrets import hide_secrets
from hark.cli.skills.clone import RepositoryCloner, SourceError
from hark.disk.regular_files import read_start
from hark.tools.skills.skill import SKILL_FILE, BadSkill, is_skill_name, read_skill
from hark.tools.web.abandonable_thread import run_abandonable

MAX_BYTES = 2_000_000
MAX_SKILLS = 1_000
SKILL_DIRECTORIES = ("", "skills", ".hark/skills", ".claude/skills", ".agents/skills")
_ARCHIVE = re.compile(r"\.(zip|tar|tgz|tbz2?|txz|7z|rar|tar\.\w+|skill)$", re.IGNORECASE)
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_SSH_ADDRESS = re.compile(r"[\w.-]+@[\w.-]+:(?!:)")
_GIT_SCHEMES = ("http", "https", "ssh", "git", "file")


class SkillOffer(Struct, frozen=True):
    """A skill that can be installed.

    `folder` contains its files, or is None if they must be fetched from `origin`. `sha256` is the expected checksum.
    """

    name: str
    description: str
    source: str
    version: str = ""
    folder: Path | None = None
    origin: str = ""
    sha256: str = ""


class SourceResult(Struct, frozen=True):
    """The result of reading a source: its installable skills, and the problems that were found."""

    source: str
    offers: tuple[SkillOffer, ...] = ()
    problems: tuple[str, ...] = ()
    is_dead: bool = False


class _IndexEntry(Struct):
    name: str
    description: str
    source: str
    version: str = ""
    sha256: str = ""


class _Index(Struct):
    skills: list[_IndexEntry]


def _parse_index(content: bytes, location: str, *, is_remote: bool) -> SourceResult:
    try:
        index = msgspec.json.decode(content, type=_Index)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise SourceError(
            f'it is not an index of the form {{"skills": [{{"name", "description", "source"}}]}}: {error}'
        ) from error
    offers: list[SkillOffer] = []
    problems: list[str] = []
    for entry in index.skills:
        try:
            origin = _resolve_origin(entry.source, location, is_remote=is_remote)
        except SourceError as error:
            problems.append(f"{entry.name[:80]}: {error}")
            continue
        if not is_skill_name(entry.name):
            problems.append(f"{entry.name[:80]!r} is not a valid skill name")
            continue
        offers.append(
            SkillOffer(entry.name, entry.description, location, entry.version, None, origin, entry.sha256.lower())
        )
    return SourceResult(location, tuple(offers), tuple(problems))


def _resolve_origin(source: str, location: str, *, is_remote: bool) -> str:
    """Return the location of an index entry's skill. An index on the web must not name files on this machine."""
    is_address = "://" in source or ("@" in source and ":" in source)
    if is_remote and (not is_address or source.removeprefix("git+").lower().startswith("file:")):
        raise SourceError(f"its source {source[:100]!r} is a local path, which an index on the web must not use")
    return source if is_address or Path(source).is_absolute() else str(Path(location).parent / source)


def _read_local_index(path: Path) -> SourceResult:
    try:
        content = read_start(path, MAX_BYTES, follow_symlink=True)
    except OSError as error:
        raise SourceError(f"it can't be read: {error.strerror}") from error
    return _parse_index(content, str(path), is_remote=False)


async def _download(url: str) -> bytes:
    import aiohttp
    from yarl import URL

    from hark.tools.web.connection import open_session
    from hark.tools.web.page import ENCODINGS, read_body

    headers = {"Accept": "application/json", "Accept-Encoding": ENCODINGS, "User-Agent": "hark-agent"}
    try:
        async with open_session() as session, session.get(URL(url), headers=headers) as response:
            if response.status != 200:
                raise SourceError(f"the server answered {response.status} {response.reason or ''}".rstrip())
            content, is_truncated = await read_body(response, MAX_BYTES)
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise SourceError(f"it can't be reached: {error}") from error
    if is_truncated:
        raise SourceError(f"it is longer than {MAX_BYTES:,} bytes")
    return content


async def read_sources(sources: Sequence[str], cloner: RepositoryCloner, seconds: float) -> list[SourceResult]:
    """Read all sources concurrently. Return their results in order. A slow or failing source doesn't delay others."""
    answers: dict[int, SourceResult] = {}

    async def read_with_timeout(index: int, source: str) -> None:
        printable = printable_source(source)
        try:
            with anyio.fail_after(seconds):
                answers[index] = await read_source(source, cloner)
        except TimeoutError:
            answers[index] = SourceResult(printable, problems=(f"no answer within {seconds:g} seconds",), is_dead=True)
        except SourceError as error:
            answers[index] = SourceResult(printable, problems=(str(error),), is_dead=True)

    async with anyio.create_task_group() as tasks:
        for index, source in enumerate(sources):
            tasks.start_soon(read_with_timeout, index, source)
    return [answers[index] for index in range(len(sources))]


async def read_source(source: str, cloner: RepositoryCloner) -> SourceResult:
    """Return the skills that a source offers. Cancelling stops everything that was started to read it.

    Raises:
        SourceError: The source can't be used.
    """
    location, _, subfolder = source.partition("#")
    if _ARCHIVE.search(location):
        raise SourceError("archives are not supported; unpack it and name the folder, or name a git repository")
    if is_address(source):
        return await _read_address(location, subfolder, cloner)
    # The folder may be on a network disk that no longer answers.
    return await run_abandonable(lambda: _read_path(source), f"read {source}")


def _read_path(source: str) -> SourceResult:
    location, _, subfolder = source.partition("#")
    path = Path(source).expanduser()
    if not path.exists():
        path = Path(location).expanduser() / subfolder
    if path.is_dir():
        return _read_folder(path, printable_source(source))
    if path.exists():
        return _read_local_index(path)
    raise SourceError("no such folder or file")


def is_address(source: str) -> bool:
    """Return whether a source is a URL or an SSH address, not a path."""
    return _SCHEME.match(source) is not None or _SSH_ADDRESS.match(source) is not None or "::" in source.split("/")[0]


def printable_source(source: str) -> str:
    """Return a source without passwords and control characters, for output."""
    return "".join(character for character in str(hide_secrets(source)) if character.isprintable())


async def _read_address(url: str, subfolder: str, cloner: RepositoryCloner) -> SourceResult:
    address = url.removeprefix("git+")
    scheme = _SCHEME.match(address)
    if scheme and scheme.group(1).lower() not in _GIT_SCHEMES:
        raise SourceError(f"{scheme.group(1)} is not supported; use one of {', '.join(_GIT_SCHEMES)}")
    if not scheme and not _SSH_ADDRESS.match(address):
        raise SourceError("git would run a command for this source; use https, ssh or a path")
    if scheme and address == url and address.lower().partition("?")[0].endswith(".json"):
        if scheme.group(1).lower() == "file":
            return await run_abandonable(lambda: _read_local_index(Path(address[len("file://") :])), f"read {address}")
        return _parse_index(await _download(address), address, is_remote=True)
    folder = _find_subfolder(await cloner.clone(address), subfolder)
    return _read_folder(folder, printable_source(f"{url}#{subfolder}" if subfolder else url))


def _find_subfolder(clone: Path, subfolder: str) -> Path:
    folder = clone / subfolder
    if not Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(clone)):
        raise SourceError(f"#{subfolder} points outside of the repository")
    if not folder.is_dir():
        raise SourceError(f"the repository has no folder {subfolder}")
    return folder


def _read_folder(folder: Path, printable: str) -> SourceResult:
    """Return the skill in the folder or, if the folder itself is not a skill, the skills in its subfolders."""
    offers: list[SkillOffer] = []
    problems: list[str] = []
    for skill_folder in _find_skill_folders(folder)[:MAX_SKILLS]:
        try:
            skill = read_skill(skill_folder)
        except BadSkill as error:
            problems.append(f"{skill_folder.relative_to(folder.parent)}: {error}")
        else:
            offers.append(SkillOffer(skill.name, skill.description, printable, skill.version, skill_folder))
    if not offers and not problems:
        raise SourceError(f"no {SKILL_FILE} found in this folder or its subfolders")
    return SourceResult(printable, tuple(offers), tuple(problems))


def _find_skill_folders(folder: Path) -> list[Path]:
    try:
        if (folder / SKILL_FILE).is_file():
            return [folder]
        directories = [folder / name for name in SKILL_DIRECTORIES if (folder / name).is_dir()]
        return [file.parent for directory in directories for file in sorted(directory.glob(f"*/{SKILL_FILE}"))]
    except OSError as error:
        raise SourceError(f"it can't be read: {error.strerror}") from error
