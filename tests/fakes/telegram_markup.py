"""A parser for Telegram's HTML, as strict as its servers."""

import re
from html import unescape

_TOKEN = re.compile(r"<(/?)([a-zA-Z0-9-]+)([^<>]*)>|<|[^<]+")
_TAGS = {
    "b", "strong", "i", "em", "u", "ins", "s", "strike", "del", "code", "pre", "a", "blockquote", "tg-spoiler", "span",
    "tg-emoji",
}  # fmt: skip
_ENTITY = re.compile(r"&(?!(?:lt|gt|amp|quot|#\d+|#x[0-9a-fA-F]+);)")
_INVISIBLE = re.compile(r"[\s\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff]*")
MAX_UNITS = 4096  # UTF-16 code units after the markup was parsed
MAX_ENTITY_BYTES = 9500  # of all URLs together; found by experiments


class MarkupError(Exception):
    """The markup is invalid. The message describes the error."""


def find_text_fault(text: str, html: str = "") -> str:
    """Return Telegram's error for a text without markup that is empty or too long, or "" if it is valid."""
    if _INVISIBLE.fullmatch(text):
        return "Bad Request: message text is empty"
    if len(text.encode("utf-16-le")) // 2 > MAX_UNITS:
        return "Bad Request: message is too long"
    if sum(len(url.encode()) for url in re.findall(r'href="([^"]*)"', html)) > MAX_ENTITY_BYTES:
        return "Bad Request: ENTITIES_TOO_LONG"
    return ""


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
