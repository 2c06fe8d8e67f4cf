"""What a server sent, as text: by its type, in its charset."""

import codecs
import re

import msgspec

from hark.tools.web.html.text import Article, to_text
from hark.tools.web.page import WebPage

SNIFFED_BYTES = 2_048

_TEXTS = re.compile(
    r"text/.*|application/((.*\+)?(json|xml|yaml)|x-ndjson|jsonl|javascript|ecmascript|x-javascript|x-yaml|toml|sql|"
    r"graphql|x-sh|x-httpd-php|x-www-form-urlencoded|rtf)|message/rfc822|image/svg\+xml"
)
_UNKNOWN = frozenset({"", "application/octet-stream", "binary/octet-stream", "application/unknown", "unknown/unknown"})
_CHARSET = re.compile(r"""charset\s*=\s*["']?([\w.:-]{1,40})""", re.ASCII | re.IGNORECASE)
_META_CHARSET = re.compile(
    rb"""<(?:meta|\?xml)[^>]*?(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE
)
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# A server may name any codec of Python's; some of them take quadratic time, or are none for text.
_CODECS = re.compile(
    r"utf-8|utf-16(-[lb]e)?|iso8859-\d+|cp125\d|cp866|cp874|cp932|cp949|koi8-[ru]|mac-roman|gb2312|gbk|gb18030|big5|"
    r"big5hkscs|euc_jp|euc_kr|shift_jis|iso2022_jp|tis-620"
)
# Letters that a reader never sees: controls, changes of direction, tags. They serve to hide words from people.
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")


def is_text(content_type: str) -> bool:
    """Whether it is worth reading: text, or perhaps text."""
    kind = media_type(content_type)
    return _TEXTS.fullmatch(kind) is not None or kind in _UNKNOWN


def media_type(content_type: str) -> str:
    """Return the type without its parameters."""
    return content_type.partition(";")[0].strip().lower()


def is_binary(page: WebPage) -> bool:
    """Whether what came is no text, whatever it is called."""
    start = page.body[:SNIFFED_BYTES]
    return start.startswith(b"%PDF-") or (b"\0" in start and not start.startswith(_BOMS[1][0]) and not _is_utf16(page))


async def readable(page: WebPage) -> Article:
    """Return the page's text. Safe to cancel."""
    text = decoded(page)
    kind = media_type(page.content_type)
    if kind in ("text/html", "application/xhtml+xml") or (kind in _UNKNOWN and _looks_like_html(text)):
        article = await to_text(text, page.url)
        return Article(visible(article.title), visible(article.text))
    if kind.endswith("json") and (pretty := _pretty(text)):
        text = pretty
    return Article("", visible(text).replace("\r\n", "\n").strip("\n"))


def decoded(page: WebPage) -> str:
    """Return the body in the charset of its mark, its header or itself; what is none of these is UTF-8 or Windows'."""
    for mark, name in _BOMS:
        if page.body.startswith(mark):
            return page.body[len(mark) :].decode(name, "replace")
    for name in (_header_charset(page), _meta_charset(page.body)):
        if codec := _codec(name):
            return page.body.decode(codec, "replace")
    try:
        # A cut may have gone through a letter.
        return codecs.getincrementaldecoder("utf-8")().decode(page.body, final=not page.is_cut)
    except UnicodeDecodeError:
        return page.body.decode("cp1252", "replace")


def visible(text: str) -> str:
    """Return the text without letters that nobody would see."""
    return _UNSEEN.sub("", text)


def _codec(name: str) -> str:
    try:
        found = codecs.lookup(name).name if name else ""
    except LookupError:
        return ""
    if found in ("ascii", "iso8859-1"):
        return "cp1252"  # as browsers read it
    return found if _CODECS.fullmatch(found) else ""


def _header_charset(page: WebPage) -> str:
    found = _CHARSET.search(page.content_type)
    return found.group(1) if found else ""


def _meta_charset(body: bytes) -> str:
    found = _META_CHARSET.search(body[:SNIFFED_BYTES])
    name = found.group(1).decode("ascii", "replace") if found else ""
    return "utf-8" if name.lower().startswith("utf-16") else name  # it could not have been read if it were


def _is_utf16(page: WebPage) -> bool:
    return _codec(_header_charset(page)).startswith("utf-16") or page.body.startswith(_BOMS[2][0])


def _looks_like_html(text: str) -> bool:
    start = text[:SNIFFED_BYTES].lstrip().lower()
    return start.startswith(("<!doctype html", "<html", "<head", "<body"))


def _pretty(text: str) -> str:
    try:
        return msgspec.json.format(text, indent=2)
    except (msgspec.MsgspecError, RecursionError):
        return ""
