"""Searches files like ripgrep, with the same output format. Runs as a separate program, so that it can be killed."""

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
from hark.tools.files.file_text import decode_text, detect_encoding
from hark.tools.files.search_pattern import translate_pattern
from hark.tools.files.search_query import GrepQuery

HEAD_BYTES = 65_536
MAX_UTF16_BYTES = 64 * 1024 * 1024


def main(argument: str) -> int:
    """Run a JSON query in the current directory and print the matches. Return 2 for an invalid pattern, otherwise 0."""
    warnings.simplefilter("ignore")
    query = msgspec.json.decode(argument, type=GrepQuery)
    try:
        pattern = re.compile(
            re.escape(query.pattern) if query.is_literal else translate_pattern(query.pattern),
            re.IGNORECASE if query.ignores_case else 0,
        )
    except (re.error, ValueError, OverflowError, RecursionError) as error:
        sys.stdout.write(f"error: {error}\n")
        return 2
    for path in _paths_to_search(query):
        if query.shows == "names":
            sys.stdout.buffer.write(os.fsencode(path) + b"\n")
            continue
        _search_file(path, pattern, query, sys.stdout.buffer)
        sys.stdout.flush()
    return 0


def _paths_to_search(query: GrepQuery) -> Iterator[str]:
    if query.target != ".":
        yield query.target
        return
    here = Path.cwd()
    start = len(str(here).rstrip("/")) + 1
    for found in TreeWalk(include_ignored=query.includes_ignored).walk(here):
        if found.is_file and query.includes(found.path[start:]):
            yield f"./{found.path[start:]}"


def _search_file(path: str, pattern: re.Pattern[str], query: GrepQuery, out: BinaryIO) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    with os.fdopen(descriptor, "rb") as file:
        try:
            lines = _read_lines(file)
            if query.shows == "lines":
                _print_lines(path, lines, pattern, query.context, out)
            else:
                _print_count(path, lines, pattern, query.shows == "files", out)
        except OSError:
            return


def _read_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield a text file's lines as UTF-8 bytes. Yields nothing for a binary file, and stops at the first NUL byte."""
    head = file.read(HEAD_BYTES)
    file.seek(0)
    encoding = detect_encoding(head)
    if encoding.codec.startswith("utf-16"):
        for line in decode_text(file.read(MAX_UTF16_BYTES)).text.split("\n"):
            yield line.encode(errors="replace") + b"\n"
        return
    if b"\0" in head:
        return
    file.seek(len(encoding.mark))
    for line in file:
        if b"\0" in line:
            return
        yield line


def _match_offset(line: bytes, pattern: re.Pattern[str]) -> int | None:
    """Return the byte offset of the first match in the line, or None."""
    text = line.rstrip(b"\n").removesuffix(b"\r").decode(errors="surrogateescape")
    match = pattern.search(text)
    return None if match is None else len(text[: match.start()].encode(errors="surrogateescape"))


def _print_count(path: str, lines: Iterator[bytes], pattern: re.Pattern[str], stops_early: bool, out: BinaryIO) -> None:
    count = 0
    for line in lines:
        count += _match_offset(line, pattern) is not None
        if count and stops_early:
            break
    if count:
        out.write(os.fsencode(path) + b"\0%d\n" % count)


def _print_lines(path: str, lines: Iterator[bytes], pattern: re.Pattern[str], context: int, out: BinaryIO) -> None:
    before: deque[tuple[int, bytes]] = deque(maxlen=context)
    after = 0
    for number, line in enumerate(lines, 1):
        start = _match_offset(line, pattern)
        if start is not None:
            out.writelines(_encode_event("context", path, one, text) for one, text in before)
            before.clear()
            out.write(_encode_event("match", path, number, line, start))
            after = context
        elif after:
            out.write(_encode_event("context", path, number, line))
            after -= 1
        else:
            before.append((number, line))


def _encode_event(kind: str, path: str, number: int, line: bytes, start: int | None = None) -> bytes:
    data: dict[str, Any] = {"path": _encode_text(os.fsencode(path)), "lines": _encode_text(line), "line_number": number}
    data["submatches"] = [] if start is None else [{"start": start}]
    return msgspec.json.encode({"type": kind, "data": data}) + b"\n"


def _encode_text(content: bytes) -> dict[str, str]:
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(content).decode()}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
