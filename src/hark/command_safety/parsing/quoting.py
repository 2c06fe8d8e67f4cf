"""Reading one word of a shell command: quotes, escapes, variables and substitutions."""

import re
from collections.abc import Callable

from hark.command_safety.parsing.words import (
    Arithmetic,
    LiteralText,
    Part,
    Script,
    ShellSyntaxError,
    Substitution,
    Variable,
    Word,
)

_PLAIN = re.compile(r"[^ \t\n;&|()<>\\'\"$`]+")
_PLAIN_IN_QUOTES = re.compile(r'[^"\\$`]+')
_PLAIN_IN_BRACES = re.compile(r"[^}\\'\"$`]+")
_PLAIN_IN_BRACKETS = re.compile(r"[^\]\\'\"$`]+")
_PLAIN_IN_ARITHMETIC = re.compile(r"[^()\\'\"$`]+")
_PLAIN_IN_DOCUMENT = re.compile(r"[^\\$`]+")
_NAME = re.compile(r"[A-Za-z_]\w*|\d|[@*#?$!_-]", re.ASCII)
_NAME_IN_BRACES = re.compile(r"[A-Za-z_]\w*|\d+|[@*#?$!_-]", re.ASCII)
_OPERATOR = re.compile(r":[-=+?]|[-=+?]|##?|%%?|//|/[#%]?|\^\^?|,,?|:|@")
_ANSI_ESCAPE = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|c(.)|(.))", re.DOTALL
)
_ANSI_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}


