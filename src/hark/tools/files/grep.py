"""Searches files like ripgrep, with the same output format. Runs as a separate program, so that it can be killed."""

import contextlib
import io
import os
import re
import sys
import warnings
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO

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
        with contextlib.suppress(OSError):
            sys.stdout.buffer.writelines(_search_file(path, pattern, query))
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


def _search_file(path: str, pattern: re.Pattern[str], query: GrepQuery) -> Iterator[bytes]:
    """Yield the lines to print."""
    name = os.fsencode(path)
    if query.shows == "names":
        yield name + b"\n"
        return
    with Path(path).open("rb") as file:
        lines = _read_lines(file)
        if query.shows == "lines":
            yield from (b"%b\0%b\n" % (name, line) for line in _format_lines(lines, pattern, query.context))
            return
        matches = filter(None, (_match_column(line, pattern) for line in lines))
        if count := sum(1 for _ in islice(matches, 1 if query.shows == "files" else None)):
            yield b"%b\0%d\n" % (name, count)


def _read_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield a text file's lines as UTF-8 bytes. Yields nothing for a binary file, and stops at the first NUL byte."""
    head = file.read(HEAD_BYTES)
    file.seek(0)
    encoding = detect_encoding(head)
    if encoding.codec.startswith("utf-16"):
        file = io.BytesIO(decode_text(file.read(MAX_UTF16_BYTES)).text.encode(errors="replace"))
    elif b"\0" in head:
        return
    else:
        file.seek(len(encoding.mark))
    for line in file:
        if b"\0" in line:
            return
        yield line.removesuffix(b"\n").removesuffix(b"\r")


def _match_column(line: bytes, pattern: re.Pattern[str]) -> int:
    """Return the position of the first match in bytes, counted from 1, or 0 if there is no match."""
    text = line.decode(errors="surrogateescape")
    match = pattern.search(text)
    return 0 if match is None else len(text[: match.start()].encode(errors="surrogateescape")) + 1


def _format_lines(lines: Iterator[bytes], pattern: re.Pattern[str], context: int) -> Iterator[bytes]:
    before: deque[bytes] = deque(maxlen=context)
    after = 0
    for number, line in enumerate(lines, 1):
        if column := _match_column(line, pattern):
            yield from before
            yield b"%d\0%d\0%b" % (number, column, line)
            before.clear()
            after = context
        elif after:
            yield b"%d-%b" % (number, line)
            after -= 1
        elif context:
            before.append(b"%d-%b" % (number, line))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
