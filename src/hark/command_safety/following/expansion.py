"""What the words of a shell command stand for: all that a word may become, as far as it can be told."""

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from itertools import product

from hark.command_safety.following.state import ScriptState
from hark.command_safety.following.unknown_marks import UNKNOWN, is_unknown, marks_of
from hark.command_safety.parsing.braces import expand_braces
from hark.command_safety.parsing.words import Arithmetic, LiteralText, Part, Substitution, Variable, Word

CHOICES_MAX = 64
CHARACTERS_MAX = 20_000
# What can't harm, whatever it is: numbers. `$!` is a job of one's own.
_KNOWN = {
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

# One way to read a word: the fields that it is split into.
Fields = tuple[str, ...]


class Expansion:
    """Expands words in a state. `run` judges a nested script and returns what it prints; `pipe` names its file."""

    def __init__(self, state: ScriptState, run: Callable[[Substitution], str], home: str) -> None:
        self._state = state
        self._run = run
        self._home = home

    def choices(self, word: Word) -> list[Fields]:
        """Return all ways to read a word as fields."""
        words = expand_braces(word)
        if len(words) == 1:
            return self._choices(words[0])
        fields: list[str] = []
        for each in words:
            for choice in self._choices(each):
                fields.extend(choice)
        return [tuple(fields)]

    def values(self, word: Word) -> tuple[str, ...]:
        """Return all that a word may be where it isn't split, as in an assignment or behind a redirection."""
        if len(word) == 1 and isinstance(word[0], LiteralText) and word[0].is_quoted:
            return (word[0].text,)
        texts = [""]
        for at, part in enumerate(word):
            pieces = [" ".join(piece) for piece in self._part(part, is_first=at == 0)]
            texts = _limited([text + piece for text, piece in product(texts, pieces)])
        return tuple(texts)

    def _choices(self, word: Word) -> list[Fields]:
        # Each choice is its finished fields, and the one that is still open, None before anything began.
        choices: list[tuple[Fields, str | None]] = [((), None)]
        for at, part in enumerate(word):
            pieces = self._part(part, is_first=at == 0)
            is_split = not isinstance(part, LiteralText) and not (
                isinstance(part, Variable | Substitution) and part.is_quoted
            )
            grown = [
                _grow(*choice, piece, self._separators() if is_split else "")
                for choice, piece in product(choices, pieces)
            ]
            choices = grown if len(grown) <= CHOICES_MAX else [_merge(grown)]
        return list(dict.fromkeys(done if last is None else (*done, last) for done, last in choices))

    def _separators(self) -> str:
        return "".join(self._state.variables.get("IFS", ())) + " \t\n"

    def _part(self, part: Part, *, is_first: bool) -> list[Fields]:
        """Return all that a part may be; several fields in one only for a quoted array."""
        match part:
            case LiteralText(text, is_quoted):
                if is_first and not is_quoted and text.startswith("~"):
                    return [(expanded,) for expanded in self._tilde(text)]
                return [(text,)]
            case Variable():
                return self._variable(part)
            case Substitution():
                return [(self._run(part),)]
            case Arithmetic(parts):
                self.values(parts)
                return [("1",)]

    def _tilde(self, text: str) -> list[str]:
        name, slash, rest = text.partition("/")
        variable = {"~": "HOME", "~+": "PWD", "~-": "OLDPWD"}.get(name)
        if variable is None:
            return [text]
        return [value + slash + rest for value in self._lookup(variable)]

    def _lookup(self, name: str) -> tuple[str, ...]:
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
        return (_KNOWN.get(name, UNKNOWN),)

    def _variable(self, variable: Variable) -> list[Fields]:
        index = self.values(variable.index)[0] if variable.index else ""
        operands = self.values(variable.operand)
        if variable.name.startswith("!") and variable.name != "!":
            return [(UNKNOWN,)]
        if variable.operator == "length":
            return [("1",)]
        items = self._items(variable.name, index)
        if items is not None:
            items = tuple(_apply(variable.operator, item, operands[0]) for item in items)
            return [items if variable.is_quoted and (variable.name == "@" or index == "@") else (" ".join(items),)]
        values = self._lookup(variable.name)
        if index.isdigit() and len(index) < 5:
            array = self._state.arrays.get(variable.name)
            values = (UNKNOWN,) if array is None else (array[int(index)] if int(index) < len(array) else "",)
        elif index:
            values = (UNKNOWN,)
        if variable.operator in (":-", "-", ":=", "=", ":?", "?"):
            chosen = (*values, *operands) if "?" not in variable.operator else values
            if "=" in variable.operator:
                self._state.assign(variable.name, chosen)
            return [(value,) for value in _limited(list(chosen))]
        if variable.operator in (":+", "+"):
            return [(value,) for value in _limited(["", *operands])]
        pairs = product(values, operands)
        return [(text,) for text in _limited([_apply(variable.operator, *pair) for pair in pairs])]

    def _items(self, name: str, index: str) -> tuple[str, ...] | None:
        """Return all items of an array, None when it isn't asked for as a whole."""
        if name in ("@", "*"):
            return self._state.arrays.get("@", (UNKNOWN,))
        if index in ("@", "*"):
            return self._state.arrays.get(name, self._lookup(name))
        return None


def _apply(operator: str, value: str, operand: str) -> str:
    """Return a value changed by an operator such as `%.txt`."""
    if not operator:
        return value
    if is_unknown(value) or is_unknown(operand) or len(value) > 500:
        return UNKNOWN + marks_of(value)
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


def _grow(done: Fields, last: str | None, piece: Fields, separators: str) -> tuple[Fields, str | None]:
    """Return the fields after one more piece, which is split at the separators when there are any."""
    fields = list(done)
    for number, text in enumerate(piece):
        if number:
            fields.append(last or "")
            last = None
        if not separators:
            last = (last or "") + text
            continue
        for place, field in enumerate(re.split(f"[{re.escape(separators)}]+", text)):
            if place and last is not None:
                fields.append(last)
                last = None
            if field:
                last = (last or "") + field
    return tuple(fields), last


def _merge(choices: list[tuple[Fields, str | None]]) -> tuple[Fields, str | None]:
    """Return one choice that has the fields of all: too many to look at each."""
    fields = [field for done, last in choices for field in (*done, last or "")]
    return tuple(dict.fromkeys([UNKNOWN, *fields])), UNKNOWN


def _limited(texts: list[str]) -> list[str]:
    distinct = list(dict.fromkeys(texts))
    if len(distinct) <= CHOICES_MAX and all(len(text) <= CHARACTERS_MAX for text in distinct):
        return distinct
    return [UNKNOWN + marks_of(*distinct[:CHOICES_MAX])]
