"""Markdown as models write it, turned into Slack's mrkdwn."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hark.surfaces.chat.markdown import MarkdownWriter, plain_text, without_fences

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

_MARKS = {"strong": "*", "em": "_", "s": "~"}
_GAP = "\u200b"  # Slack sees a mark only at a word's edge; this makes one that takes no room


def escape(text: str) -> str:
    """Return a text in which Slack finds no link, mention or ping."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def mrkdwn(markdown: str) -> str:
    """Return the text as Slack shows it. Nothing in it can ping anybody; what is in code stays as it is."""
    return _SlackWriter().write(markdown)


class _SlackWriter(MarkdownWriter):
    """Slack has no escapes. Marks end with their line, and backticks side by side would open a code block."""

    def escape(self, text: str) -> str:
        return _apart(escape(text))

    def mark(self, kind: str, inner: str) -> str:
        sign = _MARKS[kind]
        return "\n".join(f"{sign}{line}{sign}" if line.strip() else line for line in inner.split("\n"))

    def code_span(self, code: str) -> str:
        return f"`{escape(code)}`"

    def code_block(self, code: str, language: str) -> str:
        return f"```\n{without_fences(escape(code))}\n```"

    def quote(self, inner: str) -> str:
        return "\n".join(f"> {line}".rstrip() for line in inner.split("\n"))

    def link(self, url: str, node: "SyntaxTreeNode") -> str:
        address = url.replace("&", "&amp;").replace("<", "%3C").replace(">", "%3E").replace("|", "%7C")
        label = plain_text(node).replace("|", "¦").replace("`", "").strip()
        return f"<{address}|{escape(label)}>" if label and label != url else f"<{address}>"

    def inline(self, nodes: Sequence["SyntaxTreeNode"]) -> str:
        """Return the text of a line's parts, with marks set off from the words around them."""
        text, is_marked = "", False
        for node in nodes:
            part = self._span(node)
            is_mark = node.type in _MARKS and part[:1] in _MARKS.values()
            if part and ((is_mark and text[-1:].isalnum()) or (is_marked and part[0].isalnum())):
                text += _GAP
            text += part
            is_marked = is_mark if part else is_marked
        return _apart(text)


def _apart(text: str) -> str:
    """Return a text in which no two backticks stand side by side."""
    return text.replace("``", f"`{_GAP}`").replace("``", f"`{_GAP}`")
