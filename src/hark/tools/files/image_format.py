"""What a picture's bytes tell: its type, its size in pixels, and whether it is whole."""

from msgspec import Struct

from hark.protocol.tool import ToolError

_START_OF_FRAME = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_BARE_MARKERS = frozenset({0x01, *range(0xD0, 0xD8)})


class Picture(Struct, frozen=True):
    """A whole picture, in a format that models can see."""

    media_type: str
    width: int
    height: int


def picture_type(head: bytes) -> str:
    """Return the media type that a file's first bytes are of, or "" for none that models can see."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return ""


def picture_of(content: bytes) -> Picture:
    """Return what picture it is.

    Raises:
        ToolError: It is none, or it is damaged: a model's API would refuse the whole conversation for it.
    """
    media_type = picture_type(content)
    if not media_type:
        raise ToolError("it is no PNG, JPEG, GIF or WebP picture. Convert it to PNG first.")
    try:
        width, height = _SIZES[media_type](content)
    except IndexError as error:
        raise ToolError(f"its {media_type} data is cut off. Make or fetch it again.") from error
    if not width or not height:
        raise ToolError(f"its {media_type} data is damaged: it has no size. Make or fetch it again.")
    return Picture(media_type, width, height)


def _png(content: bytes) -> tuple[int, int]:
    if b"IEND" not in content[-64:] or content[12:16] != b"IHDR":
        raise IndexError
    return _big(content, 16, 4), _big(content, 20, 4)


def _gif(content: bytes) -> tuple[int, int]:
    if b"\x3b" not in content[-64:]:
        raise IndexError
    return _little(content, 6, 2), _little(content, 8, 2)


def _webp(content: bytes) -> tuple[int, int]:
    if _little(content, 4, 4) + 8 > len(content) + 1:
        raise IndexError
    match content[12:16]:
        case b"VP8X":
            return _little(content, 24, 3) + 1, _little(content, 27, 3) + 1
        case b"VP8L":
            bits = _little(content, 21, 4)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            return _little(content, 26, 2) & 0x3FFF, _little(content, 28, 2) & 0x3FFF
        case _:
            return 0, 0


def _jpeg(content: bytes) -> tuple[int, int]:
    if b"\xff\xd9" not in content[-65_536:]:
        raise IndexError
    at = 2
    while True:
        if content[at] != 0xFF:
            return 0, 0
        marker = content[at + 1]
        if marker in _START_OF_FRAME:
            return _big(content, at + 7, 2), _big(content, at + 5, 2)
        if marker == 0xFF:  # padding
            at += 1
        elif marker in _BARE_MARKERS:
            at += 2
        else:
            at += 2 + max(2, _big(content, at + 2, 2))


_SIZES = {"image/png": _png, "image/jpeg": _jpeg, "image/gif": _gif, "image/webp": _webp}


def _big(content: bytes, at: int, count: int) -> int:
    return int.from_bytes(_bytes(content, at, count), "big")


def _little(content: bytes, at: int, count: int) -> int:
    return int.from_bytes(_bytes(content, at, count), "little")


def _bytes(content: bytes, at: int, count: int) -> bytes:
    if at + count > len(content):
        raise IndexError
    return content[at : at + count]
