"""Markdown for chat platforms: a parser, and the base class of the platforms' writers."""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token
    from markdown_it.tree import SyntaxTreeNode

MAX_CHARACTERS = 20_000  # more than any platform shows in one message; longer texts stay plain
_MAX_NESTING = 20
_RULE = "———"
_LANGUAGE = re.compile(r"[\w+#.-]{1,32}")
WEB_SCHEMES = ("https://", "http://", "mailto:")
_FENCE = re.compile(r"`{3,}")
_TASK = re.compile(r"\[([ xX])\]\s+")


@cache
def get_parser() -> "MarkdownIt":
    """Return the Markdown parser, which is created only once because loading it is slow."""
    from markdown_it import MarkdownIt

    options = {"html": False, "breaks": True, "maxNesting": _MAX_NESTING}
    return MarkdownIt("commonmark", options).enable(["table", "strikethrough"])


def parse(markdown: str) -> "list[Token] | None":
    """Return the tokens of a text, or None if it must stay plain because it is too long or nested too deeply."""
    if len(markdown) > MAX_CHARACTERS:
        return None
    tokens = get_parser().parse(markdown)
    # The parser drops text below its nesting limit. It doesn't limit nested emphasis, which our recursion can't follow.
    levels = (inner.level for token in tokens for inner in (token, *(token.children or ())))
    return None if any(level >= _MAX_NESTING - 1 for level in levels) else tokens


