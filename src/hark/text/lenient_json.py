"""Parses the JSON object in a tool call's arguments, and repairs mistakes that can be read in only one way."""

import json
import re

import msgspec

_OBJECT = msgspec.json.Decoder(dict[str, object])
_OBJECT_OR_TEXT = msgspec.json.Decoder(dict[str, object] | str)
_ERRORS = (msgspec.DecodeError, ValueError, RecursionError)
_FENCE = re.compile(r"```\w*\n(.*)\n\s*```", re.DOTALL)
# A string, punctuation, a bare word, or the first quote of a string without an end.
_TOKEN = re.compile(r""""(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|[{}\[\],:]|[^\s"'{}\[\],:]++|["']""", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES = {'"': '"', "'": "'", "/": "/", "\\": "\\", "n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_LETTERS, _PYTHON_LETTERS = frozenset("ntrbfu"), frozenset("xavNU01234567")  # of escapes
_LITERALS = {"True": "true", "False": "false", "None": "null"}


class CutOff(ValueError):
    """The text ends before its object is complete."""


def parse_object(text: str, *, is_cut: bool = False) -> str:
    """Return the text of a JSON object: the given text if it is valid, or else a repaired one.

    Repairs Python's quotes and literals, names without quotes, trailing commas, line breaks in strings, code fences
    and objects encoded twice. A repair never completes the text, so a call that was cut off does not become a shorter
    call. With `is_cut`, the reply is known to be cut off, and nothing is repaired.

    Raises:
        CutOff: The object is not complete.
        ValueError: The text is not an object. The error is the parser's complaint about the original text.
    """
    try:
        _OBJECT.decode(text)
    except _ERRORS as error:
        if is_cut or not text.strip():
            raise CutOff from error
        try:
            value = _OBJECT_OR_TEXT.decode(_normalize(text))
            return parse_object(value) if isinstance(value, str) else msgspec.json.encode(value).decode()
        except CutOff:
            raise
        except _ERRORS:
            raise ValueError(str(error).replace("`", "")) from error
    return text


def explain_invalid(text: str) -> str:
    """Return a message to the model about arguments that `parse_object` rejected."""
    try:
        parse_object(text)
    except CutOff:
        pass
    except ValueError as error:
        return f"The arguments are not a JSON object: {error}. They begin with {text[:200]!r}. Send them again."
    return (
        "The arguments are incomplete: the reply was cut off, or a string or bracket is not closed. "
        "The call was not run. Send it again, in smaller parts if it is long."
    )


def _normalize(text: str) -> str:
    """Return the text in the syntax of JSON. The caller parses it, which finds the remaining mistakes."""
    fenced = _FENCE.fullmatch(text.strip())
    lexemes: list[str] = _TOKEN.findall(fenced[1] if fenced else text)
    parts: list[str] = []
    for lexeme in lexemes:
        if lexeme in ('"', "'"):
            raise CutOff
        if lexeme in "}]" and parts[-1:] == [","]:
            parts.pop()
        elif lexeme == ":" and parts and parts[-1][0] not in '"{}[],:':
            parts[-1] = json.dumps(parts[-1])  # a name without quotes
        parts.append(json.dumps(_unescape(lexeme[1:-1])) if lexeme[0] in "\"'" else _LITERALS.get(lexeme, lexeme))
    if sum(lexeme in "{[" for lexeme in lexemes) > sum(lexeme in "}]" for lexeme in lexemes):
        raise CutOff
    return " ".join(parts)


def _unescape(string: str) -> str:
    """Return the value of a string. A backslash that starts no escape stands for itself, as in a pattern or path.

    Raises:
        ValueError: The string has both kinds of backslashes, such as C:\\path\\new, or an escape that only Python has.
    """
    codes = {escape[:1] for escape in _ESCAPE.findall(string)}
    if codes & _PYTHON_LETTERS or (codes & _LETTERS and codes - _LETTERS - _ESCAPES.keys()):
        raise ValueError("ambiguous backslashes")
    return _ESCAPE.sub(
        lambda escape: chr(int(escape[1][1:], 16)) if len(escape[1]) > 1 else _ESCAPES.get(escape[1], escape[0]), string
    )
