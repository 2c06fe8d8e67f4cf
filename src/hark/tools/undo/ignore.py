"""Which folders are left out because .gitignore files say so."""
# Names of files are bytes here, and needn't be text.

import re
from typing import NamedTuple

from hark.tools.undo.blobs import read_start

IGNORE_BYTES = 256 * 1024


class _Rule(NamedTuple):
    pattern: re.Pattern[bytes]
    is_negated: bool


class Ignored:
    """The rules that hold in one folder: its own .gitignore over those of the folders above."""

    def __init__(self, levels: tuple[tuple[int, list[_Rule]], ...] = ()) -> None:
        """`levels`: from the top, how long the folder's path is, and its rules, the last first."""
        self._levels = levels

    def below(self, folder: bytes) -> "Ignored":
        """Return the rules of a folder below that has a .gitignore; one that can't be read says nothing."""
        try:
            lines = read_start(folder + b"/.gitignore", IGNORE_BYTES).splitlines()
        except OSError:
            return self
        rules = [rule for line in reversed(lines) if (rule := _parse(line))]
        return Ignored((*self._levels, (len(folder), rules)))

    def ignores(self, path: bytes) -> bool:
        """Return whether this folder is ignored: the last rule that fits decides, the nearest file first."""
        for length, rules in reversed(self._levels):
            inside = path[length + 1 :]
            for rule in rules:
                if rule.pattern.fullmatch(inside):
                    return not rule.is_negated
        return False


def _parse(line: bytes) -> _Rule | None:
    text = line.rstrip()
    if not text or text.startswith(b"#"):
        return None
    is_negated = text.startswith(b"!")
    text = text.removeprefix(b"!").removesuffix(b"/")
    is_anchored = b"/" in text
    text = text.removeprefix(b"/")
    if not text:
        return None
    try:
        pattern = re.compile((b"" if is_anchored else b"(?:.*/)?") + _translate(text), re.DOTALL)
    except re.error:
        return None
    return _Rule(pattern, is_negated)


def _translate(glob: bytes) -> bytes:
    """Return the regular expression of a pattern: `*` stops at a slash, `**` doesn't."""
    pieces: list[bytes] = []
    for token in re.findall(rb"\*\*/|/\*\*$|\*+|\?|\[!?\]?[^\]]*\]|\\.|.", glob, re.DOTALL):
        if token == b"**/":
            pieces.append(b"(?:.*/)?")
        elif token == b"/**":
            pieces.append(b"/.*")
        elif token.startswith(b"*"):
            pieces.append(b"[^/]*")
        elif token == b"?":
            pieces.append(b"[^/]")
        elif token.startswith(b"[") and len(token) > 1:
            pieces.append(b"[" + token[1:-1].replace(b"!", b"^", 1) + b"]" if token[1:2] == b"!" else token)
        else:
            pieces.append(re.escape(token[-1:]))
    return b"".join(pieces)
