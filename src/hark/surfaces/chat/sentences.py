"""A text that grows, cut where its sentences end: what can be spoken before all of it is there."""

import re

_END = re.compile(r"[.!?:;…][\"'”’)]*\s+|[。！？]|\n")
_FENCE = re.compile(r"[ \t]*(```|~~~)")


class Sentences:
    """Takes a text piece by piece, and gives it back sentence by sentence; a block of code is one."""

    def __init__(self) -> None:
        self._rest = ""

    def add(self, text: str) -> list[str]:
        """Take more text; return the sentences that are whole now."""
        self._rest += text
        return self._whole()

    def end(self) -> list[str]:
        """Return what is left: no more comes."""
        left = self._whole()
        rest, self._rest = self._rest, ""
        return [*left, rest] if rest.strip() else left

    def _whole(self) -> list[str]:
        found: list[str] = []
        while (size := self._size()) > 0:
            sentence, self._rest = self._rest[:size], self._rest[size:]
            if sentence.strip():
                found.append(sentence)
        return found

    def _size(self) -> int:
        """Return how long the first sentence is, 0 when its end is not there yet."""
        fence = _FENCE.match(self._rest)
        if fence is None:
            end = _END.search(self._rest)
        else:
            begins = self._rest.find("\n")
            close = re.compile(rf"\n[ \t]*{fence[1]}[ \t]*\n")
            end = close.search(self._rest, begins) if begins >= 0 else None
        return end.end() if end else 0
