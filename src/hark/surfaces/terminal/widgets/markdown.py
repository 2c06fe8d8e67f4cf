"""Markdown as it is drawn here: plain headings, code without a box, and light enough to be drawn while it grows."""

from typing import Any, ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.padding import Padding
from rich.syntax import Syntax
from rich.text import Text

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


class LiveMarkdown(Markdown):
    """A text that still grows."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _LiveCode,
        "code_block": _LiveCode,
    }

    def __init__(self, text: str, **named: Any) -> None:
        super().__init__(text, hyperlinks=False, **named)


class WholeMarkdown(LiveMarkdown):
    """A text that is finished."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **LiveMarkdown.elements,
        "fence": _Code,
        "code_block": _Code,
    }
