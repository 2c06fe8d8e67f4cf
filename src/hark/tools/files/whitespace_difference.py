"""Describes how a text differs from a file if only whitespace or invisible characters differ."""

import re
import unicodedata

from msgspec import Struct

from hark.tools.files.file_text import displayable

MAX_LINE_CHARACTERS = 200
_UNUSUAL = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\xa0\xad\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u2064\u3000\ufeff"
_UNUSUAL_CHARACTER = re.compile(f"[{_UNUSUAL}]")
_VISIBLE = re.compile(rf"[^\s{_UNUSUAL}]+")
_IN_LINE = re.compile(rf"[^\S\n]|[{_UNUSUAL}]")
_WHITESPACE_MARKS = str.maketrans({" ": "·", "\t": "→", "\r": "␍", "\n": "⏎"})


class _Gap(Struct, frozen=True):
    """The whitespace around a position in one line of a text, with the characters before and after it."""

    text: str
    at: int
    start: int
    end: int

    @classmethod
    def around(cls, text: str, at: int) -> "_Gap":
        start = end = at
        while start and _IN_LINE.match(text, start - 1):
            start -= 1
        while _IN_LINE.match(text, end):
            end += 1
        return cls(text, at, start, end)

    @property
    def content(self) -> str:
        return self.text[self.start : self.end]

    @property
    def before(self) -> str:
        return self.text[max(0, self.start - 1) : self.start]

    @property
    def after(self) -> str:
        return self.text[self.end : self.end + 1]

    def show_line(self) -> str:
        """Return the part of the line around the position, with visible whitespace."""
        first = self.text.rfind("\n", 0, self.at) + 1
        last = self.text.find("\n", self.at) + 1 or len(self.text)
        first = max(first, self.at - MAX_LINE_CHARACTERS // 2)
        return show_invisible(self.text[first : min(last, first + MAX_LINE_CHARACTERS)].translate(_WHITESPACE_MARKS))


def explain_whitespace(text: str, wanted: str, *, are_whole_lines: bool = False) -> str | None:
    """Explain the first difference if only whitespace or invisible characters differ. Otherwise return None.

    With `are_whole_lines`, the wanted text must match complete lines.
    """
    if are_whole_lines:
        text, wanted = f"\n{text}\n", f"\n{wanted}\n"
    found = _first_difference(text, wanted)
    if found is None:
        return None
    here, yours = _Gap.around(text, found[0]), _Gap.around(wanted, found[1])
    number = text.count("\n", 0, found[0]) + (not are_whole_lines)
    return (
        f"At line {number} only whitespace differs ({_describe(here, yours)}).\n"
        f"Yours:       {yours.show_line()}\nIn the file: {here.show_line()}\n"
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
    at = _nth_visible(text, start)
    for back in range(1, first.start() + 1):  # the whitespace before the first visible character
        if text[max(0, at - back) : at - back + 1] != wanted[first.start() - back]:
            return at - back + 1, first.start() - back + 1
    for offset in range(first.start(), len(wanted)):
        here = at + offset - first.start()
        if text[here : here + 1] != wanted[offset]:
            return here, offset
    return None


def _nth_visible(text: str, count: int) -> int:
    """Return the offset of a visible character after `count` other visible characters."""
    for found in _VISIBLE.finditer(text):
        if count < len(found[0]):
            return found.start() + count
        count -= len(found[0])
    return len(text)


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
