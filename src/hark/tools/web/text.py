"""Converts a server's response to text, according to its type and charset."""

import codecs
import re

import msgspec

from hark.tools.web.html.text import Article, html_to_article
from hark.tools.web.page import WebPage

SNIFFED_BYTES = 2_048

_TEXT_TYPES = re.compile(
    r"text/.*|application/((.*\+)?(json|xml|yaml)|x-ndjson|jsonl|javascript|ecmascript|x-javascript|x-yaml|toml|sql|"
    r"graphql|x-sh|x-httpd-php|x-www-form-urlencoded|rtf)|message/rfc822|image/svg\+xml"
)
_UNKNOWN_TYPES = frozenset(
    {"", "application/octet-stream", "binary/octet-stream", "application/unknown", "unknown/unknown"}
)
_CHARSET = re.compile(r"""charset\s*=\s*["']?([\w.:-]{1,40})""", re.ASCII | re.IGNORECASE)
_META_CHARSET = re.compile(
    rb"""<(?:meta|\?xml)[^>]*?(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE
)
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# A server may name any codec of Python. Some of them take quadratic time, and some are not for text.
_ALLOWED_CODECS = re.compile(
    r"utf-8|utf-16(-[lb]e)?|iso8859-\d+|cp125\d|cp866|cp874|cp932|cp949|koi8-[ru]|mac-roman|gb2312|gbk|gb18030|big5|"
    r"big5hkscs|euc_jp|euc_kr|shift_jis|iso2022_jp|tis-620"
)
# Characters that a reader never sees: controls, direction changes and tags. They can hide text from readers.
_INVISIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")


def is_text(content_type: str) -> bool:
    """Return whether a content type is text, or may be text."""
    kind = media_type(content_type)
    return _TEXT_TYPES.fullmatch(kind) is not None or kind in _UNKNOWN_TYPES


def media_type(content_type: str) -> str:
    """Return the media type without its parameters."""
    return content_type.partition(";")[0].strip().lower()


def is_binary(page: WebPage) -> bool:
    """Return whether the body is binary, regardless of its content type."""
    start = page.body[:SNIFFED_BYTES]
    return start.startswith(b"%PDF-") or (b"\0" in start and not start.startswith(_BOMS[1][0]) and not _is_utf16(page))


async def to_article(page: WebPage) -> Article:
    """Convert the page to an article with title and text. Safe to cancel."""
    text = decode_body(page)
    kind = media_type(page.content_type)
    if kind in ("text/html", "application/xhtml+xml") or (kind in _UNKNOWN_TYPES and _looks_like_html(text)):
        article = await html_to_article(text, page.url)
        return Article(remove_invisible(article.title), remove_invisible(article.text))
    if kind.endswith("json") and (pretty := _format_json(text)):
        text = pretty
    return Article("", remove_invisible(text).replace("\r\n", "\n").strip("\n"))


def decode_body(page: WebPage) -> str:
    """Decode the body by its byte order mark, header or meta charset; otherwise as UTF-8, or else Windows-1252."""
    for bom, name in _BOMS:
        if page.body.startswith(bom):
            return page.body[len(bom) :].decode(name, "replace")
    for name in (_header_charset(page), _meta_charset(page.body)):
        if codec := _find_codec(name):
            return page.body.decode(codec, "replace")
    try:
        # Truncation may have split a character.
        return codecs.getincrementaldecoder("utf-8")().decode(page.body, final=not page.is_cut)
    except UnicodeDecodeError:
        return page.body.decode("cp1252", "replace")


def remove_invisible(text: str) -> str:
    """Remove invisible characters from a text."""
    return _INVISIBLE.sub("", text)


def _find_codec(name: str) -> str:
    try:
        found = codecs.lookup(name).name if name else ""
    except LookupError:
        return ""
    if found in ("ascii", "iso8859-1"):
        return "cp1252"  # as browsers read it
    return found if _ALLOWED_CODECS.fullmatch(found) else ""


def _header_charset(page: WebPage) -> str:
    found = _CHARSET.search(page.content_type)
    return found.group(1) if found else ""


def _meta_charset(body: bytes) -> str:
    found = _META_CHARSET.search(body[:SNIFFED_BYTES])
    name = found.group(1).decode("ascii", "replace") if found else ""
    return "utf-8" if name.lower().startswith("utf-16") else name  # a UTF-16 page would not match the pattern


def _is_utf16(page: WebPage) -> bool:
    return _find_codec(_header_charset(page)).startswith("utf-16") or page.body.startswith(_BOMS[2][0])


def _looks_like_html(text: str) -> bool:
    start = text[:SNIFFED_BYTES].lstrip().lower()
    return start.startswith(("<!doctype html", "<html", "<head", "<body"))


def _format_json(text: str) -> str:
    try:
        return msgspec.json.format(text, indent=2)
    except (msgspec.MsgspecError, RecursionError):
        return ""
