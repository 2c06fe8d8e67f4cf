"""What a patch says: which files become what, whatever the format it is written in."""

from enum import StrEnum

from msgspec import Struct, field

from hark.protocol.tool import ToolError


class FileAction(StrEnum):
    """What a patch does to a file."""

    ADD = "add"
    UPDATE = "update"
    DELETE = "delete"


class Hunk(Struct):
    """Lines that belong together: each with a sign, `-` to remove, `+` to add, and a blank for one that stays.

    `start` is the line where it should fit, if the patch says so; `headings` are lines that come somewhere before it.
    """

    lines: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    start: int | None = None
    headings: list[str] = field(default_factory=list[str])
    is_at_end: bool = False
    is_old_unended: bool = False
    is_new_unended: bool = False

    @property
    def old(self) -> list[str]:
        """The lines that must be there."""
        return [text for sign, text in self.lines if sign != "+"]

    @property
    def new(self) -> list[str]:
        """The lines that will be there."""
        return [text for sign, text in self.lines if sign != "-"]

    def end_without_newline(self) -> None:
        """The line before was said to have no newline at its end."""
        sign = self.lines[-1][0] if self.lines else " "
        self.is_old_unended = self.is_old_unended or sign != "+"
        self.is_new_unended = self.is_new_unended or sign != "-"


class FilePatch(Struct):
    """What becomes of one file; with `new_path` it moves there. `is_executable`: None leaves that as it is."""

    kind: FileAction
    path: str
    new_path: str = ""
    hunks: list[Hunk] = field(default_factory=list[Hunk])
    is_executable: bool | None = None


class BadPatch(ToolError):
    """It can't be read as a patch."""


def paths_of(patches: list[FilePatch]) -> list[str]:
    """Return all paths that would change, each once."""
    return list(dict.fromkeys(path for patch in patches for path in (patch.path, patch.new_path) if path))
