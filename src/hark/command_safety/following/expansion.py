"""Shell word expansion: computes the possible values of a word, or marks them as unknown."""

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from itertools import product

from hark.command_safety.following.markers import UNKNOWN, is_unknown, markers_in
from hark.command_safety.following.state import ScriptState
from hark.command_safety.parsing.braces import expand_braces
from hark.command_safety.parsing.syntax_tree import Arithmetic, LiteralText, Substitution, Variable, Word, WordPart

CHOICES_MAX = 64
CHARACTERS_MAX = 20_000
# Assumed values of variables that can't cause harm, mostly numbers. `$!` is one of the command's own jobs.
_ASSUMED_VALUES = {
    "?": "0",
    "#": "1",
    "$": "4711",
    "!": "%1",
    "-": "himBH",
    "RANDOM": "4711",
    "SECONDS": "1",
    "LINENO": "1",
    "UID": "1000",
    "EUID": "1000",
    "PPID": "4711",
    "HOSTNAME": "host",
    "OSTYPE": "linux",
    "EPOCHSECONDS": "4711",
    "0": "bash",
    "SHELL": "/bin/bash",
    "BASH": "/bin/bash",
    "IFS": " \t\n",
    "TMPDIR": "/tmp",  # noqa: S108
}

# One possible result of expanding a word: the fields that it is split into.
Fields = tuple[str, ...]


class WordExpansion:
    """Expands shell words in a given state. `analyze_substitution` returns a substitution's output or pipe path."""

    def __init__(self, state: ScriptState, analyze_substitution: Callable[[Substitution], str], home: str) -> None:
        self._state = state
        self._run = analyze_substitution
        self._home = home

    def possible_fields(self, word: Word) -> list[Fields]:
        """Return all possible results of expanding a word and splitting it into fields."""
        words = expand_braces(word)
        if len(words) == 1:
            return self._possible_fields_without_braces(words[0])
        fields: list[str] = []
        for each in words:
            for choice in self._possible_fields_without_braces(each):
                fields.extend(choice)
        return [tuple(fields)]

    def possible_values(self, word: Word) -> tuple[str, ...]:
        """Return all possible values of a word that isn't split, as in an assignment or after a redirection."""
        if len(word) == 1 and isinstance(word[0], LiteralText) and word[0].is_quoted:
            return (word[0].text,)
        texts = [""]
        for at, part in enumerate(word):
            pieces = [" ".join(piece) for piece in self._expand_part(part, is_first=at == 0)]
            texts = _limit_values([text + piece for text, piece in product(texts, pieces)])
        return tuple(texts)

    def _possible_fields_without_braces(self, word: Word) -> list[Fields]:
        # Each choice has its complete fields and the incomplete last field, None before the first piece.
        choices: list[tuple[Fields, str | None]] = [((), None)]
        limit = CHOICES_MAX if len(word) <= CHOICES_MAX else 1
        for at, part in enumerate(word):
            pieces = self._expand_part(part, is_first=at == 0)
            is_split = not isinstance(part, LiteralText) and not (
                isinstance(part, Variable | Substitution) and part.is_quoted
            )
            grown = [
                _append_piece(*choice, piece, self._separators() if is_split else "")
                for choice, piece in product(choices, pieces)
            ]
            choices = grown if len(grown) <= limit else [_merge_choices(grown)]
        return list(dict.fromkeys(done if last is None else (*done, last) for done, last in choices))

    def _separators(self) -> str:
        return "".join(self._state.variables.get("IFS", ())) + " \t\n"

    def _expand_part(self, part: WordPart, *, is_first: bool) -> list[Fields]:
        """Return all possible values of a part. Only a quoted array expands to several fields."""
        match part:
            case LiteralText(text, is_quoted):
                if is_first and not is_quoted and text.startswith("~"):
                    return [(expanded,) for expanded in self._expand_tilde(text)]
                return [(text,)]
            case Variable():
                return self._expand_variable(part)
            case Substitution():
                return [(self._run(part),)]
            case Arithmetic(parts):
                self.possible_values(parts)
                return [("1",)]

    def _expand_tilde(self, text: str) -> list[str]:
        name, slash, rest = text.partition("/")
        variable = {"~": "HOME", "~+": "PWD", "~-": "OLDPWD"}.get(name)
        if variable is None:
            return [text]
        return [value + slash + rest for value in self._lookup_variable(variable)]

    def _lookup_variable(self, name: str) -> tuple[str, ...]:
        state = self._state
        if name in state.variables:
            return state.variables[name]
        if name in state.arrays:
            return state.arrays[name][:1] or ("",)
        if name == "PWD":
            return state.folders
        if name == "HOME":
            return (self._home,)
        positional = state.arrays.get("@", ())
        if name.isdigit() and name != "0" and "@" in state.arrays:
            return (positional[int(name) - 1],) if len(name) < 5 and int(name) <= len(positional) else ("",)
        return (_ASSUMED_VALUES.get(name, UNKNOWN),)

    def _expand_variable(self, variable: Variable) -> list[Fields]:
        index = self.possible_values(variable.index)[0] if variable.index else ""
        operands = self.possible_values(variable.operand)
        if variable.name.startswith("!") and variable.name != "!":
            return [(UNKNOWN,)]
        if variable.operator == "length":
            return [("1",)]
        items = self._array_items(variable.name, index)
        if items is not None:
            items = tuple(_apply_operator(variable.operator, item, operands[0]) for item in items)
            return [items if variable.is_quoted and (variable.name == "@" or index == "@") else (" ".join(items),)]
        values = self._lookup_variable(variable.name)
        if index.isdigit() and len(index) < 5:
            array = self._state.arrays.get(variable.name)
            values = (UNKNOWN,) if array is None else (array[int(index)] if int(index) < len(array) else "",)
        elif index:
            values = (UNKNOWN,)
        if variable.operator in (":-", "-", ":=", "=", ":?", "?"):
            chosen = (*values, *operands) if "?" not in variable.operator else values
            if "=" in variable.operator:
                self._state.assign(variable.name, chosen)
            return [(value,) for value in _limit_values(list(chosen))]
        if variable.operator in (":+", "+"):
            return [(value,) for value in _limit_values(["", *operands])]
        pairs = product(values, operands)
        return [(text,) for text in _limit_values([_apply_operator(variable.operator, *pair) for pair in pairs])]

    def _array_items(self, name: str, index: str) -> tuple[str, ...] | None:
        """Return all items of an array. Return None if the expansion doesn't refer to a whole array."""
        if name in ("@", "*"):
            return self._state.arrays.get("@", (UNKNOWN,))
        if index in ("@", "*"):
            return self._state.arrays.get(name, self._lookup_variable(name))
        return None


