"""Splits HTML into tokens in one pass. Each character is read about once, even on hostile pages.

The standard library's parser rescans markup that is never closed, which a hostile page can use to block the whole
process. Here, as in browsers, unclosed markup ends with the page.
"""

import re
from collections.abc import Iterator
from html import unescape

from msgspec import Struct

TEXT_CHARACTERS = 50_000

_TAG_NAME = re.compile(r"[a-zA-Z][^\s/>]*+")
_TAG_REST = re.compile(r"""(?:[^>=]++|=\s*+(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z))?+)*+""")
_ATTRIBUTE = re.compile(r"""([^\s=/]++)(?:\s*+=\s*+("[^"]*+|'[^']*+|[^\s]*+))?+["']?""")
_LONG_NUMBER = re.compile(r"&#[xX]?[0-9a-fA-F]{9,};?")
_RAW = frozenset({"script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"})
_RAW_WITH_ENTITIES = frozenset({"textarea", "title"})
_RAW_END = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in _RAW}


class TextToken(Struct, frozen=True):
    """Text between tags."""

    text: str


class OpenTag(Struct, frozen=True):
    """An opening tag. `source` is the unparsed text of its attributes."""

    name: str
    source: str = ""

    def parse_attributes(self) -> dict[str, str]:
        """Return the attributes. If a name occurs twice, the first value is used."""
        found: dict[str, str] = {}
        for name, value in _ATTRIBUTE.findall(self.source):
            found.setdefault(name.lower(), unescape_entities(value[1:] if value[:1] in ("'", '"') else value))
        return found


class CloseTag(Struct, frozen=True):
    """A closing tag."""

    name: str


Token = TextToken | OpenTag | CloseTag


def unescape_entities(text: str) -> str:
    """Replace the HTML entities in a text with their characters."""
    return unescape(_LONG_NUMBER.sub("\ufffd", text)) if "&" in text else text


def tokenize(page: str) -> Iterator[Token]:
    """Yield the page's tokens. Comments, declarations and unclosed markup are left out."""
    position = 0
    while position < len(page):
        bracket = page.find("<", position, position + TEXT_CHARACTERS)
        if bracket != position:
            stop = bracket if bracket > position else position + TEXT_CHARACTERS
            yield TextToken(unescape_entities(page[position:stop]))
            position = stop
            continue
        if name := _TAG_NAME.match(page, bracket + 1):
            rest = _TAG_REST.match(page, name.end())
            assert rest is not None, "the pattern always matches, possibly an empty text"
            if rest.end() >= len(page):
                return
            tag = OpenTag(name.group().lower(), rest.group())
            yield tag
            position = rest.end() + 1
            if tag.name in _RAW:
                end = _RAW_END[tag.name].search(page, position)
                stop = end.start() if end else len(page)
                yield TextToken(
                    unescape_entities(page[position:stop]) if tag.name in _RAW_WITH_ENTITIES else page[position:stop]
                )
                position = stop
            continue
        if page.startswith("</", bracket) and (name := _TAG_NAME.match(page, bracket + 2)):
            yield CloseTag(name.group().lower())
        position = _end_of_markup(page, bracket)
        if position == bracket + 1:
            yield TextToken("<")


def _end_of_markup(page: str, bracket: int) -> int:
    """Return the position after the comment, declaration or closing tag, or after the bracket if there is none."""
    for start, end in (("<!--", "-->"), ("<![CDATA[", "]]>"), (("<!", "<?", "</"), ">")):
        if page.startswith(start, bracket):
            position = page.find(end, bracket + 2)
            return position + len(end) if position >= 0 else len(page)
    return bracket + 1
