"""The blocks of a text in the making: paragraphs, headings, lists, quotes and code, one after the other."""

import re

MAX_DEPTH = 6
MIN_MAIN_CHARACTERS = 200

_LINE_SPACES = re.compile(r" *\n *")
_SPACES = re.compile(r" {2,}")
_LOOSE = 0  # any other number: blocks with the same one stand close together


class Blocks:
    """Collects pieces of the block that is being written; finished ones are kept as text."""

    def __init__(self) -> None:
        self._done: list[tuple[int, str]] = []  # the group that it stands close to, and the text
        self._pieces: list[str] = []
        self._prefix = ""
        self._group = _LOOSE
        self._groups = 0
        self._lists: list[int] = []  # the next number of each open list, -1 for one without
        self._quotes = 0
        self._language = ""
        self._mark: int | None = None
        self._main_start: int | None = None
        self._main_end: int | None = None
        self.is_preformatted = False

    def add(self, text: str) -> None:
        """Go on with the block."""
        if text:
            self._pieces.append(text)

    def begin(self, prefix: str = "") -> None:
        """End the block and begin one; an empty list item goes on instead, so that its text stays beside its mark."""
        if self.is_preformatted or (not prefix and self._group and not "".join(self._pieces).strip()):
            return
        self.end()
        self._prefix = prefix

    def end(self) -> None:
        """End the block; an empty one leaves nothing."""
        text = self._taken()
        indent = "  " * (min(len(self._lists), MAX_DEPTH) - 1) if self._lists else ""
        if text:
            lead = indent + self._prefix
            if self._lists and not self._group:
                lead = indent + "  " + self._prefix  # a further paragraph of an item
            self._keep(lead + text.replace("\n", "\n" + " " * len(indent)), self._group)
        self._prefix, self._group = "", _LOOSE

    def open_group(self) -> None:
        """End the block; what is kept as close together from here on stands apart from what was before."""
        self.end()
        self._groups += 1

    def row(self, text: str) -> None:
        """Put in a finished line that stands close to the one before."""
        self._keep(text, self._groups)

    def rule(self) -> None:
        """Put in a line across."""
        if not self.is_preformatted:
            self.end()
            self._keep("---", _LOOSE)

    def open_list(self, *, is_numbered: bool) -> None:
        """Begin a list, maybe inside an item of another."""
        if self._lists:
            self.end()
        else:
            self.open_group()
        self._lists.append(1 if is_numbered else -1)

    def close_list(self) -> None:
        """End the innermost list."""
        self.end()
        if self._lists:
            self._lists.pop()

    def item(self) -> None:
        """Begin an item of the innermost list."""
        self.end()
        number = self._lists[-1] if self._lists else -1
        self._prefix = "- " if number < 0 else f"{number}. "
        self._group = self._groups
        if number >= 0:
            self._lists[-1] += 1

    def open_quote(self) -> None:
        """Begin a quotation."""
        self.end()
        self._quotes += 1

    def close_quote(self) -> None:
        """End a quotation."""
        self.end()
        self._quotes = max(0, self._quotes - 1)

    def open_pre(self, language: str) -> None:
        """Begin text that stays as it is; its language may also be told later, before its first letter."""
        if self.is_preformatted:
            self._language = self._language or language
            return
        self.end()
        self._language = language
        self.is_preformatted = True

    def close_pre(self) -> None:
        """End text that stays as it is."""
        if not self.is_preformatted:
            return
        text = "".join(self._pieces).strip("\n").rstrip()
        self._pieces.clear()
        self._mark = None
        self.is_preformatted = False
        if text:
            fence = "````" if "```" in text else "```"
            self._keep(f"{fence}{self._language}\n{text}\n{fence}", _LOOSE)

    def open_main(self) -> None:
        """What follows is what the page is about."""
        if self._main_start is None:
            self._main_start = len(self._done)

    def close_main(self) -> None:
        """What follows is furniture again."""
        self._main_end = len(self._done)

    def mark(self) -> None:
        """Remember this place for `wrap_marked`."""
        self._mark = len(self._pieces)

    def wrap_marked(self, url: str) -> None:
        """Make what came since the mark a link, if it is one and has text."""
        start, self._mark = self._mark, None
        if start is None or not url or self.is_preformatted:
            return
        text = " ".join("".join(self._pieces[start:]).split())
        if text:
            self._pieces[start:] = [f"[{text}]({url})"]

    def taken_cell(self) -> str:
        """Return what was written as one line, for a table's cell."""
        return " ".join("".join(self._drained()).split()).replace("|", "\\|")

    def text(self) -> str:
        """Return all of it, or the main part when the page has said which that is."""
        whole = _joined(self._done)
        if self._main_start is None:
            return whole
        main = _joined(self._done[self._main_start : self._main_end])
        return main if len(main) >= MIN_MAIN_CHARACTERS else whole

    def _taken(self) -> str:
        if self.is_preformatted:
            self.close_pre()
        text = "".join(self._drained())
        return _SPACES.sub(" ", _LINE_SPACES.sub("\n", text)).strip()

    def _drained(self) -> list[str]:
        pieces, self._pieces = self._pieces, []
        if self._mark is not None:
            self._mark = 0  # a link goes on in the next block
        return pieces

    def _keep(self, text: str, group: int) -> None:
        if self._quotes:
            lead = "> " * min(self._quotes, MAX_DEPTH)
            text = lead + text.replace("\n", "\n" + lead)
        self._done.append((group, text))


def _joined(blocks: list[tuple[int, str]]) -> str:
    pieces: list[str] = []
    before = _LOOSE
    for group, text in blocks:
        if pieces:
            pieces.append("\n" if group and group == before else "\n\n")
        pieces.append(text)
        before = group
    return "".join(pieces)
