"""Markdown for chat platforms: one parse tree, and a base class for the writer of each platform."""

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
_FAILURES = (RecursionError, LookupError, TypeError, ValueError)


@cache
def parser() -> "MarkdownIt":
    """Return the parser. It is made once, as loading it takes long."""
    from markdown_it import MarkdownIt

    options = {"html": False, "breaks": True, "maxNesting": _MAX_NESTING}
    return MarkdownIt("commonmark", options).enable(["table", "strikethrough"])


def parse(markdown: str) -> "list[Token] | None":
    """Return the tokens of a text, or None if it must stay plain: too long, nested too deeply, or not parseable."""
    if len(markdown) > MAX_CHARACTERS:
        return None
    try:
        tokens = parser().parse(markdown)
    except _FAILURES:
        return None
    # The parser drops text below its nesting limit.
    return None if any(token.level >= _MAX_NESTING - 1 for token in tokens) else tokens


class MarkdownWriter:
    """Writes the parse tree as text. Subclasses say how a platform spells each mark.

    Line breaks and blank lines stay as they are in the source. A mark inside the same mark is written once.
    """

    indent = "  "
    schemes = WEB_SCHEMES  # of links that the platform shows as such

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._open: list[str] = []
        self._depth = 0

    def write(self, markdown: str) -> str:
        """Return the text in the platform's markup, or escaped plain text if it can't be rendered."""
        from markdown_it.tree import SyntaxTreeNode

        tokens = parse(markdown)
        if tokens is None:
            return self.escape(markdown)
        self._lines, self._open, self._depth = markdown.split("\n"), [], 0
        try:
            return self._blocks(SyntaxTreeNode(tokens).children)
        except _FAILURES:
            return self.escape(markdown)

    # How the platform spells it.

    def escape(self, text: str) -> str:
        """Return text without any markup meaning."""
        raise NotImplementedError

    def mark(self, kind: str, inner: str) -> str:
        """Return marked text. `kind` is "strong", "em" or "s"."""
        raise NotImplementedError

    def code_span(self, code: str) -> str:
        """Return code within a line."""
        raise NotImplementedError

    def code_block(self, code: str, language: str) -> str:
        """Return lines of code."""
        raise NotImplementedError

    def link(self, url: str, node: "SyntaxTreeNode") -> str:
        """Return a link to an address with one of `schemes`."""
        raise NotImplementedError

    def paragraph(self, text: str) -> str:
        """Return a paragraph."""
        return text

    def quote(self, inner: str) -> str:
        """Return a quote. A quote inside a quote is part of the outer one."""
        return "\n".join(f"> {line}" for line in inner.split("\n"))

    def heading(self, level: int, node: "SyntaxTreeNode") -> str:
        """Return a heading."""
        return self._marked("strong", node)

    def bullet(self, task: str) -> str:
        """Return the bullet of a list item. `task` is "☐" or "☑" for a task, otherwise ""."""
        return task or "•"

    # The tree.

    def _blocks(self, nodes: Iterable["SyntaxTreeNode"]) -> str:
        text = ""
        for node in nodes:
            block = self._block(node)
            if block:
                text += (self._gap(node) if text else "") + block
        return text

    def _gap(self, node: "SyntaxTreeNode") -> str:
        """Return the line ends before a block: a blank line where the source has one."""
        line = node.map[0] - 1 if node.map else -1
        is_blank = 0 <= line < len(self._lines) and not self._lines[line].strip(" \t\r>")
        return "\n\n" if is_blank else "\n"

    def _block(self, node: "SyntaxTreeNode") -> str:
        match node.type:
            case "fence" | "code_block":
                language = _LANGUAGE.match(node.info.strip())
                return self.code_block(node.content.rstrip("\n"), language[0] if language else "")
            case "heading":
                return self.heading(int(node.tag[1:]), node)
            case "bullet_list" | "ordered_list":
                return self._list(node)
            case "blockquote":
                return self._quote(node)
            case "table":
                return self.code_block(_table(node), "")
            case "hr":
                return _RULE
            case "paragraph":
                return self.paragraph(self.inline(node.children))
            case _:
                return self._blocks(node.children)

    def _list(self, node: "SyntaxTreeNode") -> str:
        first = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else None
        text = ""
        for place, item in enumerate(node.children):
            task = _take_task(item) if first is None else ""
            bullet = self.bullet(task) if first is None else f"{first + place}."
            text += self._gap(item) if text else ""
            text += f"{self.indent * self._depth}{bullet} "
            self._depth += 1
            text += self._blocks(item.children)
            self._depth -= 1
        return text

    def _quote(self, node: "SyntaxTreeNode") -> str:
        is_inner = "quote" in self._open
        self._open.append("quote")
        inner = self._blocks(node.children)
        self._open.pop()
        return inner if is_inner or not inner else self.quote(inner)

    def inline(self, nodes: Sequence["SyntaxTreeNode"]) -> str:
        """Return the text of a line's parts."""
        return "".join(self._span(node) for node in nodes)

    def _span(self, node: "SyntaxTreeNode") -> str:
        match node.type:
            case "code_inline":
                return self.code_span(node.content)
            case "softbreak" | "hardbreak":
                return "\n"
            case "strong" | "em" | "s":
                return self._marked(node.type, node)
            case "link" | "image":
                return self._link(node)
            case _:
                return self.inline(node.children) if node.children else self.escape(node.content)

    def _marked(self, kind: str, node: "SyntaxTreeNode") -> str:
        is_inner = kind in self._open
        self._open.append(kind)
        inner = self.inline(node.children)
        self._open.pop()
        return inner if is_inner or not inner.strip() else self.mark(kind, inner)

    def _link(self, node: "SyntaxTreeNode") -> str:
        url = str(node.attrs.get("href") or node.attrs.get("src") or "")
        if url.lower().startswith(self.schemes):
            return self.link(url, node)
        label, address = self.label(node), self.escape(url)
        return f"{label} ({address})" if label and address not in ("", label) else label or address

    def label(self, node: "SyntaxTreeNode") -> str:
        """Return the text of a link, with its marks; the description of an image."""
        return self.inline(node.children) if node.type == "link" else self.escape(node.content)


def plain_text(node: "SyntaxTreeNode") -> str:
    """Return the text below a node without marks, on one line."""
    match node.type:
        case "softbreak" | "hardbreak":
            return " "
        case "text" | "code_inline" | "text_special" | "image":
            return node.content
        case _:
            return "".join(plain_text(child) for child in node.children)


def without_fences(code: str) -> str:
    """Return code that can't end the code block around it. Zero-width spaces separate its backticks."""
    return _FENCE.sub(lambda fence: "\u200b".join(fence[0]), code)


def _take_task(item: "SyntaxTreeNode") -> str:
    """Return the box of a task and remove it from the item's text; "" if the item is none."""
    first = item
    while first.children:
        first = first.children[0]
    task = _TASK.match(first.content) if first.type == "text" and first.token else None
    if task is None or first.token is None:
        return ""
    first.token.content = first.content[task.end() :]
    return "☐" if task[1] == " " else "☑"


def _table(node: "SyntaxTreeNode") -> str:
    """Return a table in columns of characters."""
    rows = [[plain_text(cell) for cell in row.children] for part in node.children for row in part.children]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [" │ ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "─┼─".join("─" * width for width in widths), *lines[1:]])
