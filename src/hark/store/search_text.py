"""What can be searched: the text of a record, and text as words, made in one way of what is kept and what is asked."""

import re
import unicodedata
from collections.abc import Sequence

from msgspec import Struct

from hark.protocol.messages import AssistantMessage, UserMessage
from hark.protocol.records import AnyRecord, CallEnded, Replied, Steered, TurnStarted

PERSON = "person"
HARK = "hark"
RESULT_CHARACTERS = 20_000
LOOKING_BACK = ("recall",)  # what only repeats what was said before would be found in its place
WORD_CHARACTERS = 64  # of a longer one only the beginning counts: it is code, or data
PREFIX_CHARACTERS = 3  # a shorter word is the beginning of too many others
QUERY_CHARACTERS = 1_000
SNIPPET_CHARACTERS = 240
_LEAD_CHARACTERS = 60

# Scripts that put no blanks between words, and pictures: each character is a word, and a phrase of them is a word.
_SINGLE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff\u2190-\u2bff\U0001f000-\U0001faff"
)
# Not compiled here: that takes milliseconds of every start, and most don't search. `re` does it once.
_WORD = rf"[{_SINGLE}]|(?:(?![{_SINGLE}])[^\W_])+"
_ACCENTS = re.compile("[\u0300-\u036f]")

Phrase = tuple[str, ...]


class SearchableLine(Struct, frozen=True):
    """Something that was said."""

    turn: str
    at: float
    who: str
    text: str


def lines_of(record: AnyRecord) -> list[SearchableLine]:
    """Return what a record has to be found by; most have nothing."""
    match record:
        case TurnStarted(turn=turn, messages=messages) | Steered(turn=turn, messages=messages):
            lines = [SearchableLine(turn, record.at, message.author or PERSON, _asked(message)) for message in messages]
        case Replied(turn=turn, message=message):
            lines = [SearchableLine(turn, record.at, HARK, _replied(message))]
        case CallEnded(turn=turn, result=result) if result.name not in LOOKING_BACK:
            lines = [SearchableLine(turn, record.at, result.name, result.text[:RESULT_CHARACTERS])]
        case _:
            lines = []
    return [line for line in lines if line.text.strip()]


def _asked(message: UserMessage) -> str:
    return "\n".join([message.text, *(attachment.name for attachment in message.attachments if attachment.name)])


def _replied(message: AssistantMessage) -> str:
    calls = (f"{call.name} {call.arguments}" for call in message.calls if call.name not in LOOKING_BACK)
    return "\n".join([message.text, *calls]) if message.calls else message.text


def words(text: str) -> list[str]:
    """Return the words of a text, without case and accents."""
    return [word[:WORD_CHARACTERS] for word in re.findall(_WORD, _fold(text))]


def phrases(query: str) -> list[Phrase]:
    """Return what a query asks for: each piece between blanks is a phrase of words that stand side by side."""
    pieces = (tuple(words(piece)) for piece in query[:QUERY_CHARACTERS].split())
    return list(dict.fromkeys(piece for piece in pieces if piece))


def has_phrase(kept: list[str], phrase: Phrase) -> bool:
    """Tell whether words have a phrase; its last word may be the beginning of a longer one."""
    *begin, last = phrase
    count = len(begin)
    return any(
        kept[place : place + count] == begin and _is_begun(last, kept[place + count])
        for place in range(len(kept) - count)
    )


def is_prefix(word: str) -> bool:
    """Tell whether a word of a query also means the words that begin with it."""
    return len(word) >= PREFIX_CHARACTERS


def snippet(text: str, wanted: Sequence[Phrase]) -> str:
    """Return the part of a text around the first place of a wanted phrase's first word, on one line."""
    found = ((match.start(), _fold(match.group())) for match in re.finditer(_WORD, text))
    place = next((start for start, word in found if any(_is_begun(phrase[0], word) for phrase in wanted)), 0)
    start = max(0, place - _LEAD_CHARACTERS)
    end = start + SNIPPET_CHARACTERS
    cut = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{cut}{'…' if end < len(text) else ''}"


def _is_begun(wanted: str, word: str) -> bool:
    return word == wanted or (is_prefix(wanted) and word.startswith(wanted))


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFC", bare).casefold()
