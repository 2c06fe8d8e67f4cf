"""Text as Discord shows it, and as people wrote it: what its Markdown lacks, and what its mentions mean."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hark.surfaces.chat.markdown import MarkdownWriter, without_fences

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

CHARACTERS = 2000  # of a message
_MARKS = {"strong": "**", "em": "*", "s": "~~"}
_HEADINGS = 3  # levels that Discord has
# Addresses are left alone: Discord would show the backslashes in them.
_SPECIAL = re.compile(r"(https?://[^\s<>]+)|[\\`]|\*(?!\s)|(?<!\s)\*|(?<![^\W_])_|_(?![^\W_])|~~|\|\||(?<=\])\(")
_LINE_START = re.compile(r"^[ \t]*(?:\d{1,9}(?=\. )|(?=#{1,3} |-# |[-+*] |>))", re.MULTILINE)
_MENTION = re.compile(r"<(@!?|@&|#)(\d+)>")
_EMOJI = re.compile(r"<a?(:\w+:)\d+>")


def shown(text: str, characters: int) -> str:
    """Return the model's Markdown as Discord shows it best; code is left as it is. It is never longer than allowed."""
    new = _DiscordWriter().write(text)
    new = new if len(new) <= characters else text
    if not new.strip():
        return "…"  # Discord takes no empty message
    return new if len(new) <= characters else new[: characters - 1] + "…"


class _DiscordWriter(MarkdownWriter):
    """Discord has Markdown of its own kind, without tables, rules, images and small headings."""

    def escape(self, text: str) -> str:
        return _SPECIAL.sub(lambda found: found[0] if found[1] else f"\\{found[0]}", text)

    def paragraph(self, text: str) -> str:
        return _LINE_START.sub(lambda start: f"{start[0]}\\", text)

    def mark(self, kind: str, inner: str) -> str:
        return f"{_MARKS[kind]}{inner}{_MARKS[kind]}"

    def code_span(self, code: str) -> str:
        return f"`` {code} ``" if "`" in code else f"`{code}`"

    def code_block(self, code: str, language: str) -> str:
        return f"```{language}\n{without_fences(code)}\n```"

    def heading(self, level: int, node: "SyntaxTreeNode") -> str:
        if level > _HEADINGS:
            return super().heading(level, node)
        return f"{'#' * level} {self.inline(node.children)}"

    def bullet(self, task: str) -> str:
        return f"- {task}".strip()

    def link(self, url: str, node: "SyntaxTreeNode") -> str:
        label = self.label(node)
        if url.lower().startswith("mailto:"):
            return label or url
        if not label or label in (url, self.escape(url)):
            return f"<{url}>"
        return f"[{label}](<{url}>)" if "(" in url or ")" in url else f"[{label}]({url})"


def readable(text: str, names: Mapping[str, str], me: str) -> str:
    """Return what a person wrote, with names in the place of ids; naming us at the beginning is no part of it."""

    def name(mention: re.Match[str]) -> str:
        sign, number = mention[1].rstrip("!&"), mention[2]
        if number == me:
            return "" if not text[: mention.start()].strip() else f"{sign}{names.get(number, 'you')}"
        return f"{sign}{names[number]}" if number in names else mention[0]

    return _EMOJI.sub(r"\1", _MENTION.sub(name, text)).strip()
