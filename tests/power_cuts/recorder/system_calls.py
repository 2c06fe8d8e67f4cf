"""Parses the output of strace into system calls."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_LINE = re.compile(r"(\d+) +(.*)", re.DOTALL)
_UNFINISHED = " <unfinished ...>"
_RESUMED = re.compile(r"<\.\.\. \w+ resumed>(.*)", re.DOTALL)
_CALL = re.compile(r"(\w+)\((.*)\) += (-?\d+|\?)(?:<([^>]*)>)?(.*)", re.DOTALL)
_DESCRIPTOR = re.compile(r"(AT_FDCWD|-?\d+)(?:<([^>]*)>)?(?:\(deleted\))?")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"(?:\.\.\.)?|[,\[\]{}()]|[^,"\[\]{}()]+')


@dataclass(frozen=True, slots=True)
class SystemCall:
    """A completed system call. `began` is the number of calls that had completed when this one began."""

    process: int
    name: str
    arguments: tuple[str, ...]
    result: int
    result_path: bytes
    began: int


def parse_calls(lines: Iterable[str]) -> Iterator[SystemCall]:
    """Yield the successful calls in the order of their completion."""
    unfinished: dict[str, tuple[str, int]] = {}
    count = 0
    for line in lines:
        match = _LINE.match(line.rstrip("\n"))
        if match is None:
            continue
        process, text, began = match[1], match[2], count
        if text.endswith(_UNFINISHED):
            unfinished[process] = text.removesuffix(_UNFINISHED), count
            continue
        if resumed := _RESUMED.match(text):
            if process not in unfinished:
                continue
            first, began = unfinished.pop(process)
            text = first + resumed[1]
        call = _CALL.match(text)
        if call is None or call[3] == "?" or int(call[3]) < 0:
            continue
        count += 1
        path = decode_text(call[4] or "")
        yield SystemCall(int(process), call[1], _split_arguments(call[2]), int(call[3]), path, began)


def descriptor_of(argument: str) -> tuple[int, bytes]:
    """Return the number and the path of a file descriptor. AT_FDCWD has the number -1."""
    match = _DESCRIPTOR.match(argument)
    if match is None:
        return -2, b""
    return -1 if match[1] == "AT_FDCWD" else int(match[1]), decode_text(match[2] or "")


def decode_text(text: str) -> bytes:
    """Return the bytes of a string or path in hexadecimal notation, without its quotes."""
    text = text.strip('"')
    if text.endswith("..."):
        raise ValueError("strace shortened a string")
    if "\\x" not in text:
        return text.encode()
    return bytes.fromhex(text.replace("\\x", ""))


def _split_arguments(text: str) -> tuple[str, ...]:
    """Split at the commas outside of strings and brackets."""
    arguments = [""]
    depth = 0
    for token in _TOKEN.findall(text):
        if token == "," and depth == 0:
            arguments.append("")
            continue
        depth += (token in ("[", "{", "(")) - (token in ("]", "}", ")"))
        arguments[-1] += token
    return tuple(argument.strip() for argument in arguments)
