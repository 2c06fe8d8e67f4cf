"""Splits a long text into parts between paragraphs, lines or words. Code fences are closed and reopened."""

import re

from hark.text.graphemes import safe_cut

MAX_FENCE_CHARACTERS = 16  # A longer fence is not reopened.
CLOSING_CHARACTERS = MAX_FENCE_CHARACTERS + 4  # reserved for a line break, indentation and the closing fence
_LINE = re.compile(r"([ \t]*)(`{3,}|~{3,})(.*)")
_LANGUAGE = re.compile(r"[\w+#.-]{1,32}")


def text_length(text: str) -> int:
    """Return the length in UTF-16 code units. Telegram counts them, and no platform counts more."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def cut_position(text: str, max_length: int) -> int:
    """Return how many characters of a text fit into `max_length` UTF-16 code units without splitting a grapheme."""
    end = min(len(text), max_length)
    while (excess := text_length(text[:end]) - max_length) > 0:
        end -= (excess + 1) // 2  # A character has at most two units.
    return safe_cut(text, end)


def split_text(text: str, max_length: int) -> list[str]:
    """Split a text into parts of at most `max_length` UTF-16 code units. `max_length` is at least 100.

    A fence that is open at a split is closed and reopened. Without the added fences, the joined parts equal the text
    except for whitespace at the splits.
    """
    text = text.strip("\n")
    parts: list[str] = []
    start, reopened = 0, ""
    while text_length(text[start : start + max_length]) + len(reopened) > max_length or len(text) > start + max_length:
        available = max_length - len(reopened) - CLOSING_CHARACTERS
        end = start + _find_split(text[start : start + available + 1], available)
        part = reopened + text[start:end].rstrip()
        if text[start:end].strip():
            fence = _open_fence(part if text[end : end + 1] == "\n" else f"{part}…")
            parts.append(f"{part}\n{fence[0]}{fence[1]}" if fence else part)
            reopened = f"{fence[1]}{fence[2]}\n" if fence else ""
        start = _skip(text, end, "\n" if text[end : end + 1] == "\n" else " ")
    if text[start:].strip() or not parts:
        parts.append(reopened + text[start:])
    return parts


def _skip(text: str, start: int, character: str) -> int:
    while text[start : start + 1] == character:
        start += 1
    return start


def _find_split(text: str, available: int) -> int:
    """Return where to split, within the second half of `available`: after a paragraph, line, sentence or word."""
    end = cut_position(text, available)
    for separator in ("\n\n", "\n", ". ", " "):
        position = text.rfind(separator, end // 2, end)
        if position > 0:
            return position + (1 if separator == ". " else 0)
    return end


def _open_fence(text: str) -> tuple[str, str, str] | None:
    """Return the indentation, the fence and the language of the code block that is open at the end of a text.

    A text that was cut inside a line ends with an ellipsis, so that a part of a word doesn't count as a language.
    """
    fence: tuple[str, str, str] | None = None
    for line in text.split("\n"):
        match = _LINE.match(line)
        if match is None:
            continue
        indent, run, info = match.groups()
        if fence is not None:
            fence = None if run.startswith(fence[1]) and not info.strip() else fence
        elif len(run) <= MAX_FENCE_CHARACTERS and not (run[0] == "`" and "`" in info):  # otherwise inline code
            language = info.strip().partition(" ")[0]
            fence = indent[:3], run, language if _LANGUAGE.fullmatch(language) else ""
    return fence
