"""A parsed patch: the changes to each file, independent of the patch format."""

from enum import StrEnum

from msgspec import Struct, field

from hark.protocol.tool import ToolError


class FileAction(StrEnum):
    """The action that a patch performs on a file."""

    ADD = "add"
    UPDATE = "update"
    DELETE = "delete"


class Hunk(Struct):
    """A group of adjacent lines, each with a sign: `-` to remove, `+` to add, and a space for an unchanged line.

    `start` is the line number from the hunk's header, if there is one. `headings` are lines that occur somewhere
    before the hunk. `is_old_unended` and `is_new_unended`: the last old or new line has no newline.
    """

    lines: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    start: int | None = None
    headings: list[str] = field(default_factory=list[str])
    is_at_end: bool = False
    is_old_unended: bool = False
    is_new_unended: bool = False

    @property
    def old(self) -> list[str]:
        """The lines that the file must contain before the patch is applied."""
        return [text for sign, text in self.lines if sign != "+"]

    @property
    def new(self) -> list[str]:
        """The lines that replace `old` when the patch is applied."""
        return [text for sign, text in self.lines if sign != "-"]

    def end_without_newline(self) -> None:
        """Record that the hunk's last line so far does not end with a newline."""
        sign = self.lines[-1][0] if self.lines else " "
        self.is_old_unended = self.is_old_unended or sign != "+"
        self.is_new_unended = self.is_new_unended or sign != "-"


class FilePatch(Struct):
    """The changes to one file. `new_path` is set if the file moves. If `is_executable` is None, the mode is kept."""

    kind: FileAction
    path: str
    new_path: str = ""
    hunks: list[Hunk] = field(default_factory=list[Hunk])
    is_executable: bool | None = None


class BadPatch(ToolError):
    """The text can't be parsed as a patch."""


def changed_paths(patches: list[FilePatch]) -> list[str]:
    """Return all paths that the patches would change, without duplicates."""
    return list(dict.fromkeys(path for patch in patches for path in (patch.path, patch.new_path) if path))
