"""The settings for skills: `[skills]` in config.toml."""

from msgspec import Struct


class SkillSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The sources of skills, and additional folders that contain skills.

    A source is a folder, a git repository (with `#FOLDER` for a part of it) or an index file, local or on the web.
    """

    sources: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
