"""A parsed patch: the changes to each file, independent of the patch format."""

import re
from enum import StrEnum

from msgspec import Struct, field

from hark.protocol.tool import ToolError


class FileAction(StrEnum):
    """The action that a patch performs on a file."""

    ADD = "add"
    UPDATE = "update"
    DELETE = "delete"


BEGIN = "*** Begin Patch"
RANGE = re.compile(r"@@ ?-(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))?(?: ?@@|$)")


class Hunk(Struct):
    """A group of adjacent lines, each with a sign: `-` to remove, `+` to add, and a space for an unchanged line.

    `old_index`, `new_index` and `old_count` are from the hunk's header, if it has line numbers. Indexes begin at 0.
    `headings` are lines that occur somewhere before the hunk. `is_at_end`: the hunk contains the file's last line.
    `is_old_unended` and `is_new_unended`: the last old or new line has no newline.
    """

    lines: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    old_index: int | None = None
    new_index: int | None = None
    old_count: int = 0
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

    @property
    def needs_file_end(self) -> bool:
        """Whether its line number is right only at the end of the file: a diff has context after any other hunk."""
        has_context = any(sign == " " for sign, _ in self.lines)
        return self.is_at_end or (has_context and self.lines[-1][0] != " ")

    def set_position(self, header: re.Match[str]) -> None:
        """Take the position from a match of `RANGE`. A range without lines names the line before it."""
        old, old_count, new, new_count = (int(number) for number in header.groups(default="1"))
        self.old_index, self.new_index, self.old_count = old - (old_count > 0), new - (new_count > 0), old_count
        if min(self.old_index, self.new_index) < 0:
            self.old_index = self.new_index = None

    def add_line(self, line: str) -> bool:
        """Parse a line of the hunk. Return False if no hunk can contain it."""
        if line.startswith("\\"):  # "\ No newline at end of file", which refers to the previous line
            sign = self.lines[-1][0] if self.lines else " "
            self.is_at_end = True
            self.is_old_unended = self.is_old_unended or sign != "+"
            self.is_new_unended = self.is_new_unended or sign != "-"
        elif line == "" or line[0] in " +-":
            self.lines.append((line[:1] or " ", line[1:]))
        else:
            return False
        return True


class FilePatch(Struct):
    """The changes to one file. `new_path` is set if the file moves. If `is_executable` is None, the mode is kept."""

    kind: FileAction
    path: str
    new_path: str = ""
    hunks: list[Hunk] = field(default_factory=list[Hunk])
    is_executable: bool | None = None


class BadPatch(ToolError):
    """The text can't be parsed as a patch."""
