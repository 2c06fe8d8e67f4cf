"""HTML to text that a model reads well: Markdown without the page's furniture."""

import re
from urllib.parse import urljoin

import anyio
import anyio.lowlevel
from msgspec import Struct

from hark.tools.web.html.blocks import Blocks
from hark.tools.web.html.table import Tables
from hark.tools.web.html.tokens import Close, Open, TextToken, Token, tokens

BATCH_TOKENS = 2_000
LONG_CHARACTERS = 5_000
ENOUGH_CHARACTERS = 200
MAX_LINK_CHARACTERS = 500
MAX_TITLE_CHARACTERS = 300

# fmt: off
_VOID = frozenset({
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
})
_UNSEEN = frozenset({
    "script", "style", "template", "noscript", "svg", "math", "iframe", "object", "canvas", "video", "audio", "select",
    "noembed", "noframes",
})
_FURNITURE = frozenset({"nav", "footer", "button", "dialog", "menu"})
_PARAGRAPHS = frozenset({
    "address", "article", "aside", "body", "caption", "center", "details", "div", "dl", "dt", "fieldset", "figcaption",
    "figure", "footer", "form", "header", "html", "legend", "main", "p", "section", "summary",
})
# fmt: on
_HEADINGS = frozenset(f"h{level}" for level in range(1, 7))
_HIDING = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_SPACES = re.compile(r"\s+")
_LANGUAGE = re.compile(r"\b(?:language|lang|highlight-source|highlight)-([\w+#-]+)")


class Article(Struct, frozen=True):
    """A page's text and title."""

    title: str
    text: str


async def to_text(page: str, url: str) -> Article:
    """Return the page as text. Takes turns with everything else, however long the page is; safe to cancel."""
    article = await _written(_Writer(url), page)
    if len(article.text) >= ENOUGH_CHARACTERS:
        return article
    whole = await _written(_Writer(url, keeps_furniture=True), page)  # it may be all menu, or wrongly nested
    return whole if len(whole.text) > len(article.text) else article


async def _written(writer: "_Writer", page: str) -> Article:
    for number, token in enumerate(tokens(page)):
        if number % BATCH_TOKENS == 0 or (isinstance(token, TextToken) and len(token.text) > LONG_CHARACTERS):
            await anyio.lowlevel.checkpoint()
        writer.take(token)
    return writer.article()


class _Writer:
    """Takes a page's tokens, and writes what a reader would see."""

    def __init__(self, url: str, keeps_furniture: bool = False) -> None:
        self._base = url
        self._unseen = _UNSEEN if keeps_furniture else _UNSEEN | _FURNITURE
        self._skipped = ""
        self._skipped_depth = 0
        self._title = ""
        self._is_in_title = False
        self._link = ""
        self._blocks = Blocks()
        self._tables = Tables(self._blocks)

    def article(self) -> Article:
        """Return what was written."""
        self._end_link()
        self._tables.close_all()
        self._blocks.end()
        return Article(_SPACES.sub(" ", self._title).strip()[:MAX_TITLE_CHARACTERS], self._blocks.text())

    def take(self, token: Token) -> None:
        """Write one token."""
        if self._skipped:
            self._skip(token)
            return
        match token:
            case TextToken(text):
                self._say(text)
            case Open():
                self._open(token)
            case Close(name):
                self._close(name)

    def _skip(self, token: Token) -> None:
        if isinstance(token, Open) and token.name == self._skipped:
            self._skipped_depth += 1
        elif isinstance(token, Close) and token.name == self._skipped:
            self._skipped_depth -= 1
            if not self._skipped_depth:
                self._skipped = ""

    def _say(self, text: str) -> None:
        if self._is_in_title:
            self._title = self._title or text
        elif self._blocks.is_preformatted:
            self._blocks.add(text)
        else:
            self._blocks.add(_SPACES.sub(" ", text))

    def _open(self, tag: Open) -> None:
        name = tag.name
        if name not in _VOID and (name in self._unseen or _is_hidden(tag)):
            self._skipped, self._skipped_depth = name, 1
        elif self._tables.open(name):
            self._end_link()
        elif name in _HEADINGS:
            self._blocks.begin("#" * int(name[1]) + " ")
        elif name in _PARAGRAPHS:
            self._blocks.begin()
            if name == "main":
                self._blocks.open_main()
        else:
            self._open_other(tag)

    def _open_other(self, tag: Open) -> None:
        match tag.name:
            case "title":
                self._is_in_title = True
            case "base":
                self._base = _joined(self._base, tag.attributes().get("href", "")) or self._base
            case "a":
                self._end_link()
                self._link = self._link_of(tag)
                self._blocks.mark()
            case "img":
                if alt := tag.attributes().get("alt", "").strip():
                    self._blocks.add(f"[image: {_SPACES.sub(' ', alt)}]")
            case "br":
                self._blocks.add("\n")
            case "hr":
                self._blocks.rule()
            case "pre":
                self._blocks.open_pre(_language(tag))
            case "code" if self._blocks.is_preformatted:
                self._blocks.open_pre(_language(tag))
            case "code":
                self._blocks.add("`")
            case "ul" | "ol":
                self._blocks.open_list(is_numbered=tag.name == "ol")
            case "li":
                self._blocks.item()
            case "dd":
                self._blocks.begin(": ")
            case "blockquote":
                self._blocks.open_quote()
            case _:
                pass

    def _close(self, name: str) -> None:
        if name == "a" or self._tables.close(name):
            self._end_link()
        elif name in _HEADINGS or name in _PARAGRAPHS or name in ("dd", "li"):
            self._end_link()
            self._blocks.begin()
            if name == "main":
                self._blocks.close_main()
        else:
            self._close_other(name)

    def _close_other(self, name: str) -> None:
        match name:
            case "title":
                self._is_in_title = False
            case "pre":
                self._blocks.close_pre()
            case "code":
                self._blocks.add("" if self._blocks.is_preformatted else "`")
            case "ul" | "ol":
                self._end_link()
                self._blocks.close_list()
            case "blockquote":
                self._end_link()
                self._blocks.close_quote()
            case _:
                pass

    def _link_of(self, tag: Open) -> str:
        place = tag.attributes().get("href", "").strip()
        if not place or place.startswith("#"):
            return ""
        url = _joined(self._base, place)
        is_shown = url.startswith(("http://", "https://", "mailto:")) and len(url) <= MAX_LINK_CHARACTERS
        return url.replace(" ", "%20").replace("(", "%28").replace(")", "%29") if is_shown else ""

    def _end_link(self) -> None:
        self._blocks.wrap_marked(self._link)
        self._link = ""


def _is_hidden(tag: Open) -> bool:
    """Whether nobody would see it: what a reader can't see is no business of the model's."""
    if "hid" not in tag.source and "none" not in tag.source and "HID" not in tag.source:
        return False
    attributes = tag.attributes()
    return (
        attributes.get("hidden", "until-found") != "until-found"
        or attributes.get("aria-hidden", "").lower() == "true"
        or _HIDING.search(attributes.get("style", "")) is not None
    )


def _language(tag: Open) -> str:
    found = _LANGUAGE.search(tag.attributes().get("class", "")) if tag.source else None
    return found.group(1) if found else ""


def _joined(base: str, place: str) -> str:
    try:
        return urljoin(base, place)
    except ValueError:
        return ""
