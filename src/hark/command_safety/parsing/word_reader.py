"""Parses one word of a shell command: quotes, escapes, variables and substitutions."""

import re
from collections.abc import Callable

from hark.command_safety.parsing.syntax_tree import (
    Arithmetic,
    LiteralText,
    Script,
    ShellSyntaxError,
    Substitution,
    Variable,
    Word,
    WordPart,
)

NESTING_MAX = 24
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
_ANSI_CHARACTERS = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "v": "\v",
}


class Cursor:
    """A read position in a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    @property
    def is_at_end(self) -> bool:
        """Whether the whole text has been read."""
        return self.at >= len(self.text)

    def peek(self) -> str:
        """Return the next character, or "" at the end."""
        return self.text[self.at : self.at + 1]

    def starts_with(self, text: str) -> bool:
        """Return whether the unread text starts with `text`."""
        return self.text.startswith(text, self.at)

    def consume(self, pattern: re.Pattern[str]) -> str:
        """Return the text that matches the pattern at the cursor, and advance past it. Return "" if nothing matches."""
        match = pattern.match(self.text, self.at)
        if match is None:
            return ""
        self.at = match.end()
        return match.group()

    def consume_until(self, delimiter: str) -> str:
        """Return the text before the next `delimiter` and advance past the delimiter.

        Raises:
            ShellSyntaxError: The delimiter doesn't occur.
        """
        end = self.text.find(delimiter, self.at)
        if end < 0:
            raise ShellSyntaxError(f"missing {delimiter}")
        consumed = self.text[self.at : end]
        self.at = end + len(delimiter)
        return consumed


def unescape_ansi(text: str) -> str:
    r"""Return the text that `$'text'` denotes, with its escape sequences replaced."""

    def replace(match: re.Match[str]) -> str:
        hexadecimal = match[1] or match[2] or match[3]
        if hexadecimal:
            code = int(hexadecimal, 16)
            return chr(code) if code <= 0x10FFFF else ""
        if match[4]:
            return chr(int(match[4], 8) & 0xFF)
        if match[5]:
            return chr(ord(match[5]) & 0x1F)
        return _ANSI_CHARACTERS.get(match[6], match[6] if match[6] in "\\'\"?" else "\\" + match[6])

    return _ANSI_ESCAPE.sub(replace, text)


class WordReader:
    """Parses words at a cursor. `read_script` parses a nested script at the cursor, including its closing `)`.

    `parse` parses a separate script text, such as the content of backticks.
    """

    def __init__(self, cursor: Cursor, read_script: Callable[[], Script], parse: Callable[[str], Script]) -> None:
        self._cursor = cursor
        self._read_script = read_script
        self._parse = parse
        # Ambiguous text is parsed twice. Limit how often that can happen.
        self._retries_left = 8
        self._nesting = 0

    def read_word(self, *, is_argument: bool = True) -> Word:
        """Parse a word up to whitespace or an operator. Return an empty word if no word starts here.

        Raises:
            ShellSyntaxError: A quote or a bracket isn't closed.
        """
        parts: list[WordPart] = []
        cursor = self._cursor
        while not cursor.is_at_end:
            plain = cursor.consume(_PLAIN)
            if plain:
                parts.append(LiteralText(plain))
                continue
            if cursor.starts_with("(") and is_argument and _ends_like_extended_glob(parts):
                parts.append(LiteralText(self._read_balanced_parentheses()))
                continue
            if (cursor.starts_with("<(") or cursor.starts_with(">(")) and (is_argument or not parts):
                form = cursor.text[cursor.at : cursor.at + 2]
                cursor.at += 2
                parts.append(Substitution(self._read_script(), form))
                continue
            if cursor.peek() in " \t\n;&|()<>":
                break
            parts.extend(self._read_special())
        return tuple(parts)

    def read_document(self) -> Word:
        """Parse the unread text as the body of a here-document."""
        parts: list[WordPart] = []
        while not self._cursor.is_at_end:
            parts.extend(self._read_quoted(_PLAIN_IN_DOCUMENT, "$`\\"))
        return tuple(parts)

    def try_read_arithmetic(self, opener_length: int) -> Arithmetic | None:
        """Parse `((...))` after an opener of `opener_length`. Return None, without advancing, if it is two subshells.

        Raises:
            ShellSyntaxError: The text isn't closed, or has too many ambiguous cases.
        """
        start = self._cursor.at
        self._cursor.at += opener_length
        arithmetic = self._read_arithmetic()
        if arithmetic is None:
            self._retries_left -= 1
            if self._retries_left < 0:
                raise ShellSyntaxError("(( is ambiguous: arithmetic or two subshells")
            self._cursor.at = start
        return arithmetic

    def _read_arithmetic(self) -> Arithmetic | None:
        parts: list[WordPart] = []
        open_parentheses = 0
        cursor = self._cursor
        while True:
            if cursor.is_at_end:
                raise ShellSyntaxError("missing ))")
            if cursor.starts_with("("):
                open_parentheses += 1
                cursor.at += 1
            elif cursor.starts_with(")"):
                if open_parentheses == 0:
                    break
                open_parentheses -= 1
                cursor.at += 1
            elif cursor.starts_with("'"):
                raise ShellSyntaxError("a quote inside (( can't be parsed safely")
            elif not cursor.consume(_PLAIN_IN_ARITHMETIC):
                parts.extend(self._read_special())
        if not cursor.starts_with("))"):
            return None
        cursor.at += 2
        return Arithmetic(tuple(parts))

    def _read_balanced_parentheses(self) -> str:
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
        raise ShellSyntaxError("a pattern in parentheses is too complex to parse")

    def _read_special(self) -> list[WordPart]:
        """Parse a quote, an escape or an expansion outside of quotes."""
        cursor = self._cursor
        if cursor.starts_with("\\\n"):
            cursor.at += 2
            return []
        match cursor.peek():
            case "\\":
                cursor.at += 2
                return [LiteralText(cursor.text[cursor.at - 1 : cursor.at], is_quoted=True)]
            case "'":
                cursor.at += 1
                return [LiteralText(cursor.consume_until("'"), is_quoted=True)]
            case '"':
                return self._read_double_quotes()
            case "$" if cursor.starts_with("$'"):
                return [self._read_ansi_quotes()]
            case "$" if cursor.starts_with('$"'):
                cursor.at += 1
                return self._read_double_quotes()
            case _:
                return self._read_expansion(is_quoted=False)

    def _read_double_quotes(self) -> list[WordPart]:
        cursor = self._cursor
        cursor.at += 1
        # The empty part makes "" a word.
        parts: list[WordPart] = [LiteralText("", is_quoted=True)]
        while not cursor.starts_with('"'):
            if cursor.is_at_end:
                raise ShellSyntaxError('missing "')
            parts.extend(self._read_quoted(_PLAIN_IN_QUOTES, '$`"\\'))
        cursor.at += 1
        return parts

    def _read_quoted(self, plain_pattern: re.Pattern[str], escapable: str) -> list[WordPart]:
        cursor = self._cursor
        text = cursor.consume(plain_pattern)
        if text:
            return [LiteralText(text, is_quoted=True)]
        if not cursor.starts_with("\\"):
            return self._read_expansion(is_quoted=True)
        escaped = cursor.text[cursor.at + 1 : cursor.at + 2]
        cursor.at += 2
        if escaped == "\n":
            return []
        return [LiteralText(escaped if escaped and escaped in escapable else "\\" + escaped, is_quoted=True)]

    def _read_ansi_quotes(self) -> LiteralText:
        cursor = self._cursor
        start = cursor.at = cursor.at + 2
        while not cursor.starts_with("'"):
            if cursor.is_at_end:
                raise ShellSyntaxError("missing '")
            cursor.at += 2 if cursor.starts_with("\\") else 1
        text = unescape_ansi(cursor.text[start : cursor.at])
        cursor.at += 1
        return LiteralText(text, is_quoted=True)

    def _read_expansion(self, *, is_quoted: bool) -> list[WordPart]:
        self._nesting += 1
        if self._nesting > NESTING_MAX:
            raise ShellSyntaxError("nested too deeply")
        parts = self._read_shallow_expansion(is_quoted)
        self._nesting -= 1
        return parts

    def _read_shallow_expansion(self, is_quoted: bool) -> list[WordPart]:
        cursor = self._cursor
        if cursor.starts_with("`"):
            return [Substitution(self._parse(self._read_backticks()), "$(", is_quoted)]
        if cursor.starts_with("$((") and (arithmetic := self.try_read_arithmetic(3)):
            return [arithmetic]
        if cursor.starts_with("$("):
            cursor.at += 2
            return [Substitution(self._read_script(), "$(", is_quoted)]
        if cursor.starts_with("${"):
            cursor.at += 2
            return [self._read_braces(is_quoted)]
        if cursor.starts_with("$["):
            cursor.at += 2
            return [Arithmetic(self._read_up_to("]", _PLAIN_IN_BRACKETS))]
        cursor.at += 1
        name = cursor.consume(_NAME)
        return [Variable(name, is_quoted)] if name else [LiteralText("$", is_quoted)]

    def _read_backticks(self) -> str:
        cursor = self._cursor
        start = cursor.at = cursor.at + 1
        while not cursor.starts_with("`"):
            if cursor.is_at_end:
                raise ShellSyntaxError("missing `")
            cursor.at += 2 if cursor.starts_with("\\") else 1
        text = cursor.text[start : cursor.at]
        cursor.at += 1
        return re.sub(r"\\([$`\\])", r"\1", text)

    def _read_braces(self, is_quoted: bool) -> WordPart:
        cursor = self._cursor
        if cursor.peek() in (" ", "\t", "\n", "|"):
            raise ShellSyntaxError("${ runs a command, which isn't supported")
        prefix = ""
        if cursor.peek() in ("!", "#") and not cursor.text.startswith("}", cursor.at + 1):
            prefix = cursor.peek()
            cursor.at += 1
        name = cursor.consume(_NAME_IN_BRACES)
        if not name:
            raise ShellSyntaxError("${ has no variable name")
        index: Word = ()
        if cursor.starts_with("["):
            cursor.at += 1
            index = self._read_up_to("]", _PLAIN_IN_BRACKETS)
        operator = "length" if prefix == "#" else cursor.consume(_OPERATOR)
        start = cursor.at
        operand = self._read_up_to("}", _PLAIN_IN_BRACES)
        if is_quoted and "'" in cursor.text[start : cursor.at]:
            # Whether this quote counts depends on the operator. A wrong guess would hide the text that follows.
            raise ShellSyntaxError("a quote inside a quoted ${ can't be parsed safely")
        return Variable("!" + name if prefix == "!" else name, is_quoted, operator, operand, index)

    def _read_up_to(self, end: str, plain_pattern: re.Pattern[str]) -> Word:
        cursor = self._cursor
        parts: list[WordPart] = []
        while not cursor.starts_with(end):
            if cursor.is_at_end:
                raise ShellSyntaxError(f"missing {end}")
            text = cursor.consume(plain_pattern)
            parts.extend([LiteralText(text)] if text else self._read_special())
        cursor.at += len(end)
        return tuple(parts)


def _ends_like_extended_glob(parts: list[WordPart]) -> bool:
    return (
        bool(parts)
        and isinstance(parts[-1], LiteralText)
        and not parts[-1].is_quoted
        and parts[-1].text[-1:] in "?*+@!"
    )
