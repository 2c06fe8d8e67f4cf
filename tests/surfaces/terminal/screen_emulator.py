"""A small terminal emulator: converts a program's output to the visible screen."""

import re
import unicodedata

_SEQUENCE = re.compile(
    rb"\x1b\[([0-9;:?<>=!$ ]*)([@-~])"  # CSI
    rb"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC
    rb"|\x1b[PX^_][^\x1b]*\x1b\\"  # DCS and similar sequences
    rb"|\x1b[()][0-9A-B]|\x1b[=>78cDEHMNOZ]"
    rb"|[\x00-\x1a\x1c-\x1f\x7f]"
    rb"|[^\x00-\x1f\x7f]+",
    re.DOTALL,
)


class ScreenEmulator:
    """A terminal screen: cells, a cursor and the enabled modes. Unsupported sequences are collected in `unknown`."""

    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        self.columns, self.rows = columns, rows
        self.modes: set[str] = set()
        self.unknown: list[bytes] = []
        self.bell_count = 0
        self._cells = self._empty_cells()
        self._main_cells: list[list[str]] = []
        self._row = self._column = 0
        self._saved_cursor = self._main_cursor = (0, 0)
        self._unprocessed = b""

    @property
    def lines(self) -> list[str]:
        """The rows without trailing spaces."""
        return ["".join(row).rstrip() for row in self._cells]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def is_alternate_screen(self) -> bool:
        """True while a program uses the alternate screen."""
        return "?1049" in self.modes

    def resize(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self._cells = self._empty_cells()
        self._row = self._column = 0

    def feed(self, data: bytes) -> None:
        """Process a program's output."""
        data = self._unprocessed + data
        position = 0
        while position < len(data):
            match = _SEQUENCE.match(data, position)
            if match is None or (match.end() == len(data) and _may_be_incomplete(match[0])):
                if len(data) - position < 64 or match is not None:
                    break
                self.unknown.append(data[position : position + 8])
                position += 1
                continue
            self._process_sequence(match)
            position = match.end()
        self._unprocessed = data[position:]

    def _process_sequence(self, match: "re.Match[bytes]") -> None:
        sequence = match[0]
        if match[2]:
            self._process_csi(match[1].decode(), match[2].decode())
        elif sequence[0] == 0x1B:
            self._process_escape(sequence)
        elif sequence[0] < 0x20 or sequence[0] == 0x7F:
            self._process_control_character(sequence)
        else:
            for character in sequence.decode("utf-8", "replace"):
                self._put_character(character)

    def _process_escape(self, sequence: bytes) -> None:
        match sequence:
            case b"\x1b7":
                self._saved_cursor = self._row, self._column
            case b"\x1b8":
                self._row, self._column = self._saved_cursor
            case _:
                self.unknown.append(sequence)

    def _process_control_character(self, character: bytes) -> None:
        match character:
            case b"\r":
                self._column = 0
            case b"\n":
                self._move_to_next_row()
            case b"\b":
                self._column = max(0, self._column - 1)
            case b"\a":
                self.bell_count += 1
            case _:
                self.unknown.append(character)

    def _process_csi(self, parameters: str, final: str) -> None:
        numbers = [int(word) if word.isdigit() else 0 for word in parameters.strip("?<>=!$ ").split(";")]
        first = numbers[0]
        match final:
            case "H" | "f":
                self._row = max(0, min(first or 1, self.rows) - 1)
                self._column = max(0, min((numbers[1] if len(numbers) > 1 else 1) or 1, self.columns) - 1)
            case "A":
                self._row = max(0, self._row - (first or 1))
            case "B":
                self._row = min(self.rows - 1, self._row + (first or 1))
            case "C":
                self._column = min(self.columns - 1, self._column + (first or 1))
            case "D":
                self._column = max(0, self._column - (first or 1))
            case "J":
                self._erase_below() if first == 0 else self._clear_screen()
            case "K":
                self._cells[self._row][self._column :] = [" "] * (self.columns - self._column)
            case "h":
                self._enable_modes([f"?{number}" for number in numbers] if parameters.startswith("?") else [parameters])
            case "l":
                self.modes -= {f"?{number}" for number in numbers} if parameters.startswith("?") else {parameters}
                if parameters == "?1049" and self._main_cells:
                    self._cells, self._main_cells = self._main_cells, []
                    self._row, self._column = self._main_cursor
            case "m" | "u" | "p" | "n" | "c":
                pass
            case _:
                self.unknown.append(f"CSI {parameters} {final}".encode())

    def _enable_modes(self, modes: list[str]) -> None:
        if "?1049" in modes and not self.is_alternate_screen:
            self._main_cells, self._cells = self._cells, self._empty_cells()
            self._main_cursor = self._row, self._column
        self.modes |= set(modes)

    def _erase_below(self) -> None:
        self._cells[self._row][self._column :] = [" "] * (self.columns - self._column)
        for row in range(self._row + 1, self.rows):
            self._cells[row] = [" "] * self.columns

    def _clear_screen(self) -> None:
        self._cells = self._empty_cells()

    def _put_character(self, character: str) -> None:
        width = 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if unicodedata.combining(character):
            return
        if self._column >= self.columns:
            if self.is_alternate_screen:
                return
            self._column = 0
            self._move_to_next_row()
        row = self._cells[self._row]
        row[self._column] = character
        if width == 2 and self._column + 1 < self.columns:
            row[self._column + 1] = ""
        self._column = min(self._column + width, self.columns)

    def _move_to_next_row(self) -> None:
        if self._row == self.rows - 1:
            self._cells = [*self._cells[1:], [" "] * self.columns]
        self._row = min(self._row + 1, self.rows - 1)

    def _empty_cells(self) -> list[list[str]]:
        return [[" "] * self.columns for _ in range(self.rows)]


def _may_be_incomplete(part: bytes) -> bool:
    """Return whether the bytes may end inside a UTF-8 character."""
    return part[-1] >= 0xC0 or (part[-1] >= 0x80 and _ends_inside_character(part))


def _ends_inside_character(part: bytes) -> bool:
    try:
        part.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return False
