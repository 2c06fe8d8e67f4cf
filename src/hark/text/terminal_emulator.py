"""A terminal emulator: reduces output to the text that a user would see, in linear time and bounded memory."""

import re

from hark.text.character_width import character_width

ROWS = 50
COLUMNS = 200  # limits cursor movement, but not text
MAX_COLUMNS = 1_000
TAB_COLUMNS = 8
MAX_CELL_CHARACTERS = 8
MAX_PARAMETER = 9_999
_TOKEN = re.compile(
    r"(?P<text>[^\x00-\x08\x0b-\x1f\x7f-\x9f]+)"
    r"|(?:\x1b\[|\x9b)(?P<parameters>[0-?]{0,64})[ -/]{0,4}(?P<final>[@-~])"
    r"|\x1b(?P<string>[\]PX^_])"
    r"|\x1b[ -/]{0,4}(?P<escape>[0-OQ-WYZ\\`-~])"
    r"|(?P<partial>(?:(?:\x1b\[|\x9b)[0-?]{0,64}|\x1b)[ -/]{0,4}\Z)"
    r"|(?P<control>\r+|[\x00-\x1f\x7f-\x9f])"
)
_STRING_END = re.compile(r"\x07|\x9c|\x1b\\|(?=[\x1b\n])")  # a string never ends in some binary data, lines do
_ALTERNATE_SCREEN = frozenset({"?47", "?1047", "?1049"})
_MOVES = {"A": (-1, 0), "B": (1, 0), "C": (0, 1), "D": (0, -1), "E": (1, 0), "F": (-1, 0)}  # rows and columns
_ESCAPES = {"7": "s", "8": "u", "M": "A"}  # short forms of control sequences

# A row has one cell per column. A wide character or a tab is followed by empty cells, a combining one shares a cell.
_Row = list[str]


