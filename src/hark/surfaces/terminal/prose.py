"""A reply that grows, cut into pieces: only the last one is drawn anew as more text comes."""

import re
from collections.abc import Callable

from textual.events import Mount
from textual.widgets import Markdown

SOFT_CHARACTERS = 1_500  # from here on a piece ends at the next place where Markdown lets it
HARD_CHARACTERS = 5_000  # from here on anywhere
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_GOES_ON = re.compile(r"^(?:\s|[-*+>|]|\d+[.)])")  # a line that may belong to what stands above the blank line


class Piece(Markdown):
    """A part of the model's words, as Markdown."""

    def __init__(self, text: str) -> None:
        super().__init__(None, classes="reply", open_links=False)
        self._wanted = text
        self._drawn = 0
        self._is_there = False

    async def _on_mount(self, _: Mount) -> None:
        # Not Markdown's own: it would begin with an empty text, in a thread, and lose what came before it was ready.
        _.prevent_default()
        self._is_there = True
        self._draw()

    def grow(self, text: str) -> None:
        """Show this text, of which the beginning is shown already."""
        self._wanted = text
        self._draw()

    def _draw(self) -> None:
        if self._is_there and self._drawn < len(self._wanted):
            more = self._wanted[self._drawn :]
            self._drawn = len(self._wanted)
            self.append(more)


class Prose:
    """One reply: text in, pieces out. `add_piece` puts a new one on the screen."""

    def __init__(self, add_piece: Callable[[Piece], Piece]) -> None:
        self._add_piece = add_piece
        self._parts: list[str] = []
        self._text = ""
        self._piece: Piece | None = None
        self.pieces: list[Piece] = []

    @property
    def written(self) -> str:
        """All of the text."""
        return "".join(self._parts)

    def add(self, text: str) -> None:
        """Take more text."""
        self._parts.append(text)
        self._text += text
        while (cut := find_cut(self._text)) is not None:
            place, closing, opening = cut
            self._show(self._text[:place] + closing)
            self._piece = None
            self._text = opening + self._text[place:]
        self._show(self._text)

    def _show(self, text: str) -> None:
        if self._piece is not None:
            self._piece.grow(text)
        elif text.strip():
            self._piece = self._add_piece(Piece(text))
            self.pieces.append(self._piece)


def find_cut(text: str) -> tuple[int, str, str] | None:
    """Return where a piece may end, with what closes it and what opens the next one; None to let it grow."""
    if len(text) <= SOFT_CHARACTERS:
        return None
    fence, place, best, line_end = "", 0, 0, 0
    opening = ""
    lines = text.split("\n")
    for number, line in enumerate(lines[:-1]):
        place += len(line) + 1
        if place > HARD_CHARACTERS:
            break
        line_end = place
        match = _FENCE.match(line)
        if match and not fence:
            fence, opening = match[1], f"{line}\n"
        elif match and fence and match[1].startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
        elif not fence and not line.strip() and lines[number + 1] and not _GOES_ON.match(lines[number + 1]):
            best = place
    if best:
        return best, "", ""
    if len(text) <= HARD_CHARACTERS:
        return None
    if fence and line_end > len(opening):
        return line_end, f"{fence}\n", opening
    if line_end:
        return line_end, "", ""
    space = text.rfind(" ", SOFT_CHARACTERS, HARD_CHARACTERS)
    return (space + 1 if space > 0 else HARD_CHARACTERS), "", ""
