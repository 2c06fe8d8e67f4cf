"""A reply that grows, cut into pieces of Markdown: only the last one is drawn anew as more text comes.

Headings are plain, code has no box, and a piece that still grows is light enough to be drawn many times a second.
"""

import re
from collections.abc import Callable

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown
from rich.padding import Padding
from rich.syntax import Syntax
from rich.text import Text

from hark.surfaces.terminal.widgets.blocks import Block

SOFT_CHARACTERS = 1_200  # from here on a piece ends at the next place where Markdown lets it
HARD_CHARACTERS = 2_400  # from here on anywhere
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_GOES_ON = re.compile(r"^(?:\s|[-*+>|]|\d+[.)])")  # a line that may belong to what stands above the blank line
_INDENT = (0, 0, 0, 2)


class _Heading(Heading):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw it at the left, in bold."""
        self.text.justify = "left"
        self.text.stylize("bold underline" if self.tag == "h1" else "bold")
        yield self.text


class _LiveCode(CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw it without colours: it is drawn many times a second."""
        yield Padding(Text(str(self.text).rstrip(), style="cyan", overflow="fold"), _INDENT)


class _Code(CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw it in the terminal's own colours."""
        syntax = Syntax("", self.lexer_name, theme="ansi_dark", background_color="default")
        text = syntax.highlight(str(self.text).rstrip())
        text.rstrip()
        text.overflow = "fold"
        text.no_wrap = False
        yield Padding(text, _INDENT)


class _LiveMarkdown(Markdown):
    elements = Markdown.elements | {"heading_open": _Heading, "fence": _LiveCode, "code_block": _LiveCode}


class _WholeMarkdown(Markdown):
    elements = Markdown.elements | {"heading_open": _Heading, "fence": _Code, "code_block": _Code}


class ProseBlock(Block):
    """A part of the model's words, as Markdown. One that goes on where another was cut has no air above it."""

    def __init__(self, *, is_cut: bool) -> None:
        super().__init__(has_air=not is_cut)
        self.text = ""
        self.is_whole = False

    def draw(self) -> RenderableType:
        """Return the Markdown, with all its colours once it is finished."""
        form = _WholeMarkdown if self.is_whole else _LiveMarkdown
        return form(self.text, hyperlinks=False)


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
