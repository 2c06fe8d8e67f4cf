"""Text for Slack and from it: Markdown turned into mrkdwn, and what people wrote turned into plain text."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hark.surfaces.chat.markdown import MarkdownWriter, plain_text, without_fences

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

_ENTITY = re.compile(r"<([^<>|]+)(?:\|([^<>]*))?>")
_MENTION = re.compile(r"<@([A-Z0-9]+)(?:\|[^<>]*)?>")
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


def mentioned(text: str) -> list[str]:
    """Return the ids of the people whom a text names."""
    return _MENTION.findall(text)


def plain(text: str, names: Mapping[str, str], us: str) -> str:
    """Return the text as people read it: people by name, links by address, and without our own name before it."""
    text = re.sub(rf"^\s*<@{re.escape(us)}(?:\|[^<>]*)?>[\s:,]*", "", text) if us else text
    shown = _ENTITY.sub(lambda match: _shown(match[1], match[2] or "", names), text)
    return shown.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").strip()


def _shown(what: str, label: str, names: Mapping[str, str]) -> str:
    if what.startswith("@"):
        return f"@{names.get(what[1:]) or label or what[1:]}"
    if what.startswith("#"):
        return f"#{label or what[1:]}"
    if what.startswith("!"):
        return label or f"@{what[1:].partition('^')[0]}"
    address = what.removeprefix("mailto:").removeprefix("tel:")
    return address if label in ("", address, what) else f"{label} ({address})"
