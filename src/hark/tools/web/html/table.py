"""Converts HTML tables to Markdown. Tables used only for page layout are flattened."""

from msgspec import Struct

from hark.tools.web.html.blocks import MarkdownBlocks

MAX_COLUMNS = 100


class _Table(Struct):
    row: list[str] = []
    rows: int = 0
    is_layout: bool = False


class TableWriter:
    """Handles the tags of tables. Its methods return whether they handled the tag."""

    def __init__(self, blocks: MarkdownBlocks) -> None:
        self._blocks = blocks
        self._open: list[_Table] = []
        self._is_in_cell = False

    def open_tag(self, name: str) -> bool:
        """Handle an opening tag. Inside a cell, a tag that would begin a block adds only a space."""
        if name == "table":
            self._open_table()
        elif not self._open or self._open[-1].is_layout:
            return False
        elif name in ("td", "th"):
            self._end_cell()
            self._is_in_cell = True
        elif name == "tr":
            self._end_row()
        else:
            return self._is_in_cell and self._flatten_tag(name)
        return True

    def close_tag(self, name: str) -> bool:
        """Handle a closing tag."""
        if not self._open:
            return False
        if name == "table":
            self._end_row()
            self._open.pop()
            self._is_in_cell = False
            self._blocks.begin_block()
        elif self._open[-1].is_layout:
            return False
        elif name in ("td", "th"):
            self._end_cell()
        elif name in ("tr", "thead", "tbody", "tfoot"):
            self._end_row()
        else:
            return self._is_in_cell and self._flatten_tag(name)
        return True

    def close_all(self) -> None:
        """Close all open tables at the end of the page."""
        while self._open:
            self.close_tag("table")

    def _open_table(self) -> None:
        if self._open and not self._open[-1].is_layout:
            outer = self._open[-1]
            self._end_cell()
            outer.is_layout = True  # it contains a table, so it is only for layout
            for cell in outer.row:
                self._blocks.add(cell)
                self._blocks.begin_block()
            outer.row = []
        self._blocks.end_block()
        self._open.append(_Table())
        self._is_in_cell = False

    def _flatten_tag(self, name: str) -> bool:
        if name in ("a", "img", "code", "title", "base"):
            return False
        if name in ("p", "div", "br", "li", "ul", "ol", "pre", "dd", "dt", "blockquote", "hr") or name[:1] == "h":
            self._blocks.add(" ")
        return True

    def _end_cell(self) -> None:
        if self._is_in_cell and len(self._open[-1].row) < MAX_COLUMNS:
            self._open[-1].row.append(self._blocks.take_cell())
        self._is_in_cell = False

    def _end_row(self) -> None:
        table = self._open[-1]
        self._end_cell()
        if any(table.row):
            if not table.rows:
                self._blocks.begin_group()
            self._blocks.add_row(f"| {' | '.join(table.row)} |")
            if not table.rows:
                self._blocks.add_row(f"|{'---|' * len(table.row)}")
            table.rows += 1
        table.row = []
