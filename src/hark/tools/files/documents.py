"""Extracts the text of PDFs, notebooks and office files with a separate program that can be killed."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from hark.processes.cookies import ProcessOwner
from hark.tools.files.child_program import run_program

MAX_DOCUMENT_BYTES = 100_000_000
TIME_LIMIT_SECONDS = 30.0
_OFFICE_KINDS = frozenset({"docx", "xlsx", "pptx"})


def document_kind(path: Path, head: bytes) -> str:
    """Return the kind of a document, by its name and its first bytes, or "" for other files."""
    if head.startswith(b"%PDF-"):
        return "pdf"
    kind = path.suffix[1:].lower()
    is_document = kind in _OFFICE_KINDS and head.startswith(b"PK\x03\x04")
    return kind if is_document or (kind == "ipynb" and head.lstrip().startswith(b"{")) else ""


async def read_document(owner: ProcessOwner, descriptor: int, kind: str, receive: Callable[[bytes], bool]) -> str:
    """Pass the text of an open file to `receive` until it returns True. Cancelling kills the program.

    Return the reason why the document was not read to its end, or "".
    """
    size = os.fstat(descriptor).st_size
    if size > MAX_DOCUMENT_BYTES:
        return f"it has {size:,} bytes; the limit is {MAX_DOCUMENT_BYTES:,}"
    os.lseek(descriptor, 0, os.SEEK_SET)
    end = b""

    def receive_text(chunk: bytes) -> bool:
        nonlocal end
        text, mark, reason = (b"", b"", chunk) if end else chunk.partition(b"\0")
        end += mark + reason
        return bool(text) and receive(text)

    argv = [sys.executable, "-P", "-m", "hark.tools.files.document_text", kind]
    if await run_program(owner, argv, Path("/"), receive_text, TIME_LIMIT_SECONDS, descriptor):
        return f"it takes longer than {TIME_LIMIT_SECONDS:g} seconds"
    return end[1:].decode(errors="replace") if end else "the program that reads it was killed"
