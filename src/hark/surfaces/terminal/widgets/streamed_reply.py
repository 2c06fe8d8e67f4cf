"""A streamed reply, split into Markdown blocks so that only the last block is redrawn as text arrives.

Headings are plain and code has no box. A block that is still growing is rendered without colours, because it is
redrawn often.
"""

import re
from collections.abc import Callable

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown
from rich.padding import Padding
from rich.syntax import Syntax
from rich.text import Text

from hark.surfaces.terminal.widgets.blocks import Block

SOFT_CHARACTERS = 1_200  # from this length on, a block ends where Markdown allows it
HARD_CHARACTERS = 2_400  # from this length on, a block ends anywhere
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_CONTINUATION = re.compile(r"^(?:\s|[-*+>|]|\d+[.)])")  # a line that may continue the block above the blank line
_INDENT = (0, 0, 0, 2)


class _Heading(Heading):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the heading in bold, aligned left."""
        self.text.justify = "left"
        self.text.stylize("bold underline" if self.tag == "h1" else "bold")
        yield self.text


class _LiveCode(CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render code without highlighting, because it is redrawn many times a second."""
        yield Padding(Text(str(self.text).rstrip(), style="cyan", overflow="fold"), _INDENT)


class _Code(CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render highlighted code in the terminal's own colours."""
        syntax = Syntax("", self.lexer_name, theme="ansi_dark", background_color="default")
        text = syntax.highlight(str(self.text).rstrip())
        text.rstrip()
        text.overflow = "fold"
        text.no_wrap = False
        yield Padding(text, _INDENT)


class _LiveMarkdown(Markdown):
    elements = Markdown.elements | {"heading_open": _Heading, "fence": _LiveCode, "code_block": _LiveCode}


class _CompleteMarkdown(Markdown):
    elements = Markdown.elements | {"heading_open": _Heading, "fence": _Code, "code_block": _Code}


class MarkdownBlock(Block):
    """A part of the reply as Markdown. A continuation of a split block has no margin above it."""

    def __init__(self, *, is_continuation: bool) -> None:
        super().__init__(has_margin=not is_continuation)
        self.text = ""
        self.is_complete = False

    def draw(self) -> RenderableType:
        """Return the Markdown, with highlighted code once the block is complete."""
        markdown_type = _CompleteMarkdown if self.is_complete else _LiveMarkdown
        return markdown_type(self.text, hyperlinks=False)


class ReplyBlockSplitter:
    """Splits one reply into blocks. `show` is called for each new or changed block."""

    def __init__(self, show: Callable[[MarkdownBlock], None]) -> None:
        self._show = show
        self._chunks: list[str] = []
        self._text = ""
        self._block = MarkdownBlock(is_continuation=False)
        self.blocks: list[MarkdownBlock] = []

    @property
    def text(self) -> str:
        """The text of the whole reply."""
        return "".join(self._chunks)

    def add(self, text: str) -> None:
        """Append text and show the changed blocks."""
        self._chunks.append(text)
        self._text += text
        while (cut := find_split(self._text)) is not None:
            place, closing, opening, is_continuation = cut
            self._draw(self._text[:place] + closing, is_complete=True)
            self._block = MarkdownBlock(is_continuation=is_continuation)
            self._text = opening + self._text[place:]
        self._draw(self._text, is_complete=False)

    def finish(self) -> None:
        """Mark the last block as complete."""
        self._draw(self._text, is_complete=True)

    def _draw(self, text: str, *, is_complete: bool) -> None:
        if not text.strip():
            return
        self._block.text = text
        self._block.is_complete = is_complete
        if self._block not in self.blocks[-1:]:
            self.blocks.append(self._block)
        self._show(self._block)


def find_split(text: str) -> tuple[int, str, str, bool] | None:
    """Return where to split a long text, or None if the block may still grow.

    The result is the position, the text that closes the block, the text that opens the next block, and whether the
    next block is a continuation.
    """
    if len(text) <= SOFT_CHARACTERS:
        return None
    fence, opening, place, paragraph_end, line_end = "", "", 0, 0, 0
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
        elif not fence and not line.strip() and lines[number + 1] and not _CONTINUATION.match(lines[number + 1]):
            paragraph_end = place
    if paragraph_end:
        return paragraph_end, "", "", False
    if len(text) <= HARD_CHARACTERS:
        return None
    if fence and line_end > len(opening):
        return line_end, f"{fence}\n", opening, True
    if line_end and not fence:
        return line_end, "", "", True
    space = text.rfind(" ", SOFT_CHARACTERS, HARD_CHARACTERS)
    return (space + 1 if space > 0 else HARD_CHARACTERS), "", "", True
