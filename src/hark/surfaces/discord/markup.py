"""Convert the model's Markdown to Discord's, and replace mention ids in users' messages with names."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hark.surfaces.chat.markdown import MarkdownWriter, break_up_fences
from hark.text.graphemes import safe_cut

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

MAX_CHARACTERS = 2000  # of a message; Discord counts Unicode code points
_DELIMITERS = {"strong": "**", "em": "*", "s": "~~"}
_MAX_HEADING_LEVEL = 3  # heading levels that Discord supports
# URLs are left alone, because Discord would show backslashes in them.
_SPECIAL = re.compile(r"(https?://[^\s<>]+)|[\\`]|\*(?!\s)|(?<!\s)\*|(?<![^\W_])_|_(?![^\W_])|~~|\|\||(?<=\])\(")
_LINE_START = re.compile(r"^[ \t]*(?:\d{1,9}(?=\. )|(?=#{1,3} |-# |[-+*] |>))", re.MULTILINE)
_MENTION = re.compile(r"<(@!?|@&|#)(\d+)>")
_EMOJI = re.compile(r"<a?(:\w+:)\d+>")


def to_discord_markdown(text: str, max_characters: int) -> str:
    """Return the model's Markdown in Discord's dialect, never longer than `max_characters`. Code is left unchanged."""
    converted = _DiscordMarkdown().write(text)
    converted = converted if len(converted) <= max_characters else text
    if not converted.strip():
        return "…"  # Discord rejects empty messages.
    return converted if len(converted) <= max_characters else converted[: safe_cut(converted, max_characters - 1)] + "…"


class _DiscordMarkdown(MarkdownWriter):
    """Writes Discord's Markdown dialect, which has no tables, horizontal rules, images or small headings."""

    def escape(self, text: str) -> str:
        return _SPECIAL.sub(lambda found: found[0] if found[1] else f"\\{found[0]}", text)

    def paragraph(self, text: str) -> str:
        return _LINE_START.sub(lambda start: f"{start[0]}\\", text)

    def emphasize(self, kind: str, inner: str) -> str:
        return f"{_DELIMITERS[kind]}{inner}{_DELIMITERS[kind]}"

    def code_span(self, code: str) -> str:
        return f"`` {code} ``" if "`" in code else f"`{code}`"

    def code_block(self, code: str, language: str) -> str:
        return f"```{language}\n{break_up_fences(code)}\n```"

    def heading(self, level: int, node: "SyntaxTreeNode") -> str:
        if level > _MAX_HEADING_LEVEL:
            return super().heading(level, node)
        return f"{'#' * level} {self.write_inline(node.children)}"

    def bullet(self, task: str) -> str:
        return f"- {task}".strip()

    def link(self, url: str, node: "SyntaxTreeNode") -> str:
        label = self.link_label(node)
        if url.lower().startswith("mailto:"):
            return label or url
        if not label or label in (url, self.escape(url)):
            return f"<{url}>"
        return f"[{label}](<{url}>)" if "(" in url or ")" in url else f"[{label}]({url})"


def replace_mentions(text: str, names: Mapping[str, str], bot_id: str) -> str:
    """Return a user's text with names instead of ids. A mention of the bot at the beginning is removed."""

    def replace_mention(mention: re.Match[str]) -> str:
        prefix, number = mention[1].rstrip("!&"), mention[2]
        if number == bot_id:
            return "" if not text[: mention.start()].strip() else f"{prefix}{names.get(number, 'you')}"
        return f"{prefix}{names[number]}" if number in names else mention[0]

    return _EMOJI.sub(r"\1", _MENTION.sub(replace_mention, text)).strip()
