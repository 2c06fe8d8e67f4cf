"""The words that stop: whole messages, in several languages, typed or spoken."""

from collections.abc import Iterable

STOP_WORDS = (
    "stop", "stop it", "stop that", "please stop", "stop please", "wait", "halt", "cancel", "abort",
    "stopp", "warte", "anhalten", "abbrechen", "hör auf", "aufhören", "arrête", "arrete", "arrêtez", "attends",
    "para", "espera", "detente", "detén", "pare", "aspetta", "fermati", "basta", "стоп", "подожди", "хватит",
    "停止", "停", "やめて", "止めて", "ストップ", "멈춰", "그만", "توقف", "रुको",
)  # fmt: skip
_AROUND = " \t\r\n!.…,;。！、，"


class StopWords:
    """Tells whether a message is a wish to stop, and nothing else."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words: frozenset[str] = frozenset()
        self.change(words)

    def change(self, words: Iterable[str]) -> None:
        """Take other words from now on."""
        self._words = frozenset(_plain(word) for word in words)

    def fits(self, text: str) -> bool:
        """Tell whether the whole of it is a stop word, however it is written."""
        return len(text) < 100 and _plain(text) in self._words


def _plain(text: str) -> str:
    # Marks inside count as little as those around: of spoken words, "stop please" comes out as "Stop. Please."
    return " ".join("".join(" " if sign in _AROUND else sign for sign in text.casefold()).split())
