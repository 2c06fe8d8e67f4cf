"""Searches files as ripgrep does, and prints as it does: a program of its own, so that it can be killed."""

import base64
import os
import re
import sys
import warnings
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from hark.disk.tree_walk import TreeWalk
from hark.tools.files.file_text import decode, mark_of
from hark.tools.files.search_query import GrepQuery

HEAD_BYTES = 65_536
WIDE_BYTES = 64 * 1024 * 1024


def main(argument: str) -> int:
    """Search by a query in JSON in the folder that it runs in; print what is found. Return 2 for a bad pattern."""
    warnings.simplefilter("ignore")
    query = msgspec.json.decode(argument, type=GrepQuery)
    try:
        pattern = re.compile(
            re.escape(query.pattern) if query.is_literal else query.pattern,
            re.IGNORECASE if query.ignores_case else 0,
        )
    except (re.error, OverflowError, RecursionError) as error:
        sys.stdout.write(f"error: {error}\n")
        return 2
    for path in _paths(query):
        _search(path, pattern, query, sys.stdout.buffer)
        sys.stdout.flush()
    return 0


def _paths(query: GrepQuery) -> Iterator[str]:
    if query.target != ".":
        yield query.target
        return
    here = Path.cwd()
    start = len(str(here).rstrip("/")) + 1
    for found in TreeWalk().through(here):
        if found.is_file and query.wants(found.path[start:]):
            yield f"./{found.path[start:]}"


def _search(path: str, pattern: re.Pattern[str], query: GrepQuery, out: BinaryIO) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    with os.fdopen(descriptor, "rb") as file:
        try:
            lines = _lines(file)
            if query.shows == "lines":
                _print_lines(path, lines, pattern, query.context, out)
            else:
                _print_count(path, lines, pattern, query.shows == "files", out)
        except OSError:
            return


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield a text file's lines in UTF-8; a binary one has none."""
    head = file.read(HEAD_BYTES)
    file.seek(0)
    encoding = mark_of(head)
    if encoding.codec.startswith("utf-16"):
        for line in decode(file.read(WIDE_BYTES)).text.split("\n"):
            yield line.encode(errors="replace") + b"\n"
        return
    if b"\0" in head:
        return
    file.seek(len(encoding.mark))
    for line in file:
        if b"\0" in line:
            return
        yield line


def _found(line: bytes, pattern: re.Pattern[str]) -> int | None:
    """Return where in the line the pattern is first, in bytes."""
    text = line.rstrip(b"\n").removesuffix(b"\r").decode(errors="surrogateescape")
    match = pattern.search(text)
    return None if match is None else len(text[: match.start()].encode(errors="surrogateescape"))


def _print_count(path: str, lines: Iterator[bytes], pattern: re.Pattern[str], is_once: bool, out: BinaryIO) -> None:
    count = 0
    for line in lines:
        count += _found(line, pattern) is not None
        if count and is_once:
            break
    if count:
        out.write(os.fsencode(path) + b"\0%d\n" % count)


def _print_lines(path: str, lines: Iterator[bytes], pattern: re.Pattern[str], context: int, out: BinaryIO) -> None:
    before: deque[tuple[int, bytes]] = deque(maxlen=context)
    after = 0
    for number, line in enumerate(lines, 1):
        start = _found(line, pattern)
        if start is not None:
            out.writelines(_event("context", path, one, text) for one, text in before)
            before.clear()
            out.write(_event("match", path, number, line, start))
            after = context
        elif after:
            out.write(_event("context", path, number, line))
            after -= 1
        else:
            before.append((number, line))


def _event(kind: str, path: str, number: int, line: bytes, start: int | None = None) -> bytes:
    data: dict[str, Any] = {"path": _text(os.fsencode(path)), "lines": _text(line), "line_number": number}
    data["submatches"] = [] if start is None else [{"start": start}]
    return msgspec.json.encode({"type": kind, "data": data}) + b"\n"


def _text(content: bytes) -> dict[str, str]:
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(content).decode()}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
