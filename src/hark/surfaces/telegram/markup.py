"""Markdown as Telegram shows it: in the few HTML tags that it knows, everything else as text."""

import re
from html import escape, unescape
from typing import TYPE_CHECKING

from hark.surfaces.chat.markdown import WEB_SCHEMES, MarkdownWriter

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

_TAG = re.compile(r"<[^<>]*>")
_TAGS = {"strong": "b", "em": "i", "s": "s"}


def as_html(markdown: str) -> str:
    """Return a text of the model as HTML that Telegram takes."""
    return _TelegramWriter().write(markdown)


def shown_length(html: str) -> int:
    """Return how long Telegram finds it: without the tags, in units of UTF-16."""
    return utf16_length(unescape(_TAG.sub("", html)))


def utf16_length(text: str) -> int:
    """Return the length in the units that Telegram counts in."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


class _TelegramWriter(MarkdownWriter):
    """Telegram allows no quote in a quote, and no mark in code."""

    indent = "   "
    schemes = (*WEB_SCHEMES, "tg://")

    def escape(self, text: str) -> str:
        return escape(text, quote=False)

    def mark(self, kind: str, inner: str) -> str:
        return f"<{_TAGS[kind]}>{inner}</{_TAGS[kind]}>"

    def code_span(self, code: str) -> str:
        return f"<code>{self.escape(code)}</code>"

    def code_block(self, code: str, language: str) -> str:
        text = self.escape(code)
        return f'<pre><code class="language-{language}">{text}</code></pre>' if language else f"<pre>{text}</pre>"

    def quote(self, inner: str) -> str:
        return f"<blockquote>{inner}</blockquote>"

    def link(self, url: str, node: "SyntaxTreeNode") -> str:
        return f'<a href="{escape(url)}">{self.label(node) or self.escape(url)}</a>'