class TerminalEmulator:
    """An emulated terminal: its last rows, without a width limit. Rows above them are final.

    Supports carriage return, backspace, cursor movement, erasing and the alternate screen. Ignores colours and titles.
    """

    def __init__(self) -> None:
        self._rows: list[_Row] = [[]]
        self._row = 0
        self._column = 0
        self._saved_cursor = (0, 0)
        self._primary: tuple[list[_Row], int, int] | None = None  # while a program uses the alternate screen
        self._final: list[str] = []
        self._partial = ""  # the start of an escape sequence whose rest has not arrived
        self._is_in_string = False  # inside a title, link or image

    @property
    def text(self) -> str:
        """The text of the rows that may still change."""
        rows = _join_rows(self._rows, self._row)
        return rows if self._primary is None else f"{_join_rows(*self._primary[:2])}{rows}"

    def feed(self, text: str) -> str:
        """Process output, which may end inside an escape sequence. Return the text that is final now."""
        text = self._partial + text
        self._partial = ""
        at = 0
        while at < len(text):
            if self._is_in_string:
                end = _STRING_END.search(text, at)
                if end is None:
                    break
                self._is_in_string = False
                at = end.end()
            elif token := _TOKEN.match(text, at):
                at = token.end()
                self._process(token)
        final = "".join(self._final)
        self._final.clear()
        return final

    def flush(self) -> str:
        """Return the text of the rows that may still change, and clear them."""
        text = self.text
        self._rows, self._row, self._column = [[]], 0, 0
        if self._primary is not None:
            self._primary = ([[]], 0, 0)
        return text

    def _process(self, token: re.Match[str]) -> None:
        match token.lastgroup:
            case "text":
                self._write_lines(token[0].split("\n"))
            case "final":
                self._process_sequence(token["parameters"], token["final"])
            case "escape" if token["escape"] == "c":
                self._rows, self._row, self._column = [[]], 0, 0
            case "escape":
                self._process_sequence("", _ESCAPES.get(token["escape"], ""))
            case "string":
                self._is_in_string = True
            case "partial":
                self._partial = token[0]
            case _ if token[0][0] == "\r":
                self._column = 0
                while (row := self._rows[self._row]) and row[-1] == " ":
                    row.pop()
            case _:
                self._column -= token[0] == "\b" and self._column > 0

    def _process_sequence(self, parameters: str, final: str) -> None:
        given = [min(int(one), MAX_PARAMETER) if one.isdecimal() else 0 for one in parameters.split(";")]
        count = max(1, given[0])
        row, column = self._row, self._column
        match final:
            case "A" | "B" | "C" | "D" | "E" | "F":
                rows, columns = _MOVES[final]
                self._move_to(row + rows * count, 0 if final in "EF" else column + columns * count)
            case "G" | "d":
                self._move_to(*(row, count - 1) if final == "G" else (count - 1, column))
            case "H" | "f":
                self._move_to(count - 1, given[1] - 1 if len(given) > 1 else 0)
            case "J":
                self._erase_rows(given[0])
            case "K":
                self._erase_cells(given[0])
            case "P":
                self._replace_cells(column, column + count, [])
            case "s":
                self._saved_cursor = (row, column)
            case "u":
                self._move_to(*self._saved_cursor)
            case "h" | "l" if parameters in _ALTERNATE_SCREEN:
                self._switch_screen(is_alternate=final == "h")
            case _:
                pass

    def _write_lines(self, lines: list[str]) -> None:
        if len(lines) > 3 * ROWS:  # most of the lines scroll out of the screen at once
            self._write_lines([*lines[:ROWS], ""])
            self._add_final(self.flush() + "\n".join(lines[ROWS:-ROWS]) + "\n")
            lines = lines[-ROWS:]
        for number, line in enumerate(lines):
            if number:
                self._start_line()
            if line:
                self._write(line)

    def _write(self, text: str) -> None:
        row = self._rows[self._row]
        row.extend(" " * (self._column - len(row)))
        if self._column and (combining := _combining_length(text)):  # they arrived after their base character
            row[self._column - 1] = (row[self._column - 1] + text[:combining])[:MAX_CELL_CHARACTERS]
            text = text[combining:]
        cells = _make_cells(text, self._column)
        self._replace_cells(self._column, self._column + len(cells), cells)
        self._column += len(cells)
        if len(row) > MAX_COLUMNS:  # too long for a progress bar, so its start is final
            end = (len(row) - 1) // MAX_COLUMNS * MAX_COLUMNS
            self._add_final(_join_rows([*self._rows[: self._row], row[:end]], self._row))
            self._rows[: self._row + 1] = [row[end:]]
            self._row, self._column = 0, self._column - end

    def _replace_cells(self, start: int, end: int, cells: list[str]) -> None:
        row = self._rows[self._row]
        for edge in (start, end):  # half of a wide character or tab becomes blank
            first = last = edge
            while 0 < first < len(row) and not row[first]:
                first -= 1
            while last < len(row) and not row[last]:
                last += 1
            if last > edge:
                row[first:last] = " " * (last - first)
        row[start:end] = cells

    def _start_line(self) -> None:
        self._row += 1
        self._column = 0
        if self._row == len(self._rows):
            self._rows.append([])
        if self._row == ROWS:
            self._row -= 1
            self._add_final("".join(self._rows.pop(0)) + "\n")

    def _add_final(self, text: str) -> None:
        if self._primary is None:
            self._final.append(text)

    def _move_to(self, row: int, column: int) -> None:
        self._row = min(max(0, row), ROWS - 1)
        self._rows.extend([] for _ in range(self._row + 1 - len(self._rows)))
        self._column = min(max(0, column), max(COLUMNS - 1, len(self._rows[self._row])))

    def _erase_rows(self, part: int) -> None:
        if part in (0, 2, 3):
            del self._rows[self._row + 1 :]
        if part:
            self._rows[: self._row] = [[] for _ in range(self._row)]
        self._erase_cells(min(part, 2))

    def _erase_cells(self, part: int) -> None:
        row = self._rows[self._row]
        start, end = (self._column if part == 0 else 0), (self._column + 1 if part == 1 else len(row))
        self._replace_cells(start, end, [" "] * min(end, len(row)) if part == 1 else [])

    def _switch_screen(self, *, is_alternate: bool) -> None:
        if is_alternate and self._primary is None:
            self._primary = (self._rows, self._row, self._column)
            self._rows, self._row, self._column = [[]], 0, 0
        elif not is_alternate and self._primary is not None:
            self._rows, self._row, self._column = self._primary
            self._primary = None


def resolve_terminal_text(text: str) -> str:
    """Return the text that a terminal would show for this output."""
    screen = TerminalEmulator()
    return screen.feed(text) + screen.flush()


def _join_rows(rows: list[_Row], cursor_row: int) -> str:
    """Return the text of the rows, without empty rows below the cursor."""
    end = len(rows)
    while end > cursor_row + 1 and not rows[end - 1]:
        end -= 1
    return "\n".join("".join(row) for row in rows[:end])


def _combining_length(text: str) -> int:
    """Return the number of combining characters at the start of a text."""
    is_base = (character == "\t" or character_width(character) > 0 for character in text)
    return next((at for at, found in enumerate(is_base) if found), len(text))


def _make_cells(text: str, column: int) -> list[str]:
    if text.isascii() and "\t" not in text:
        return list(text)
    cells: list[str] = []
    for character in text:
        width = character_width(character)
        if character == "\t":
            width = TAB_COLUMNS - (column + len(cells)) % TAB_COLUMNS
        if width:
            cells += [character, *[""] * (width - 1)]
        elif not cells:
            cells.append(character)
        elif len(cells[-1]) < MAX_CELL_CHARACTERS:
            cells[-1] += character
    return cells