class MarkdownWriter:
    """Writes the parse tree as text. Subclasses define a platform's markup.

    Line breaks and blank lines stay as in the source. Markup nested inside the same markup is written once.
    """

    indent = "  "
    schemes = WEB_SCHEMES  # of links that the platform can display

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._open: list[str] = []
        self._depth = 0

    def write(self, markdown: str) -> str:
        """Return the text in the platform's markup, or escaped plain text if it is too long or nested too deeply."""
        from markdown_it.tree import SyntaxTreeNode

        tokens = parse(markdown)
        if tokens is None:
            return self.escape(markdown)
        self._lines, self._open, self._depth = markdown.split("\n"), [], 0
        return self._write_blocks(SyntaxTreeNode(tokens).children)

    # The platform's markup.

    def escape(self, text: str) -> str:
        """Return the text with all markup characters escaped."""
        raise NotImplementedError

    def emphasize(self, kind: str, inner: str) -> str:
        """Return emphasized text. `kind` is "strong", "em" or "s"."""
        raise NotImplementedError

    def code_span(self, code: str) -> str:
        """Return inline code."""
        raise NotImplementedError

    def code_block(self, code: str, language: str) -> str:
        """Return a code block."""
        raise NotImplementedError

    def link(self, url: str, node: "SyntaxTreeNode") -> str:
        """Return a link. Called only for URLs with one of `schemes`."""
        raise NotImplementedError

    def paragraph(self, text: str) -> str:
        """Return a paragraph. The default adds no markup."""
        return text

    def quote(self, inner: str) -> str:
        """Return a quote. A nested quote becomes part of the outer quote."""
        return "\n".join(f"> {line}" for line in inner.split("\n"))

    def heading(self, level: int, node: "SyntaxTreeNode") -> str:
        """Return a heading. The default is strong text."""
        return self._write_emphasis("strong", node)

    def bullet(self, task: str) -> str:
        """Return the bullet of a list item. `task` is "☐" or "☑" for a task, otherwise ""."""
        return task or "•"

    # The traversal of the tree.

    def _write_blocks(self, nodes: Iterable["SyntaxTreeNode"]) -> str:
        text = ""
        for node in nodes:
            block = self._write_block(node)
            if block:
                text += (self._line_breaks_before(node) if text else "") + block
        return text

    def _line_breaks_before(self, node: "SyntaxTreeNode") -> str:
        """Return the line breaks before a block, with a blank line where the source has one."""
        line = node.map[0] - 1 if node.map else -1
        is_blank = 0 <= line < len(self._lines) and not self._lines[line].strip(" \t\r>")
        return "\n\n" if is_blank else "\n"

    def _write_block(self, node: "SyntaxTreeNode") -> str:
        match node.type:
            case "fence" | "code_block":
                language = _LANGUAGE.match(node.info.strip())
                return self.code_block(node.content.rstrip("\n"), language[0] if language else "")
            case "heading":
                return self.heading(int(node.tag[1:]), node)
            case "bullet_list" | "ordered_list":
                return self._write_list(node)
            case "blockquote":
                return self._write_quote(node)
            case "table":
                return self.code_block(_format_table(node), "")
            case "hr":
                return _RULE
            case "paragraph":
                return self.paragraph(self.write_inline(node.children))
            case _:
                return self._write_blocks(node.children)

    def _write_list(self, node: "SyntaxTreeNode") -> str:
        first = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else None
        text = ""
        for offset, item in enumerate(node.children):
            task = _pop_task_box(item) if first is None else ""
            bullet = self.bullet(task) if first is None else f"{first + offset}."
            text += self._line_breaks_before(item) if text else ""
            text += f"{self.indent * self._depth}{bullet} "
            self._depth += 1
            text += self._write_blocks(item.children)
            self._depth -= 1
        return text

    def _write_quote(self, node: "SyntaxTreeNode") -> str:
        is_inner = "quote" in self._open
        self._open.append("quote")
        inner = self._write_blocks(node.children)
        self._open.pop()
        return inner if is_inner or not inner else self.quote(inner)

    def write_inline(self, nodes: Sequence["SyntaxTreeNode"]) -> str:
        """Return the markup of inline nodes."""
        return "".join(self._write_span(node) for node in nodes)

    def _write_span(self, node: "SyntaxTreeNode") -> str:
        match node.type:
            case "code_inline":
                return self.code_span(node.content)
            case "softbreak" | "hardbreak":
                return "\n"
            case "strong" | "em" | "s":
                return self._write_emphasis(node.type, node)
            case "link" | "image":
                return self._write_link(node)
            case _:
                return self.write_inline(node.children) if node.children else self.escape(node.content)

    def _write_emphasis(self, kind: str, node: "SyntaxTreeNode") -> str:
        is_inner = kind in self._open
        self._open.append(kind)
        inner = self.write_inline(node.children)
        self._open.pop()
        return inner if is_inner or not inner.strip() else self.emphasize(kind, inner)

    def _write_link(self, node: "SyntaxTreeNode") -> str:
        url = str(node.attrs.get("href") or node.attrs.get("src") or "")
        if url.lower().startswith(self.schemes):
            return self.link(url, node)
        label, address = self.link_label(node), self.escape(url)
        return f"{label} ({address})" if label and address not in ("", label) else label or address

    def link_label(self, node: "SyntaxTreeNode") -> str:
        """Return the text of a link with its markup, or the description of an image."""
        return self.write_inline(node.children) if node.type == "link" else self.escape(node.content)


def plain_text(node: "SyntaxTreeNode") -> str:
    """Return the text below a node on one line, without markup."""
    match node.type:
        case "softbreak" | "hardbreak":
            return " "
        case "text" | "code_inline" | "text_special" | "image":
            return node.content
        case _:
            return "".join(plain_text(child) for child in node.children)


def break_up_fences(code: str) -> str:
    """Return code that can't end the surrounding code block. Its backtick fences are broken up by zero-width spaces."""
    return _FENCE.sub(lambda fence: "\u200b".join(fence[0]), code)


def _pop_task_box(item: "SyntaxTreeNode") -> str:
    """Remove the checkbox from a task item's text and return it. Return "" if the item isn't a task."""
    first = item
    while first.children:
        first = first.children[0]
    task = _TASK.match(first.content) if first.type == "text" and first.token else None
    if task is None or first.token is None:
        return ""
    first.token.content = first.content[task.end() :]
    return "☐" if task[1] == " " else "☑"


def _format_table(node: "SyntaxTreeNode") -> str:
    """Return a table as plain text with aligned columns."""
    rows = [[plain_text(cell) for cell in row.children] for part in node.children for row in part.children]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [" │ ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "─┼─".join("─" * width for width in widths), *lines[1:]])