def _apply_operator(operator: str, value: str, operand: str) -> str:
    """Return a variable's value after applying a parameter expansion operator, such as `%` with the operand `.txt`."""
    if not operator:
        return value
    if is_unknown(value) or is_unknown(operand) or len(value) > 500 or len(operand) > 500:
        return UNKNOWN + markers_in(value)
    match operator:
        case "#" | "##":
            ends = range(len(value) + 1) if operator == "#" else range(len(value), -1, -1)
            return next((value[end:] for end in ends if fnmatchcase(value[:end], operand)), value)
        case "%" | "%%":
            starts = range(len(value), -1, -1) if operator == "%" else range(len(value) + 1)
            return next((value[:start] for start in starts if fnmatchcase(value[start:], operand)), value)
        case "^^" | "^":
            return value.upper() if operator == "^^" else value[:1].upper() + value[1:]
        case ",," | ",":
            return value.lower() if operator == ",," else value[:1].lower() + value[1:]
        case "/" | "//" if re.fullmatch(r"[^*?\[/\\]+/?[^&\\]*", operand):
            old, _, new = operand.partition("/")
            return value.replace(old, new) if operator == "//" else value.replace(old, new, 1)
        case ":" if re.fullmatch(r" ?\d{1,4}(?::\d{1,4})?", operand):
            start, _, count = operand.strip().partition(":")
            return value[int(start) :][: int(count) if count else None]
        case _:
            return UNKNOWN


def _append_piece(done: Fields, last: str | None, piece: Fields, separators: str) -> tuple[Fields, str | None]:
    """Return the complete fields and the unfinished last field after appending `piece`, split at `separators`."""
    fields = list(done)
    for number, text in enumerate(piece):
        if number:
            fields.append(last or "")
            last = None
        if not separators:
            last = (last or "") + text
            continue
        for field_number, field in enumerate(re.split(f"[{re.escape(separators)}]+", text)):
            if field_number and last is not None:
                fields.append(last)
                last = None
            if field:
                last = (last or "") + field
    return tuple(fields), last


def _merge_choices(choices: list[tuple[Fields, str | None]]) -> tuple[Fields, str | None]:
    """Merge the fields of all choices into one choice. Used when there are too many choices to analyze each."""
    fields = [field for done, last in choices for field in (*done, last or "")]
    return tuple(dict.fromkeys([UNKNOWN, *fields])), UNKNOWN


def _limit_values(texts: list[str]) -> list[str]:
    distinct = list(dict.fromkeys(texts))
    if len(distinct) <= CHOICES_MAX and all(len(text) <= CHARACTERS_MAX for text in distinct):
        return distinct
    return [UNKNOWN + markers_in(*distinct[:CHOICES_MAX])]
