"""Words with a meaning: whole messages, typed or spoken, that mean "stop" or ask for the status."""

from collections.abc import Iterable

STOP_WORDS = (
    "stop", "stop it", "stop that", "please stop", "stop please", "wait", "halt", "cancel", "abort",
    "stopp", "warte", "anhalten", "abbrechen", "hör auf", "aufhören", "arrête", "arrete", "arrêtez", "attends",
    "para", "espera", "detente", "detén", "pare", "aspetta", "fermati", "basta", "стоп", "подожди", "хватит",
    "停止", "停", "やめて", "止めて", "ストップ", "멈춰", "그만", "توقف", "रुको",
)  # fmt: skip
# Only questions about the running turn that its state answers. Everything else is a message to the model.
STATUS_WORDS = (
    "how far are you?",
    "how far are you",
    "how far along are you?",
    "wie weit bist du?",
    "wie weit bist du",
)
_PUNCTUATION = " \t\r\n!.…,;。！、，"


class WordList:
    """Recognises messages that consist of one of its words or phrases and nothing else."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words: frozenset[str] = frozenset()
        self.replace(words)

    def replace(self, words: Iterable[str]) -> None:
        """Replace the words."""
        self._words = frozenset(_normalize(word) for word in words)

    def matches(self, text: str) -> bool:
        """Return whether the whole text is one of the words, ignoring case and punctuation."""
        return len(text) < 100 and _normalize(text) in self._words


def _normalize(text: str) -> str:
    # Punctuation inside the text is ignored too: the transcript of a spoken "stop please" may be "Stop. Please."
    return " ".join("".join(" " if character in _PUNCTUATION else character for character in text.casefold()).split())
