"""A parser for Telegram's HTML, as strict as its servers."""

import re
from html import unescape

_TOKEN = re.compile(r"<(/?)([a-zA-Z0-9-]+)([^<>]*)>|<|[^<]+")
_TAGS = {
    "b", "strong", "i", "em", "u", "ins", "s", "strike", "del", "code", "pre", "a", "blockquote", "tg-spoiler", "span",
    "tg-emoji",
}  # fmt: skip
_ENTITY = re.compile(r"&(?!(?:lt|gt|amp|quot|#\d+|#x[0-9a-fA-F]+);)")


class MarkupError(Exception):
    """The markup is invalid. The message describes the error."""


def visible_text(html: str) -> str:
    """Parse the markup and return the text that users see.

    Raises:
        MarkupError: The servers would refuse the markup.
    """
    text: list[str] = []
    open_tags: list[str] = []
    for match in _TOKEN.finditer(html):
        close, tag, rest = match[1], (match[2] or "").lower(), match[3]
        if match[0] == "<":
            raise MarkupError(f"Unsupported start tag at byte offset {match.start()}")
        if not tag:
            if ">" in match[0]:
                raise AssertionError("the servers accept a bare >, but Hark must escape it")
            if _ENTITY.search(match[0]):
                raise AssertionError("the servers accept a bare &, but Hark must escape it")
            text.append(unescape(match[0]))
        elif tag not in _TAGS:
            raise MarkupError(f'Unsupported start tag "{tag}" at byte offset {match.start()}')
        elif close:
            if not open_tags or open_tags.pop() != tag:
                raise MarkupError(f"Unmatched end tag at byte offset {match.start()}")
        else:
            _check_nesting(tag, rest, open_tags)
            open_tags.append(tag)
    if open_tags:
        raise MarkupError(f"Can't find end tag corresponding to start tag {open_tags[-1]}")
    return "".join(text)


def _check_nesting(tag: str, rest: str, open_tags: list[str]) -> None:
    if "code" in open_tags or ("pre" in open_tags and tag != "code"):
        raise AssertionError(f"<{tag}> in code is not shown")
    if tag == "blockquote" and tag in open_tags:
        raise AssertionError("quotes can't be nested")
    if tag == "a" and not re.fullmatch(r' href="[^"]+"', rest):
        raise MarkupError("Attribute href is wrong")
