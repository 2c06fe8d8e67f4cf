"""HTML as a row of tokens, in one pass: whatever a page does, each character is looked at about once.

The standard library's parser looks again and again at what is never closed, which a hostile page can use to hold the
whole process. Here, as in browsers, what is never closed ends with the page.
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
_UNESCAPED_RAW = frozenset({"textarea", "title"})
_RAW_END = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in _RAW}


class TextToken(Struct, frozen=True):
    """Words between tags."""

    text: str


class Open(Struct, frozen=True):
    """The beginning of an element. `source` is its attributes as they are written."""

    name: str
    source: str = ""

    def attributes(self) -> dict[str, str]:
        """Return the attributes; of two with the same name the first counts."""
        found: dict[str, str] = {}
        for name, value in _ATTRIBUTE.findall(self.source):
            found.setdefault(name.lower(), plain(value[1:] if value[:1] in ("'", '"') else value))
        return found


class Close(Struct, frozen=True):
    """The end of an element."""

    name: str


Token = TextToken | Open | Close


def plain(text: str) -> str:
    """Return the text with its entities replaced."""
    return unescape(_LONG_NUMBER.sub("\ufffd", text)) if "&" in text else text


def tokens(page: str) -> Iterator[Token]:
    """Yield the page's tokens; comments, declarations and what is never closed are left out."""
    place = 0
    while place < len(page):
        bracket = page.find("<", place, place + TEXT_CHARACTERS)
        if bracket != place:
            stop = bracket if bracket > place else place + TEXT_CHARACTERS
            yield TextToken(plain(page[place:stop]))
            place = stop
            continue
        if name := _TAG_NAME.match(page, bracket + 1):
            rest = _TAG_REST.match(page, name.end())
            assert rest is not None, "it may be empty, but it always matches"
            if rest.end() >= len(page):
                return
            tag = Open(name.group().lower(), rest.group())
            yield tag
            place = rest.end() + 1
            if tag.name in _RAW:
                end = _RAW_END[tag.name].search(page, place)
                stop = end.start() if end else len(page)
                yield TextToken(plain(page[place:stop]) if tag.name in _UNESCAPED_RAW else page[place:stop])
                place = stop
            continue
        if page.startswith("</", bracket) and (name := _TAG_NAME.match(page, bracket + 2)):
            yield Close(name.group().lower())
        place = _behind_other(page, bracket)
        if place == bracket + 1:
            yield TextToken("<")


def _behind_other(page: str, bracket: int) -> int:
    """Return the place behind a comment, a declaration, an end tag; a bracket that is none of these is one letter."""
    for start, end in (("<!--", "-->"), ("<![CDATA[", "]]>"), (("<!", "<?", "</"), ">")):
        if page.startswith(start, bracket):
            place = page.find(end, bracket + 2)
            return place + len(end) if place >= 0 else len(page)
    return bracket + 1
