"""Tables of a page: rows of cells in pipes; those that only arrange the page are taken apart."""

from msgspec import Struct

from hark.tools.web.html.blocks import Blocks

MAX_COLUMNS = 100


class _Table(Struct):
    row: list[str] = []
    rows: int = 0
    is_layout: bool = False


class Tables:
    """Takes what concerns tables, and tells whether it did."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._open: list[_Table] = []
        self._is_in_cell = False

    def open(self, name: str) -> bool:
        """Take an opening tag. Inside of a cell, what else would begin a block is only a space."""
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
            return self._is_in_cell and self._flatten(name)
        return True

    def close(self, name: str) -> bool:
        """Take a closing tag."""
        if not self._open:
            return False
        if name == "table":
            self._end_row()
            self._open.pop()
            self._is_in_cell = False
            self._blocks.begin()
        elif self._open[-1].is_layout:
            return False
        elif name in ("td", "th"):
            self._end_cell()
        elif name in ("tr", "thead", "tbody", "tfoot"):
            self._end_row()
        else:
            return self._is_in_cell and self._flatten(name)
        return True

    def close_all(self) -> None:
        """The page is over."""
        while self._open:
            self.close("table")

    def _open_table(self) -> None:
        if self._open and not self._open[-1].is_layout:
            outer = self._open[-1]
            self._end_cell()
            outer.is_layout = True  # a table within: this one only arranges
            for cell in outer.row:
                self._blocks.add(cell)
                self._blocks.begin()
            outer.row = []
        self._blocks.end()
        self._open.append(_Table())
        self._is_in_cell = False

    def _flatten(self, name: str) -> bool:
        if name in ("a", "img", "code", "title", "base"):
            return False
        if name in ("p", "div", "br", "li", "ul", "ol", "pre", "dd", "dt", "blockquote", "hr") or name[:1] == "h":
            self._blocks.add(" ")
        return True

    def _end_cell(self) -> None:
        if self._is_in_cell and len(self._open[-1].row) < MAX_COLUMNS:
            self._open[-1].row.append(self._blocks.taken_cell())
        self._is_in_cell = False

    def _end_row(self) -> None:
        table = self._open[-1]
        self._end_cell()
        if any(table.row):
            if not table.rows:
                self._blocks.open_group()
            self._blocks.row(f"| {' | '.join(table.row)} |")
            if not table.rows:
                self._blocks.row(f"|{'---|' * len(table.row)}")
            table.rows += 1
        table.row = []
