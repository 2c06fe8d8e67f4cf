"""What a source of skills offers, and the index: a JSON file, here or on the web, that says what there is and where."""

from pathlib import Path

import msgspec
from msgspec import Struct

from hark.disk.regular_files import read_start
from hark.tools.skills.folder import is_skill_name

MAX_BYTES = 2_000_000


class SourceError(Exception):
    """A source could not be asked; the text says why."""


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


def local_index(path: Path) -> SourceResult:
    """Return what an index here offers.

    Raises:
        SourceError: It can't be read.
    """
    return _read(_content(path), str(path), is_remote=False)


async def remote_index(url: str) -> SourceResult:
    """Return what an index on the web offers. Cancelling closes the connection.

    Raises:
        SourceError: It can't be read.
    """
    return _read(await _downloaded(url), url, is_remote=True)


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


def _content(path: Path) -> bytes:
    try:
        return read_start(path, MAX_BYTES, follows_link=True)
    except OSError as error:
        raise SourceError(f"it can't be read: {error.strerror}") from error


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
