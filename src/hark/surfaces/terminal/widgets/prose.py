"""A reply that grows, cut into pieces: only the last one is drawn anew as more text comes."""

import re
from collections.abc import Callable

from rich.console import RenderableType

from hark.surfaces.terminal.widgets.blocks import Block
from hark.surfaces.terminal.widgets.markdown import LiveMarkdown, WholeMarkdown

SOFT_CHARACTERS = 1_200  # from here on a piece ends at the next place where Markdown lets it
HARD_CHARACTERS = 2_400  # from here on anywhere
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_GOES_ON = re.compile(r"^(?:\s|[-*+>|]|\d+[.)])")  # a line that may belong to what stands above the blank line


class ProseBlock(Block):
    """A part of the model's words, as Markdown. One that goes on where another was cut has no air above it."""

    def __init__(self, *, is_cut: bool) -> None:
        super().__init__()
        self.has_air = not is_cut
        self.text = ""
        self.is_whole = False

    def draw(self) -> RenderableType:
        """Return the Markdown, with all its colours once it is finished."""
        return WholeMarkdown(self.text) if self.is_whole else LiveMarkdown(self.text)


class Prose:
    """One reply: text in, pieces out. `show` puts a piece on the screen, or draws it anew."""

    def __init__(self, show: Callable[[ProseBlock], None]) -> None:
        self._show = show
        self._parts: list[str] = []
        self._text = ""
        self._piece = ProseBlock(is_cut=False)
        self.pieces: list[ProseBlock] = []

    @property
    def written(self) -> str:
        """All of the text."""
        return "".join(self._parts)

    def add(self, text: str) -> None:
        """Take more text."""
        self._parts.append(text)
        self._text += text
        while (cut := find_cut(self._text)) is not None:
            place, closing, opening, is_cut = cut
            self._draw(self._text[:place] + closing, is_whole=True)
            self._piece = ProseBlock(is_cut=is_cut)
            self._text = opening + self._text[place:]
        self._draw(self._text, is_whole=False)

    def end(self) -> None:
        """There is no more."""
        self._draw(self._text, is_whole=True)

    def _draw(self, text: str, *, is_whole: bool) -> None:
        if not text.strip():
            return
        self._piece.text = text
        self._piece.is_whole = is_whole
        if self._piece not in self.pieces[-1:]:
            self.pieces.append(self._piece)
        self._show(self._piece)


def find_cut(text: str) -> tuple[int, str, str, bool] | None:
    """Return where a piece may end, what closes it, what opens the next one, and whether that goes on in its midst.

    None to let it grow.
    """
    if len(text) <= SOFT_CHARACTERS:
        return None
    fence, opening, place, best, line_end = "", "", 0, 0, 0
    lines = text.split("\n")
    for number, line in enumerate(lines[:-1]):
        if place + len(line) + 1 > HARD_CHARACTERS:
            break
        place = line_end = place + len(line) + 1
        match = _FENCE.match(line)
        if match and not fence:
            fence, opening = match[1], f"{line}\n"
        elif match and match[1].startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
        elif not fence and not line.strip() and lines[number + 1] and not _GOES_ON.match(lines[number + 1]):
            best = place
    if best:
        return best, "", "", False
    if len(text) <= HARD_CHARACTERS:
        return None
    if fence and line_end > len(opening):
        return line_end, f"{fence}\n", opening, True
    if line_end and not fence:
        return line_end, "", "", True
    space = text.rfind(" ", SOFT_CHARACTERS, HARD_CHARACTERS)
    return (space + 1 if space > 0 else HARD_CHARACTERS), "", "", True
