"""Reads an image's media type and size in pixels from its bytes, and checks that it is complete."""

from msgspec import Struct

from hark.protocol.tool import ToolError

_START_OF_FRAME = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_BARE_MARKERS = frozenset({0x01, *range(0xD0, 0xD8)})


class ImageInfo(Struct, frozen=True):
    """The media type and size of a complete image, in a format that models can see."""

    media_type: str
    width: int
    height: int


def image_media_type(head: bytes) -> str:
    """Return the media type that a file's first bytes indicate, or "" if models can't see such files."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return ""


def read_image_info(content: bytes) -> ImageInfo:
    """Return the media type and size of an image.

    Raises:
        ToolError: It is not an image, or is damaged. A model API would reject every request that contains it.
    """
    media_type = image_media_type(content)
    if not media_type:
        raise ToolError("it is not a PNG, JPEG, GIF or WebP image. Convert it to PNG first.")
    try:
        width, height = _SIZE_READERS[media_type](content)
    except IndexError as error:
        raise ToolError(f"its {media_type} data is truncated. Create or download it again.") from error
    if not width or not height:
        raise ToolError(f"its {media_type} data is damaged: it has no size. Create or download it again.")
    return ImageInfo(media_type, width, height)


def _png_size(content: bytes) -> tuple[int, int]:
    if b"IEND" not in content[-64:] or content[12:16] != b"IHDR":
        raise IndexError
    return _read_big_endian(content, 16, 4), _read_big_endian(content, 20, 4)


def _gif_size(content: bytes) -> tuple[int, int]:
    if b"\x3b" not in content[-64:]:
        raise IndexError
    return _read_little_endian(content, 6, 2), _read_little_endian(content, 8, 2)


def _webp_size(content: bytes) -> tuple[int, int]:
    if _read_little_endian(content, 4, 4) + 8 > len(content) + 1:
        raise IndexError
    match content[12:16]:
        case b"VP8X":
            return _read_little_endian(content, 24, 3) + 1, _read_little_endian(content, 27, 3) + 1
        case b"VP8L":
            bits = _read_little_endian(content, 21, 4)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            return _read_little_endian(content, 26, 2) & 0x3FFF, _read_little_endian(content, 28, 2) & 0x3FFF
        case _:
            return 0, 0


def _jpeg_size(content: bytes) -> tuple[int, int]:
    if b"\xff\xd9" not in content[-65_536:]:
        raise IndexError
    at = 2
    while True:
        if content[at] != 0xFF:
            return 0, 0
        marker = content[at + 1]
        if marker in _START_OF_FRAME:
            return _read_big_endian(content, at + 7, 2), _read_big_endian(content, at + 5, 2)
        if marker == 0xFF:  # padding
            at += 1
        elif marker in _BARE_MARKERS:
            at += 2
        else:
            at += 2 + max(2, _read_big_endian(content, at + 2, 2))


_SIZE_READERS = {"image/png": _png_size, "image/jpeg": _jpeg_size, "image/gif": _gif_size, "image/webp": _webp_size}


def _read_big_endian(content: bytes, at: int, count: int) -> int:
    return int.from_bytes(_read_bytes(content, at, count), "big")


def _read_little_endian(content: bytes, at: int, count: int) -> int:
    return int.from_bytes(_read_bytes(content, at, count), "little")


def _read_bytes(content: bytes, at: int, count: int) -> bytes:
    if at + count > len(content):
        raise IndexError
    return content[at : at + count]
