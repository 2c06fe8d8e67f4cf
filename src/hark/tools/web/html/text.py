"""Converts a page's HTML to Markdown, without navigation and similar parts of the page."""

import re
from urllib.parse import urljoin

import anyio
import anyio.lowlevel
from msgspec import Struct

from hark.tools.web.html.blocks import MarkdownBlocks
from hark.tools.web.html.table import TableWriter
from hark.tools.web.html.tokens import CloseTag, OpenTag, TextToken, Token, tokenize

BATCH_TOKENS = 2_000
LONG_TEXT_CHARACTERS = 5_000
MIN_ARTICLE_CHARACTERS = 200
MAX_LINK_CHARACTERS = 500
MAX_TITLE_CHARACTERS = 300

# fmt: off
_VOID_TAGS = frozenset({
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
})
_INVISIBLE_TAGS = frozenset({
    "script", "style", "template", "noscript", "svg", "math", "iframe", "object", "canvas", "video", "audio", "select",
    "noembed", "noframes",
})
_NAVIGATION_TAGS = frozenset({"nav", "footer", "button", "dialog", "menu"})
_PARAGRAPH_TAGS = frozenset({
    "address", "article", "aside", "body", "caption", "center", "details", "div", "dl", "dt", "fieldset", "figcaption",
    "figure", "footer", "form", "header", "html", "legend", "main", "p", "section", "summary",
})
# fmt: on
_HEADING_TAGS = frozenset(f"h{level}" for level in range(1, 7))
_HIDING_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_SPACES = re.compile(r"\s+")
_LANGUAGE = re.compile(r"\b(?:language|lang|highlight-source|highlight)-([\w+#-]+)")


class Article(Struct, frozen=True):
    """A page's title and text."""

    title: str
    text: str


async def html_to_article(page: str, url: str) -> Article:
    """Convert a page to text. Yields to other tasks regularly, even for a long page. Safe to cancel."""
    article = await _write_article(_ArticleWriter(url), page)
    if len(article.text) >= MIN_ARTICLE_CHARACTERS:
        return article
    # The page may be all navigation, or wrongly nested.
    full_article = await _write_article(_ArticleWriter(url, keeps_navigation=True), page)
    return full_article if len(full_article.text) > len(article.text) else article


async def _write_article(writer: "_ArticleWriter", page: str) -> Article:
    for number, token in enumerate(tokenize(page)):
        if number % BATCH_TOKENS == 0 or (isinstance(token, TextToken) and len(token.text) > LONG_TEXT_CHARACTERS):
            await anyio.lowlevel.checkpoint()
        writer.write_token(token)
    return writer.finish()


