"""The settings of skills: `[skills]` in config.toml."""

from msgspec import Struct


class SkillSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where skills come from, and further folders in which they stand.

    A source is a folder, a git repository (with `#FOLDER` for a part of it) or an index file, local or on the web.
    """

    sources: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
