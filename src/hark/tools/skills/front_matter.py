"""Front matter: the few lines of YAML before a document, read as far as skills need them."""

import json
import re

_KEY = re.compile(r"([A-Za-z0-9_][\w.-]*)\s*:(?:\s+(.*)|\s*)$")
_BLOCK = re.compile(r"([|>])([+-]?\d?|\d[+-])\s*(#.*)?$")
_COMMENT = re.compile(r"(^|\s)#.*$")


class BadFrontMatter(ValueError):
    """It can't be read; the text says why."""


def split_document(text: str) -> tuple[dict[str, str], str]:
    """Return the fields and the body of a document. A field that is no text (a list, a table) is left as written.

    Raises:
        BadFrontMatter: There is none, or it is broken.
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != "---":
        raise BadFrontMatter("it must begin with a line --- and the fields name and description")
    ends = [number for number, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")]
    if not ends:
        raise BadFrontMatter("the fields at its beginning have no closing line ---")
    return _fields(lines[1 : ends[0]]), "\n".join(lines[ends[0] + 1 :]).strip("\n")


def _fields(lines: list[str]) -> dict[str, str]:
    fields: dict[str, str] = {}
    place = 0
    while place < len(lines):
        line = lines[place]
        number, place = place + 2, place + 1
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _KEY.match(line)
        if not found:
            raise BadFrontMatter(f"line {number} is not of the form `name: value`: {line.strip()[:60]!r}")
        name, first = found.group(1), (found.group(2) or "").strip()
        if name in fields:
            raise BadFrontMatter(f"line {number} gives {name} a second time")
        start = place
        while place < len(lines) and (not lines[place].strip() or lines[place][0] in " \t" or _is_entry(lines[place])):
            place += 1
        fields[name] = _value(first, lines[start:place], number)
    return fields


def _is_entry(line: str) -> bool:
    return line == "-" or line.startswith("- ")


def _value(first: str, rest: list[str], number: int) -> str:
    if block := _BLOCK.match(first):
        return _block(rest, is_folded=block.group(1) == ">", keeps_end="+" in block.group(2))
    if first[:1] in ("'", '"'):
        return _quoted(" ".join([first, *(line.strip() for line in rest)]).strip(), number)
    lines = [first, *(line.strip() for line in rest)]
    return " ".join(word for line in lines if (word := _COMMENT.sub("", line).strip()))


def _quoted(text: str, number: int) -> str:
    quote = text[0]
    pattern = r"'((?:[^']|'')*)'" if quote == "'" else r'"((?:[^"\\]|\\.)*)"'
    found = re.match(pattern + r"\s*(#.*)?$", text)
    if not found:
        raise BadFrontMatter(f"line {number} has a quotation mark that is not closed")
    if quote == "'":
        return found.group(1).replace("''", "'")
    try:
        return json.loads(f'"{found.group(1)}"')
    except ValueError:
        return found.group(1)  # an escape that only YAML knows: better as written than not at all


def _block(lines: list[str], *, is_folded: bool, keeps_end: bool) -> str:
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    indent = min(indents, default=0)
    cut = [line[indent:].rstrip() for line in lines]
    text = "\n".join(cut)
    if is_folded:
        text = "\n".join(" ".join(part.split("\n")) for part in text.split("\n\n"))
    return text if keeps_end else text.strip()
