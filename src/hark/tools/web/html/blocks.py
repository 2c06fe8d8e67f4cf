"""Collects the blocks of a Markdown document: paragraphs, headings, lists, quotations and code."""

import re

MAX_DEPTH = 6
MIN_MAIN_CHARACTERS = 200

_LINE_SPACES = re.compile(r" *\n *")
_SPACES = re.compile(r" {2,}")
_LOOSE = 0  # no group; blocks of the same group are joined without a blank line


class MarkdownBlocks:
    """Collects the pieces of the current block, and stores finished blocks as text."""

    def __init__(self) -> None:
        self._done: list[tuple[int, str]] = []  # the group and the text of each block
        self._pieces: list[str] = []
        self._prefix = ""
        self._group = _LOOSE
        self._groups = 0
        self._lists: list[int] = []  # the next number of each open list, -1 for a bulleted one
        self._quotes = 0
        self._language = ""
        self._link_start: int | None = None
        self._main_start: int | None = None
        self._main_end: int | None = None
        self.is_preformatted = False

    def add(self, text: str) -> None:
        """Add text to the current block."""
        if text:
            self._pieces.append(text)

    def begin_block(self, prefix: str = "") -> None:
        """Begin a new block. An empty list item stays the current block, so that its text stays next to its bullet."""
        if self.is_preformatted or (not prefix and self._group and not "".join(self._pieces).strip()):
            return
        self.end_block()
        self._prefix = prefix

    def end_block(self) -> None:
        """End the current block. An empty block is dropped."""
        text = self._take_text()
        indent = "  " * (min(len(self._lists), MAX_DEPTH) - 1) if self._lists else ""
        if text:
            lead = indent + self._prefix
            if self._lists and not self._group:
                lead = indent + "  " + self._prefix  # a further paragraph of a list item
            self._add_block(lead + text.replace("\n", "\n" + " " * len(indent)), self._group)
        self._prefix, self._group = "", _LOOSE

    def begin_group(self) -> None:
        """End the current block and begin a group, whose rows and items are joined without blank lines."""
        self.end_block()
        self._groups += 1

    def add_row(self, text: str) -> None:
        """Add a finished line directly below the previous one."""
        self._add_block(text, self._groups)

    def add_rule(self) -> None:
        """Add a horizontal rule."""
        if not self.is_preformatted:
            self.end_block()
            self._add_block("---", _LOOSE)

    def open_list(self, *, is_numbered: bool) -> None:
        """Begin a list, possibly inside an item of another list."""
        if self._lists:
            self.end_block()
        else:
            self.begin_group()
        self._lists.append(1 if is_numbered else -1)

    def close_list(self) -> None:
        """End the innermost list."""
        self.end_block()
        if self._lists:
            self._lists.pop()

    def begin_item(self) -> None:
        """Begin an item of the innermost list."""
        self.end_block()
        number = self._lists[-1] if self._lists else -1
        self._prefix = "- " if number < 0 else f"{number}. "
        self._group = self._groups
        if number >= 0:
            self._lists[-1] += 1

    def open_quote(self) -> None:
        """Begin a quotation."""
        self.end_block()
        self._quotes += 1

    def close_quote(self) -> None:
        """End a quotation."""
        self.end_block()
        self._quotes = max(0, self._quotes - 1)

    def open_pre(self, language: str) -> None:
        """Begin preformatted text. A second call sets the language if the first call had none."""
        if self.is_preformatted:
            self._language = self._language or language
            return
        self.end_block()
        self._language = language
        self.is_preformatted = True

    def close_pre(self) -> None:
        """End preformatted text."""
        if not self.is_preformatted:
            return
        text = "".join(self._pieces).strip("\n").rstrip()
        self._pieces.clear()
        self._link_start = None
        self.is_preformatted = False
        if text:
            fence = "````" if "```" in text else "```"
            self._add_block(f"{fence}{self._language}\n{text}\n{fence}", _LOOSE)

    def open_main(self) -> None:
        """Mark the start of the page's main content."""
        if self._main_start is None:
            self._main_start = len(self._done)

    def close_main(self) -> None:
        """Mark the end of the page's main content."""
        self._main_end = len(self._done)

    def start_link(self) -> None:
        """Record the current position as the start of a link."""
        self._link_start = len(self._pieces)

    def end_link(self, url: str) -> None:
        """Turn the text since `start_link` into a link, if there is a URL and the text is not empty."""
        start, self._link_start = self._link_start, None
        if start is None or not url or self.is_preformatted:
            return
        text = " ".join("".join(self._pieces[start:]).split())
        if text:
            self._pieces[start:] = [f"[{text}]({url})"]

    def take_cell(self) -> str:
        """Remove the text of the current block and return it as one line, for a table cell."""
        return " ".join("".join(self._take_pieces()).split()).replace("|", "\\|")

    def text(self) -> str:
        """Return the main content if the page marks it and it is long enough, otherwise the whole text."""
        full_text = _join_blocks(self._done)
        if self._main_start is None:
            return full_text
        main = _join_blocks(self._done[self._main_start : self._main_end])
        return main if len(main) >= MIN_MAIN_CHARACTERS else full_text

    def _take_text(self) -> str:
        if self.is_preformatted:
            self.close_pre()
        text = "".join(self._take_pieces())
        return _SPACES.sub(" ", _LINE_SPACES.sub("\n", text)).strip()

    def _take_pieces(self) -> list[str]:
        pieces, self._pieces = self._pieces, []
        if self._link_start is not None:
            self._link_start = 0  # an open link continues in the next block
        return pieces

    def _add_block(self, text: str, group: int) -> None:
        if self._quotes:
            lead = "> " * min(self._quotes, MAX_DEPTH)
            text = lead + text.replace("\n", "\n" + lead)
        self._done.append((group, text))


def _join_blocks(blocks: list[tuple[int, str]]) -> str:
    pieces: list[str] = []
    before = _LOOSE
    for group, text in blocks:
        if pieces:
            pieces.append("\n" if group and group == before else "\n\n")
        pieces.append(text)
        before = group
    return "".join(pieces)
