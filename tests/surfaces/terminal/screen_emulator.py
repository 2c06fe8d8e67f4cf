"""A small terminal: bytes in, the screen as a person would see it out."""

import re
import unicodedata

_PART = re.compile(
    rb"\x1b\[([0-9;:?<>=!$ ]*)([@-~])"  # CSI
    rb"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC
    rb"|\x1b[PX^_][^\x1b]*\x1b\\"  # DCS and their like
    rb"|\x1b[()][0-9A-B]|\x1b[=>78cDEHMNOZ]"
    rb"|[\x00-\x1a\x1c-\x1f\x7f]"
    rb"|[^\x00-\x1f\x7f]+",
    re.DOTALL,
)


class Screen:
    """Rows of cells, a cursor, and the modes that are switched on. What it does not know is in `unknown`."""

    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        self.columns, self.rows = columns, rows
        self.modes: set[str] = set()
        self.unknown: list[bytes] = []
        self.rang = 0
        self._cells = self._empty()
        self._usual: list[list[str]] = []
        self._row = self._column = 0
        self._kept = self._kept_usual = (0, 0)
        self._rest = b""

    @property
    def lines(self) -> list[str]:
        """The rows, without the blanks behind their last letter."""
        return ["".join(row).rstrip() for row in self._cells]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def is_other(self) -> bool:
        """True while an app has the screen that is not the shell's."""
        return "?1049" in self.modes

    def resize(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self._cells = self._empty()
        self._row = self._column = 0

    def feed(self, data: bytes) -> None:
        """Take what a program wrote."""
        data = self._rest + data
        place = 0
        while place < len(data):
            match = _PART.match(data, place)
            if match is None or (match.end() == len(data) and _is_open(match[0])):
                if len(data) - place < 64 or match is not None:
                    break
                self.unknown.append(data[place : place + 8])
                place += 1
                continue
            self._take(match)
            place = match.end()
        self._rest = data[place:]

    def _take(self, match: "re.Match[bytes]") -> None:
        whole = match[0]
        if match[2]:
            self._control(match[1].decode(), match[2].decode())
        elif whole[0] == 0x1B:
            self._escape(whole)
        elif whole[0] < 0x20 or whole[0] == 0x7F:
            self._plain(whole)
        else:
            for character in whole.decode("utf-8", "replace"):
                self._put(character)

    def _escape(self, whole: bytes) -> None:
        match whole:
            case b"\x1b7":
                self._kept = self._row, self._column
            case b"\x1b8":
                self._row, self._column = self._kept
            case _:
                self.unknown.append(whole)

    def _plain(self, character: bytes) -> None:
        match character:
            case b"\r":
                self._column = 0
            case b"\n":
                self._next_row()
            case b"\b":
                self._column = max(0, self._column - 1)
            case b"\a":
                self.rang += 1
            case _:
                self.unknown.append(character)

    def _control(self, words: str, final: str) -> None:
        numbers = [int(word) if word.isdigit() else 0 for word in words.strip("?<>=!$ ").split(";")]
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
                self._erase_below() if first == 0 else self._clear()
            case "K":
                self._cells[self._row][self._column :] = [" "] * (self.columns - self._column)
            case "h":
                self._switch([f"?{number}" for number in numbers] if words.startswith("?") else [words])
            case "l":
                self.modes -= {f"?{number}" for number in numbers} if words.startswith("?") else {words}
                if words == "?1049" and self._usual:
                    self._cells, self._usual = self._usual, []
                    self._row, self._column = self._kept_usual
            case "m" | "u" | "p" | "n" | "c":
                pass
            case _:
                self.unknown.append(f"CSI {words} {final}".encode())

    def _switch(self, modes: list[str]) -> None:
        if "?1049" in modes and not self.is_other:
            self._usual, self._cells = self._cells, self._empty()
            self._kept_usual = self._row, self._column
        self.modes |= set(modes)

    def _erase_below(self) -> None:
        self._cells[self._row][self._column :] = [" "] * (self.columns - self._column)
        for row in range(self._row + 1, self.rows):
            self._cells[row] = [" "] * self.columns

    def _clear(self) -> None:
        self._cells = self._empty()

    def _put(self, character: str) -> None:
        wide = 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if unicodedata.combining(character):
            return
        if self._column >= self.columns:
            if self.is_other:
                return
            self._column = 0
            self._next_row()
        row = self._cells[self._row]
        row[self._column] = character
        if wide == 2 and self._column + 1 < self.columns:
            row[self._column + 1] = ""
        self._column = min(self._column + wide, self.columns)

    def _next_row(self) -> None:
        if self._row == self.rows - 1:
            self._cells = [*self._cells[1:], [" "] * self.columns]
        self._row = min(self._row + 1, self.rows - 1)

    def _empty(self) -> list[list[str]]:
        return [[" "] * self.columns for _ in range(self.rows)]


def _is_open(part: bytes) -> bool:
    """Tell whether a last run of letters may end inside of one."""
    return part[-1] >= 0xC0 or (part[-1] >= 0x80 and _is_cut(part))


def _is_cut(part: bytes) -> bool:
    try:
        part.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return False
