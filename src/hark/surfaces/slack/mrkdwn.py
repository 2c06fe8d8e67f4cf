"""Convert Markdown to Slack's mrkdwn, and Slack's messages to plain text."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hark.surfaces.chat.markdown import MarkdownWriter, break_up_fences, plain_text

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

_ENTITY = re.compile(r"<([^<>|]+)(?:\|([^<>]*))?>")
_MENTION = re.compile(r"<@([A-Z0-9]+)(?:\|[^<>]*)?>")
_DELIMITERS = {"strong": "*", "em": "_", "s": "~"}
_ZERO_WIDTH_SPACE = "\u200b"  # Slack recognizes a delimiter only at a word boundary; this creates one invisibly.


def escape(text: str) -> str:
    """Escape a text so that Slack detects no links, mentions or pings in it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def to_mrkdwn(markdown: str) -> str:
    """Convert Markdown to Slack's mrkdwn. The result can't ping anyone, and code is not changed."""
    return _SlackMarkdown().write(markdown)


class _SlackMarkdown(MarkdownWriter):
    """Writes Slack's mrkdwn. It has no escape character, and emphasis can't span lines."""

    def escape(self, text: str) -> str:
        return _separate_backticks(escape(text))

    def emphasize(self, kind: str, inner: str) -> str:
        delimiter = _DELIMITERS[kind]
        return "\n".join(f"{delimiter}{line}{delimiter}" if line.strip() else line for line in inner.split("\n"))

    def code_span(self, code: str) -> str:
        return f"`{escape(code)}`"

    def code_block(self, code: str, language: str) -> str:
        return f"```\n{break_up_fences(escape(code))}\n```"

    def quote(self, inner: str) -> str:
        return "\n".join(f"> {line}".rstrip() for line in inner.split("\n"))

    def link(self, url: str, node: "SyntaxTreeNode") -> str:
        target = url.replace("&", "&amp;").replace("<", "%3C").replace(">", "%3E").replace("|", "%7C")
        label = plain_text(node).replace("|", "¦").replace("`", "ˋ").strip()
        return f"<{target}|{escape(label)}>" if label and label != url else f"<{target}>"

    def write_inline(self, nodes: Sequence["SyntaxTreeNode"]) -> str:
        """Return the markup of inline nodes, with emphasis separated from adjacent words."""
        text, is_after_emphasis = "", False
        for node in nodes:
            part = self._write_span(node)
            is_emphasis = node.type in _DELIMITERS and part[:1] in _DELIMITERS.values()
            if part and ((is_emphasis and text[-1:].isalnum()) or (is_after_emphasis and part[0].isalnum())):
                text += _ZERO_WIDTH_SPACE
            text += part
            is_after_emphasis = is_emphasis if part else is_after_emphasis
        return _separate_backticks(text)


def _separate_backticks(text: str) -> str:
    """Insert a zero-width space between adjacent backticks."""
    return text.replace("``", f"`{_ZERO_WIDTH_SPACE}`").replace("``", f"`{_ZERO_WIDTH_SPACE}`")


def mentioned_ids(text: str) -> list[str]:
    """Return the ids of the users that a text mentions."""
    return _MENTION.findall(text)


def to_plain_text(text: str, names: Mapping[str, str], bot_id: str) -> str:
    """Convert a Slack text to plain text with names and URLs, without a leading mention of the bot."""
    text = re.sub(rf"^\s*<@{re.escape(bot_id)}(?:\|[^<>]*)?>[\s:,]*", "", text) if bot_id else text
    expanded = _ENTITY.sub(lambda match: _expand_entity(match[1], match[2] or "", names), text)
    return expanded.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").strip()


def _expand_entity(target: str, label: str, names: Mapping[str, str]) -> str:
    if target.startswith("@"):
        return f"@{names.get(target[1:]) or label or target[1:]}"
    if target.startswith("#"):
        return f"#{label or target[1:]}"
    if target.startswith("!"):
        return label or f"@{target[1:].partition('^')[0]}"
    url = target.removeprefix("mailto:").removeprefix("tel:")
    return url if label in ("", url, target) else f"{label} ({url})"
