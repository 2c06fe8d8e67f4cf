"""Extracts searchable text from records, and splits stored texts and queries into words in the same way."""

import re
import unicodedata
from collections.abc import Sequence

from msgspec import Struct

from hark.protocol.messages import AssistantMessage, UserMessage
from hark.protocol.records import AnyRecord, CallEnded, Replied, Steered, TurnStarted

PERSON = "person"
HARK = "hark"
MAX_RESULT_CHARACTERS = 20_000
EXCLUDED_TOOLS = ("recall",)  # their results repeat earlier messages, and would be found instead of them
MAX_WORD_CHARACTERS = 64  # only the start of a longer word is indexed, because it is code or data
MIN_PREFIX_CHARACTERS = 3  # a shorter word would match too many others
MAX_QUERY_CHARACTERS = 1_000
SNIPPET_CHARACTERS = 240
_LEAD_CHARACTERS = 60

# Scripts without blanks between words, and pictographs. Each character is a word, and a sequence of them is a phrase.
_SINGLE_CHARACTER_WORDS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff\u2190-\u2bff\U0001f000-\U0001faff"
)
# Not compiled here, because that would cost every start milliseconds, and most runs don't search. `re` caches it.
_WORD = rf"[{_SINGLE_CHARACTER_WORDS}]|(?:(?![{_SINGLE_CHARACTER_WORDS}])[^\W_])+"
_ACCENTS = re.compile("[\u0300-\u036f]")

Phrase = tuple[str, ...]


class SearchableMessage(Struct, frozen=True):
    """A message that can be found by a search."""

    turn: str
    at: float
    who: str
    text: str


def extract_messages(record: AnyRecord) -> list[SearchableMessage]:
    """Return the searchable messages of a record. Most records have none."""
    match record:
        case TurnStarted(turn=turn, messages=messages) | Steered(turn=turn, messages=messages):
            found = [SearchableMessage(turn, record.at, item.author or PERSON, _user_text(item)) for item in messages]
        case Replied(turn=turn, message=message):
            found = [SearchableMessage(turn, record.at, HARK, _reply_text(message))]
        case CallEnded(turn=turn, result=result) if result.name not in EXCLUDED_TOOLS:
            found = [SearchableMessage(turn, record.at, result.name, result.text[:MAX_RESULT_CHARACTERS])]
        case _:
            found = []
    return [message for message in found if message.text.strip()]


def _user_text(message: UserMessage) -> str:
    return "\n".join([message.text, *(attachment.name for attachment in message.attachments if attachment.name)])


def _reply_text(message: AssistantMessage) -> str:
    calls = (f"{call.name} {call.arguments}" for call in message.calls if call.name not in EXCLUDED_TOOLS)
    return "\n".join([message.text, *calls]) if message.calls else message.text


def split_words(text: str) -> list[str]:
    """Return the words of a text, in lower case and without accents."""
    return [word[:MAX_WORD_CHARACTERS] for word in re.findall(_WORD, _normalize(text))]


def parse_phrases(query: str) -> list[Phrase]:
    """Return the phrases of a query. Each piece between spaces is a phrase, whose words must be adjacent."""
    pieces = (tuple(split_words(piece)) for piece in query[:MAX_QUERY_CHARACTERS].split())
    return list(dict.fromkeys(piece for piece in pieces if piece))


def has_phrase(words: list[str], phrase: Phrase) -> bool:
    """Return whether the words contain the phrase. Its last word may be the prefix of a longer word."""
    *first_words, last = phrase
    count = len(first_words)
    return any(
        words[index : index + count] == first_words and _matches_word(last, words[index + count])
        for index in range(len(words) - count)
    )


def matches_as_prefix(word: str) -> bool:
    """Return whether a word of a query also matches longer words that start with it."""
    return len(word) >= MIN_PREFIX_CHARACTERS


def make_snippet(text: str, phrases: Sequence[Phrase]) -> str:
    """Return the text around the first match of a phrase's first word, on one line."""
    words = ((match.start(), _normalize(match.group())) for match in re.finditer(_WORD, text))
    position = next((start for start, word in words if any(_matches_word(phrase[0], word) for phrase in phrases)), 0)
    start = max(0, position - _LEAD_CHARACTERS)
    end = start + SNIPPET_CHARACTERS
    excerpt = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{excerpt}{'…' if end < len(text) else ''}"


def _matches_word(wanted: str, word: str) -> bool:
    return word == wanted or (matches_as_prefix(wanted) and word.startswith(wanted))


def _normalize(text: str) -> str:
    if text.isascii():
        return text.lower()
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFC", bare).casefold()