class _ArticleWriter:
    """Converts a page's tokens to the text that a reader would see."""

    def __init__(self, url: str, keeps_navigation: bool = False) -> None:
        self._base = url
        self._skipped_tags = _INVISIBLE_TAGS if keeps_navigation else _INVISIBLE_TAGS | _NAVIGATION_TAGS
        self._skipped_tag = ""
        self._skipped_depth = 0
        self._title = ""
        self._is_in_title = False
        self._link = ""
        self._blocks = MarkdownBlocks()
        self._tables = TableWriter(self._blocks)

    def finish(self) -> Article:
        """Finish the text and return the article."""
        self._end_link()
        self._tables.close_all()
        self._blocks.end_block()
        return Article(_SPACES.sub(" ", self._title).strip()[:MAX_TITLE_CHARACTERS], self._blocks.text())

    def write_token(self, token: Token) -> None:
        """Process one token."""
        if self._skipped_tag:
            self._skip_token(token)
            return
        match token:
            case TextToken(text):
                self._write_text(text)
            case OpenTag():
                self._open_tag(token)
            case CloseTag(name):
                self._close_tag(name)

    def _skip_token(self, token: Token) -> None:
        if isinstance(token, OpenTag) and token.name == self._skipped_tag:
            self._skipped_depth += 1
        elif isinstance(token, CloseTag) and token.name == self._skipped_tag:
            self._skipped_depth -= 1
            if not self._skipped_depth:
                self._skipped_tag = ""

    def _write_text(self, text: str) -> None:
        if self._is_in_title:
            self._title = self._title or text
        elif self._blocks.is_preformatted:
            self._blocks.add(text)
        else:
            self._blocks.add(_SPACES.sub(" ", text))

    def _open_tag(self, tag: OpenTag) -> None:
        name = tag.name
        if name not in _VOID_TAGS and (name in self._skipped_tags or _is_hidden(tag)):
            self._skipped_tag, self._skipped_depth = name, 1
        elif self._tables.open_tag(name):
            self._end_link()
        elif name in _HEADING_TAGS:
            self._blocks.begin_block("#" * int(name[1]) + " ")
        elif name in _PARAGRAPH_TAGS:
            self._blocks.begin_block()
            if name == "main":
                self._blocks.open_main()
        else:
            self._open_other_tag(tag)

    def _open_other_tag(self, tag: OpenTag) -> None:
        match tag.name:
            case "title":
                self._is_in_title = True
            case "base":
                self._base = _join_url(self._base, tag.parse_attributes().get("href", "")) or self._base
            case "a":
                self._end_link()
                self._link = self._link_url(tag)
                self._blocks.start_link()
            case "img":
                if alt := tag.parse_attributes().get("alt", "").strip():
                    self._blocks.add(f"[image: {_SPACES.sub(' ', alt)}]")
            case "br":
                self._blocks.add("\n")
            case "hr":
                self._blocks.add_rule()
            case "pre":
                self._blocks.open_pre(_language(tag))
            case "code" if self._blocks.is_preformatted:
                self._blocks.open_pre(_language(tag))
            case "code":
                self._blocks.add("`")
            case "ul" | "ol":
                self._blocks.open_list(is_numbered=tag.name == "ol")
            case "li":
                self._blocks.begin_item()
            case "dd":
                self._blocks.begin_block(": ")
            case "blockquote":
                self._blocks.open_quote()
            case _:
                pass

    def _close_tag(self, name: str) -> None:
        if name == "a" or self._tables.close_tag(name):
            self._end_link()
        elif name in _HEADING_TAGS or name in _PARAGRAPH_TAGS or name in ("dd", "li"):
            self._end_link()
            self._blocks.begin_block()
            if name == "main":
                self._blocks.close_main()
        else:
            self._close_other_tag(name)

    def _close_other_tag(self, name: str) -> None:
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

    def _link_url(self, tag: OpenTag) -> str:
        href = tag.parse_attributes().get("href", "").strip()
        if not href or href.startswith("#"):
            return ""
        url = _join_url(self._base, href)
        is_shown = url.startswith(("http://", "https://", "mailto:")) and len(url) <= MAX_LINK_CHARACTERS
        return url.replace(" ", "%20").replace("(", "%28").replace(")", "%29") if is_shown else ""

    def _end_link(self) -> None:
        self._blocks.end_link(self._link)
        self._link = ""


def _is_hidden(tag: OpenTag) -> bool:
    """Return whether a reader would not see the element. Hidden text must not reach the model."""
    if "hid" not in tag.source and "none" not in tag.source and "HID" not in tag.source:
        return False
    attributes = tag.parse_attributes()
    return (
        attributes.get("hidden", "until-found") != "until-found"
        or attributes.get("aria-hidden", "").lower() == "true"
        or _HIDING_STYLE.search(attributes.get("style", "")) is not None
    )


def _language(tag: OpenTag) -> str:
    found = _LANGUAGE.search(tag.parse_attributes().get("class", "")) if tag.source else None
    return found.group(1) if found else ""


def _join_url(base: str, reference: str) -> str:
    try:
        return urljoin(base, reference)
    except ValueError:
        return ""
