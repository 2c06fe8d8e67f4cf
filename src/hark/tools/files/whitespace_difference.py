"""Describes how a text differs from a file if only whitespace or invisible characters differ."""

import re
import unicodedata

from msgspec import Struct

from hark.tools.files.diffs import common_prefix_length
from hark.tools.files.file_text import displayable

MAX_LINE_CHARACTERS = 200
_UNUSUAL = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\xa0\xad\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u2064\u3000\ufeff"
_UNUSUAL_CHARACTER = re.compile(f"[{_UNUSUAL}]")
_VISIBLE = re.compile(rf"[^\s{_UNUSUAL}]+")
_NOT_IN_GAP = re.compile(rf"[^\s{_UNUSUAL}]|\n")
_WHITESPACE_MARKS = str.maketrans({" ": "·", "\t": "→", "\r": "␍", "\n": "⏎"})


class _Gap(Struct, frozen=True):
    """A run of whitespace in one line of a text, with the characters before and after it."""

    before: str
    content: str
    after: str

    @classmethod
    def around(cls, text: str, at: int) -> "_Gap":
        """Return the whitespace around an offset of the text."""
        start, end = at - _whitespace_length(text[:at][::-1]), at + _whitespace_length(text[at:])
        return cls(text[:start][-1:], text[start:end], text[end : end + 1])


def explain_whitespace(text: str, wanted: str, *, are_whole_lines: bool = False) -> str | None:
    """Explain the first difference if only whitespace or invisible characters differ. Otherwise return None.

    With `are_whole_lines`, the wanted text must match complete lines.
    """
    if are_whole_lines:
        text, wanted = f"\n{text}\n", f"\n{wanted}\n"
    found = _first_difference(text, wanted)
    if found is None:
        return None
    at, your_at = found
    number = text.count("\n", 0, at) + (not are_whole_lines)
    difference = _describe(_Gap.around(text, at), _Gap.around(wanted, your_at))
    return (
        f"At line {number} only whitespace differs ({difference}).\n"
        f"Yours:       {_show_line(wanted, your_at)}\nIn the file: {_show_line(text, at)}\n"
        "Repeat it exactly as in the file (→ is a tab, · is a space, ␍ is a carriage return, ⏎ is a line break)."
    )


def show_invisible(text: str) -> str:
    """Return a text with unusual whitespace and invisible characters as <U+NNNN>, and invalid bytes as \\xNN."""
    return _UNUSUAL_CHARACTER.sub(lambda found: f"<U+{ord(found[0]):04X}>", displayable(text))


def _first_difference(text: str, wanted: str) -> tuple[int, int] | None:
    """Return the offsets in both texts where they first differ. None if visible characters differ."""
    visible = "".join(_VISIBLE.findall(wanted))
    start = "".join(_VISIBLE.findall(text)).find(visible)
    first = _VISIBLE.search(wanted)
    if start < 0 or first is None:
        return None
    at, your_at = _nth_visible(text, start), first.start()
    before = common_prefix_length(text[:at][::-1], wanted[:your_at][::-1])
    if before < your_at:
        return at - before, your_at - before
    after = common_prefix_length(text[at:], wanted[your_at:])
    return (at + after, your_at + after) if your_at + after < len(wanted) else None


def _nth_visible(text: str, count: int) -> int:
    """Return the offset of a visible character after `count` other visible characters."""
    for found in _VISIBLE.finditer(text):
        if count < len(found[0]):
            return found.start() + count
        count -= len(found[0])
    return len(text)


def _whitespace_length(text: str) -> int:
    found = _NOT_IN_GAP.search(text)
    return found.start() if found else len(text)


def _show_line(text: str, at: int) -> str:
    """Return the part of the line around an offset, with visible whitespace."""
    first = max(text.rfind("\n", 0, at) + 1, at - MAX_LINE_CHARACTERS // 2)
    last = text.find("\n", at) + 1 or len(text)
    return show_invisible(text[first : min(last, first + MAX_LINE_CHARACTERS)].translate(_WHITESPACE_MARKS))


def _describe(here: _Gap, yours: _Gap) -> str:
    for owner, gap, other in (("the file", here, yours), ("your text", yours, here)):
        for character in gap.content:
            if _UNUSUAL_CHARACTER.match(character) and character not in other.content:
                return f"{owner} has U+{ord(character):04X}, {unicodedata.name(character, 'a control character')}"
    if yours.after == "\n" and not here.after:
        return "the file has no newline at its end"
    ends_both = here.after in ("", "\n") and yours.after in ("", "\n")
    if yours.after == "\n" and not ends_both:
        return "your line ends, but the file's line continues"
    if yours.before == "\n" and here.before not in ("", "\n"):
        return "your line begins, but the file's line has text before it"
    if here.after == "\n" and not ends_both:
        return "a line break"
    if ends_both and yours.content.rstrip("\r") == here.content.rstrip("\r"):
        return "a carriage return at the end of the line"
    if ends_both and here.after:
        return "at the end of the line"
    if ("\t" in here.content) != ("\t" in yours.content):
        return "tabs versus spaces"
    return "the indentation" if here.before in ("", "\n") else "spaces inside the line"