class Cursor:
    """A place in a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    @property
    def is_at_end(self) -> bool:
        """Nothing is left."""
        return self.at >= len(self.text)

    def peek(self) -> str:
        """Return the next character, "" at the end."""
        return self.text[self.at : self.at + 1]

    def sees(self, text: str) -> bool:
        """Tell whether the text goes on with this."""
        return self.text.startswith(text, self.at)

    def take(self, pattern: re.Pattern[str]) -> str:
        """Move behind what matches here, and return it."""
        match = pattern.match(self.text, self.at)
        if match is None:
            return ""
        self.at = match.end()
        return match.group()

    def take_until(self, mark: str) -> str:
        """Move behind the next `mark`, and return what is before it.

        Raises:
            ShellSyntaxError: There is none.
        """
        end = self.text.find(mark, self.at)
        if end < 0:
            raise ShellSyntaxError(f"a {mark} is missing")
        taken = self.text[self.at : end]
        self.at = end + len(mark)
        return taken


def unescape_ansi(text: str) -> str:
    r"""Return what `$'text'` stands for."""

    def replace(match: re.Match[str]) -> str:
        hexadecimal = match[1] or match[2] or match[3]
        if hexadecimal:
            code = int(hexadecimal, 16)
            return chr(code) if code <= 0x10FFFF else ""
        if match[4]:
            return chr(int(match[4], 8) & 0xFF)
        if match[5]:
            return chr(ord(match[5]) & 0x1F)
        return _ANSI_LETTERS.get(match[6], match[6] if match[6] in "\\'\"?" else "\\" + match[6])

    return _ANSI_ESCAPE.sub(replace, text)


class WordReader:
    """Reads words at a cursor. `read_script` reads a nested script from the cursor up to and with its `)`.

    `parse` reads a script of its own text, as backticks hold it.
    """

    def __init__(self, cursor: Cursor, read_script: Callable[[], Script], parse: Callable[[str], Script]) -> None:
        self._cursor = cursor
        self._read_script = read_script
        self._parse = parse
        # Reading twice what could be either must not be done without end.
        self._tries_left = 8

    def read_word(self, *, is_argument: bool = True) -> Word:
        """Read up to a blank or an operator. Empty when none begins here.

        Raises:
            ShellSyntaxError: A quote or a bracket isn't closed.
        """
        parts: list[Part] = []
        cursor = self._cursor
        while not cursor.is_at_end:
            plain = cursor.take(_PLAIN)
            if plain:
                parts.append(LiteralText(plain))
                continue
            if cursor.sees("(") and is_argument and _ends_like_extended_glob(parts):
                parts.append(LiteralText(self._read_balanced()))
                continue
            if (cursor.sees("<(") or cursor.sees(">(")) and (is_argument or not parts):
                form = cursor.text[cursor.at : cursor.at + 2]
                cursor.at += 2
                parts.append(Substitution(self._read_script(), form))
                continue
            if cursor.peek() in " \t\n;&|()<>":
                break
            parts.extend(self._read_special())
        return tuple(parts)

    def read_document(self) -> Word:
        """Read all that is left, as the body of a here-document."""
        parts: list[Part] = []
        while not self._cursor.is_at_end:
            parts.extend(self._read_quoted(_PLAIN_IN_DOCUMENT, "$`\\"))
        return tuple(parts)

    def try_arithmetic(self, opener: int) -> Arithmetic | None:
        """Read `((...))` behind `opener` characters. None, and nothing read, when it is one subshell in another.

        Raises:
            ShellSyntaxError: It isn't closed, or there are too many that could be either.
        """
        start = self._cursor.at
        self._cursor.at += opener
        arithmetic = self._read_arithmetic()
        if arithmetic is None:
            self._tries_left -= 1
            if self._tries_left < 0:
                raise ShellSyntaxError("(( can't be told from two subshells")
            self._cursor.at = start
        return arithmetic

    def _read_arithmetic(self) -> Arithmetic | None:
        parts: list[Part] = []
        open_brackets = 0
        cursor = self._cursor
        while True:
            if cursor.is_at_end:
                raise ShellSyntaxError("a )) is missing")
            if cursor.sees("("):
                open_brackets += 1
                cursor.at += 1
            elif cursor.sees(")"):
                if open_brackets == 0:
                    break
                open_brackets -= 1
                cursor.at += 1
            elif cursor.sees("'"):
                raise ShellSyntaxError("a quote within (( can't be read safely")
            elif not cursor.take(_PLAIN_IN_ARITHMETIC):
                parts.extend(self._read_special())
        if not cursor.sees("))"):
            return None
        cursor.at += 2
        return Arithmetic(tuple(parts))

    def _read_balanced(self) -> str:
        cursor = self._cursor
        start = cursor.at
        depth = 0
        while not cursor.is_at_end:
            depth += {"(": 1, ")": -1}.get(cursor.peek(), 0)
            cursor.at += 1
            if depth == 0:
                break
        pattern = cursor.text[start : cursor.at]
        if depth == 0 and not re.search(r"[$`'\"\\\n]", pattern):
            return pattern
        raise ShellSyntaxError("a pattern in brackets is too tangled to be read")

    def _read_special(self) -> list[Part]:
        """Read a quote, an escape or an expansion outside of quotes."""
        cursor = self._cursor
        if cursor.sees("\\\n"):
            cursor.at += 2
            return []
        match cursor.peek():
            case "\\":
                cursor.at += 2
                return [LiteralText(cursor.text[cursor.at - 1 : cursor.at], is_quoted=True)]
            case "'":
                cursor.at += 1
                return [LiteralText(cursor.take_until("'"), is_quoted=True)]
            case '"':
                return self._read_double_quotes()
            case "$" if cursor.sees("$'"):
                return [self._read_ansi_quotes()]
            case "$" if cursor.sees('$"'):
                cursor.at += 1
                return self._read_double_quotes()
            case _:
                return self._read_expansion(is_quoted=False)

    def _read_double_quotes(self) -> list[Part]:
        cursor = self._cursor
        cursor.at += 1
        # An empty part keeps "" a word.
        parts: list[Part] = [LiteralText("", is_quoted=True)]
        while not cursor.sees('"'):
            if cursor.is_at_end:
                raise ShellSyntaxError('a " is missing')
            parts.extend(self._read_quoted(_PLAIN_IN_QUOTES, '$`"\\'))
        cursor.at += 1
        return parts

    def _read_quoted(self, plain: re.Pattern[str], escapable: str) -> list[Part]:
        cursor = self._cursor
        text = cursor.take(plain)
        if text:
            return [LiteralText(text, is_quoted=True)]
        if not cursor.sees("\\"):
            return self._read_expansion(is_quoted=True)
        escaped = cursor.text[cursor.at + 1 : cursor.at + 2]
        cursor.at += 2
        if escaped == "\n":
            return []
        return [LiteralText(escaped if escaped and escaped in escapable else "\\" + escaped, is_quoted=True)]

    def _read_ansi_quotes(self) -> LiteralText:
        cursor = self._cursor
        start = cursor.at = cursor.at + 2
        while not cursor.sees("'"):
            if cursor.is_at_end:
                raise ShellSyntaxError("a ' is missing")
            cursor.at += 2 if cursor.sees("\\") else 1
        text = unescape_ansi(cursor.text[start : cursor.at])
        cursor.at += 1
        return LiteralText(text, is_quoted=True)

    def _read_expansion(self, *, is_quoted: bool) -> list[Part]:
        cursor = self._cursor
        if cursor.sees("`"):
            return [Substitution(self._parse(self._read_backticks()), "$(", is_quoted)]
        if cursor.sees("$((") and (arithmetic := self.try_arithmetic(3)):
            return [arithmetic]
        if cursor.sees("$("):
            cursor.at += 2
            return [Substitution(self._read_script(), "$(", is_quoted)]
        if cursor.sees("${"):
            cursor.at += 2
            return [self._read_braces(is_quoted)]
        if cursor.sees("$["):
            cursor.at += 2
            return [Arithmetic(self._read_up_to("]", _PLAIN_IN_BRACKETS))]
        cursor.at += 1
        name = cursor.take(_NAME)
        return [Variable(name, is_quoted)] if name else [LiteralText("$", is_quoted)]

    def _read_backticks(self) -> str:
        cursor = self._cursor
        start = cursor.at = cursor.at + 1
        while not cursor.sees("`"):
            if cursor.is_at_end:
                raise ShellSyntaxError("a ` is missing")
            cursor.at += 2 if cursor.sees("\\") else 1
        text = cursor.text[start : cursor.at]
        cursor.at += 1
        return re.sub(r"\\([$`\\])", r"\1", text)

    def _read_braces(self, is_quoted: bool) -> Part:
        cursor = self._cursor
        if cursor.peek() in (" ", "\t", "\n", "|"):
            raise ShellSyntaxError("${ runs a command in a way that isn't understood")
        prefix = ""
        if cursor.peek() in ("!", "#") and not cursor.text.startswith("}", cursor.at + 1):
            prefix = cursor.peek()
            cursor.at += 1
        name = cursor.take(_NAME_IN_BRACES)
        if not name:
            raise ShellSyntaxError("${ without a name")
        index: Word = ()
        if cursor.sees("["):
            cursor.at += 1
            index = self._read_up_to("]", _PLAIN_IN_BRACKETS)
        operator = "length" if prefix == "#" else cursor.take(_OPERATOR)
        start = cursor.at
        operand = self._read_up_to("}", _PLAIN_IN_BRACES)
        if is_quoted and "'" in cursor.text[start : cursor.at]:
            # Whether it quotes depends on the operator: a wrong guess would hide what follows.
            raise ShellSyntaxError("a quote within ${ within quotes can't be read safely")
        return Variable("!" + name if prefix == "!" else name, is_quoted, operator, operand, index)

    def _read_up_to(self, end: str, plain: re.Pattern[str]) -> Word:
        cursor = self._cursor
        parts: list[Part] = []
        while not cursor.sees(end):
            if cursor.is_at_end:
                raise ShellSyntaxError(f"a {end} is missing")
            text = cursor.take(plain)
            parts.extend([LiteralText(text)] if text else self._read_special())
        cursor.at += len(end)
        return tuple(parts)


def _ends_like_extended_glob(parts: list[Part]) -> bool:
    return (
        bool(parts)
        and isinstance(parts[-1], LiteralText)
        and not parts[-1].is_quoted
        and parts[-1].text[-1:] in "?*+@!"
    )
