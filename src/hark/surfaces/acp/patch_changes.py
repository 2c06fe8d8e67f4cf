"""Reading what a patch or a diff says: the text before and after, piece by piece."""

from collections.abc import Iterator
from dataclasses import dataclass, field

_FILES = ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "+++ ")
_MOVED = "*** Move to: "


@dataclass(slots=True)
class TextChange:
    """A piece of a file before and after."""

    path: str
    lines: list[str] = field(default_factory=list[str])

    @property
    def old(self) -> str:
        """The text before."""
        return self._side("-")

    @property
    def new(self) -> str:
        """The text after."""
        return self._side("+")

    def _side(self, sign: str) -> str:
        return "".join(f"{line[1:]}\n" for line in self.lines if line[:1] in (sign, " ", ""))


def read_hunks(text: str) -> list[TextChange]:
    """Return the pieces of a unified diff or of a `*** Begin Patch`; none when the text is neither."""
    return [hunk for hunk in _hunks(text) if any(line[:1] in ("+", "-") for line in hunk.lines)]


def _hunks(text: str) -> Iterator[TextChange]:
    hunk: TextChange | None = None
    for line in text.split("\n"):
        heading = next((mark for mark in _FILES if line.startswith(mark)), None)
        if heading is not None:
            if hunk is not None:
                yield hunk
            path = line.removeprefix(heading).split("\t")[0].strip()
            hunk = TextChange(path.removeprefix("b/") if heading == "+++ " else path)
        elif hunk is None or line.startswith(("--- ", "\\", _MOVED)):
            continue
        elif line.startswith("@@"):
            yield hunk
            hunk = TextChange(hunk.path)
        elif line[:1] in ("+", "-", " "):
            hunk.lines.append(line)
    if hunk is not None:
        yield hunk
