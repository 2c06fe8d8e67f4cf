"""What a source of skills offers."""

from pathlib import Path

from msgspec import Struct


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
