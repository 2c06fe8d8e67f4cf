"""The `view_image` tool."""

import base64
import os
import struct
import zlib
from pathlib import Path

import pytest

from hark.protocol.messages import Attachment, Effect
from hark.protocol.tool import ToolOutput
from hark.tools.files.view_image import MAX_BYTES, ViewImageTool
from tests.tools.fake_context import FakeContext, call_tool


def make_png(width: int = 3, height: int = 2) -> bytes:
    def make_chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = zlib.compress(b"".join(b"\0" + b"\xff\0\0" * width for _ in range(height)))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + make_chunk(b"IHDR", head) + make_chunk(b"IDAT", rows) + make_chunk(b"IEND", b"")


GIF = b"GIF89a" + struct.pack("<HH", 3, 2) + b"\0\0\0" + b"\x2c" + struct.pack("<HHHH", 0, 0, 3, 2) + b"\0\2\0\0\x3b"
JPEG = (
    b"\xff\xd8\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0\1\1\0\0\1\0\1\0\0"
    b"\xff\xff\xc0" + struct.pack(">HBHHB", 17, 8, 2, 3, 3) + b"\1\x22\0\2\x11\1\3\x11\1" + b"\xff\xda\0\2x\xff\xd9"
)  # fmt: skip
WEBP_CHUNKS = {
    "VP8X": b"VP8X" + struct.pack("<I", 10) + b"\0\0\0\0" + (2).to_bytes(3, "little") + (1).to_bytes(3, "little"),
    "VP8L": b"VP8L" + struct.pack("<I", 5) + b"\x2f" + struct.pack("<I", 2 | 1 << 14) + b"\0",
    "VP8 ": b"VP8 " + struct.pack("<I", 10) + b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 3, 2),
}


def make_webp(kind: str) -> bytes:
    body = b"WEBP" + WEBP_CHUNKS[kind]
    return b"RIFF" + struct.pack("<I", len(body)) + body


IMAGES = [
    ("image/png", make_png()),
    ("image/gif", GIF),
    ("image/jpeg", JPEG),
    *(("image/webp", make_webp(kind)) for kind in WEBP_CHUNKS),
]


async def view_image(root: Path, path: str) -> ToolOutput:
    return await call_tool(ViewImageTool(), {"path": path}, FakeContext(root))


async def expect_error(root: Path, path: str) -> str:
    output = await view_image(root, path)
    assert (output.is_error, output.effect, output.attachments) == (True, Effect.NOT_STARTED, ())
    return output.text


@pytest.mark.parametrize(("media_type", "content"), IMAGES)
async def test_an_image_is_recognised_by_its_content_not_its_name(
    media_type: str, content: bytes, tmp_path: Path
) -> None:
    (tmp_path / "p.dat").write_bytes(content)
    output = await view_image(tmp_path, "p.dat")
    assert output.text == f"[p.dat: {media_type}, 3 x 2 pixels, {len(content)} bytes]"
    assert output.attachments == (Attachment(media_type, "p.dat", base64.b64encode(content).decode()),)
    assert not ViewImageTool().spec.is_changing


@pytest.mark.parametrize(("media_type", "content"), IMAGES)
async def test_a_truncated_image_is_rejected(media_type: str, content: bytes, tmp_path: Path) -> None:
    for length in (len(content) // 2, 14, 20):
        (tmp_path / "p").write_bytes(content[:length])
        text = await expect_error(tmp_path, "p")
        assert text.startswith(f"p can't be shown: its {media_type} data is truncated")


async def test_files_that_are_not_images_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_text("not an image")
    (tmp_path / "empty.png").touch()
    os.mkfifo(tmp_path / "pipe.png")
    assert "not a PNG, JPEG, GIF or WebP" in await expect_error(tmp_path, "a.png")
    assert "not a PNG, JPEG, GIF or WebP" in await expect_error(tmp_path, "empty.png")
    assert "named pipe" in await expect_error(tmp_path, "pipe.png")
    assert "is a folder" in await expect_error(tmp_path, ".")
    assert "does not exist. Similar names: a.png" in await expect_error(tmp_path, "b.png")
    assert "is a URL" in await expect_error(tmp_path, "https://example.org/a.png")


async def test_an_image_that_is_too_big_is_rejected_with_advice(tmp_path: Path) -> None:
    with (tmp_path / "big.png").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    (tmp_path / "wide.png").write_bytes(make_png(9_000, 1))
    (tmp_path / "none.png").write_bytes(make_png(0, 1))
    assert "Resize it first, for example: ffmpeg -i big.png" in await expect_error(tmp_path, "big.png")
    assert "wide.png has 9000 x 1 pixels; the limit is 8000" in await expect_error(tmp_path, "wide.png")
    assert "it has no size" in await expect_error(tmp_path, "none.png")
