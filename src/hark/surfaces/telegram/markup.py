"""Markdown as Telegram shows it: in the few HTML tags that it knows, everything else as text."""

import re
from collections.abc import Iterable, Sequence
from html import escape, unescape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

_TAG = re.compile(r"<[^<>]*>")
_LANGUAGE = re.compile(r"[\w+#.-]{1,32}")
_LINK = re.compile(r"(https?://|tg://|mailto:)", re.IGNORECASE)


def as_html(markdown: str) -> str:
    """Return a text of the model as HTML that Telegram takes."""
    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    return _Page().blocks(SyntaxTreeNode(parser.parse(markdown)).children)


def shown_length(html: str) -> int:
    """Return how long Telegram finds it: without the tags, in units of UTF-16."""
    return utf16_length(unescape(_TAG.sub("", html)))


def utf16_length(text: str) -> int:
    """Return the length in the units that Telegram counts in."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


class _Page:
    """Draws nodes. Telegram allows no quote in a quote, and bold within bold means nothing."""

    def __init__(self) -> None:
        self._quotes = 0
        self._bolds = 0

    def blocks(self, nodes: Iterable["SyntaxTreeNode"], depth: int = 0, separator: str = "\n\n") -> str:
        drawn = (self._block(node, depth) for node in nodes)
        return separator.join(text for text in drawn if text)

    def _block(self, node: "SyntaxTreeNode", depth: int) -> str:
        match node.type:
            case "fence" | "code_block":
                return _code(node.content, node.info)
            case "heading":
                return self._bold(node.children)
            case "bullet_list" | "ordered_list":
                return self._list(node, depth)
            case "blockquote":
                return self._quote(node, depth)
            case "table":
                return self._table(node)
            case "hr":
                return "———"
            case "paragraph":
                return self._inline(node.children)
            case _:
                return self.blocks(node.children, depth) if node.children else escape(node.content, quote=False)

    def _list(self, node: "SyntaxTreeNode", depth: int) -> str:
        first = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else None
        lines: list[str] = []
        for place, item in enumerate(node.children):
            sign = "•" if first is None else f"{first + place}."
            lines.append(f"{'   ' * depth}{sign} {self.blocks(item.children, depth + 1, chr(10))}")
        return "\n".join(lines)

    def _quote(self, node: "SyntaxTreeNode", depth: int) -> str:
        self._quotes += 1
        inner = self.blocks(node.children, depth)
        self._quotes -= 1
        return inner if self._quotes or not inner else f"<blockquote>{inner}</blockquote>"

    def _table(self, node: "SyntaxTreeNode") -> str:
        rows = [[_plain(cell) for cell in row.children] for part in node.children for row in part.children]
        widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
        lines = [" │ ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        lines.insert(1, "─┼─".join("─" * width for width in widths))
        return f"<pre>{escape(chr(10).join(line.rstrip() for line in lines), quote=False)}</pre>"

    def _inline(self, nodes: Sequence["SyntaxTreeNode"]) -> str:
        return "".join(self._span(node) for node in nodes)

    def _span(self, node: "SyntaxTreeNode") -> str:
        match node.type:
            case "code_inline":
                return f"<code>{escape(node.content, quote=False)}</code>"
            case "softbreak" | "hardbreak":
                return "\n"
            case "strong":
                return self._bold(node.children)
            case "em":
                return f"<i>{self._inline(node.children)}</i>"
            case "s":
                return f"<s>{self._inline(node.children)}</s>"
            case "link":
                return _link(str(node.attrs.get("href", "")), self._inline(node.children))
            case "image":
                return _link(str(node.attrs.get("src", "")), escape(node.content or "picture", quote=False))
            case _:
                return self._inline(node.children) if node.children else escape(node.content, quote=False)

    def _bold(self, nodes: Sequence["SyntaxTreeNode"]) -> str:
        self._bolds += 1
        inner = self._inline(nodes)
        self._bolds -= 1
        return inner if self._bolds or not inner else f"<b>{inner}</b>"


def _code(content: str, info: str) -> str:
    text = escape(content.rstrip("\n"), quote=False)
    language = _LANGUAGE.match(info.strip())
    return f'<pre><code class="language-{language[0]}">{text}</code></pre>' if language else f"<pre>{text}</pre>"


def _link(address: str, text: str) -> str:
    if _LINK.match(address):
        return f'<a href="{escape(address)}">{text}</a>'
    shown = escape(address, quote=False)
    return text if shown in ("", text) else f"{text} ({shown})"


def _plain(node: "SyntaxTreeNode") -> str:
    if node.type in ("softbreak", "hardbreak"):
        return " "
    return "".join(_plain(child) for child in node.children) if node.children else _content(node)


def _content(node: "SyntaxTreeNode") -> str:
    return node.content if node.type in ("text", "code_inline", "text_special", "image") else ""
