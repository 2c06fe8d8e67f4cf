"""Convert Markdown to the few HTML tags that Telegram supports. Other markup becomes plain text."""

import re
from html import escape, unescape
from typing import TYPE_CHECKING

from hark.surfaces.chat.markdown import WEB_SCHEMES, MarkdownWriter
from hark.surfaces.chat.split_text import text_length

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

_TAG = re.compile(r"<[^<>]*>")
_TAGS = {"strong": "b", "em": "i", "s": "s"}


def to_html(markdown: str) -> str:
    """Convert the model's Markdown to HTML that Telegram accepts."""
    return _TelegramMarkdown().write(markdown)


def visible_length(html: str) -> int:
    """Return the length that Telegram counts: without tags, in UTF-16 code units."""
    return text_length(unescape(_TAG.sub("", html)))


class _TelegramMarkdown(MarkdownWriter):
    """Writes Telegram's HTML. Telegram allows no nested quotes and no markup inside code."""

    indent = "   "
    schemes = (*WEB_SCHEMES, "tg://")

    def escape(self, text: str) -> str:
        return escape(text, quote=False)

    def emphasize(self, kind: str, inner: str) -> str:
        return f"<{_TAGS[kind]}>{inner}</{_TAGS[kind]}>"

    def code_span(self, code: str) -> str:
        return f"<code>{self.escape(code)}</code>"

    def code_block(self, code: str, language: str) -> str:
        text = self.escape(code)
        return f'<pre><code class="language-{language}">{text}</code></pre>' if language else f"<pre>{text}</pre>"

    def quote(self, inner: str) -> str:
        return f"<blockquote>{inner}</blockquote>"

    def link(self, url: str, node: "SyntaxTreeNode") -> str:
        return f'<a href="{escape(url)}">{self.link_label(node) or self.escape(url)}</a>'
