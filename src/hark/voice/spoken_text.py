"""What of a written reply is spoken: sentences, without marks, code and addresses."""

import re
from collections.abc import Iterator

MOST_CHARACTERS = 400
CODE = "There is code, which is left out."

# Spans are bounded, so that no text takes more than its share of time.
_FENCE = re.compile(r"^[ \t]*(```|~~~)[^\n]*\n.*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_TABLE_RULE = re.compile(r"^[ \t:|-]+$", re.MULTILINE)
_PICTURE = re.compile(r"!\[([^\]\n]{0,300})\]\([^)\n]{0,2000}\)")
_LINK = re.compile(r"\[([^\]\n]{1,300})\]\([^)\n]{0,2000}\)")
_ADDRESS = re.compile(r"<?https?://([^\s/>)]+)[^\s>)]*>?")
_LINE_MARK = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+][ \t]+(?:\[[ xX]\][ \t]+)?)", re.MULTILINE)
_EMPHASIS = re.compile(r"(\*\*\*|\*\*|\*|___|__|~~)(?=[^\s*~])(.{1,300}?)(?<=\S)\1")
_UNDERLINE = re.compile(r"(?<!\w)_(?=[^\s_])(.{1,300}?)(?<=\S)_(?!\w)")
_TAG = re.compile(r"</?[a-zA-Z][^<>\n]{0,300}>")
_SIGNS = re.compile("[\u2190-\u21ff\u2300-\u23ff\u2500-\u27bf\u2b00-\u2bff\ufe0e\ufe0f\u200d\U0001f000-\U0001faff]")
_END = re.compile(r"(?<=[.!?:;…])[\"'”’)]*\s+|(?<=[。！？])\s*|\n+")  # a sentence's end, or a line's


def sentences(markdown: str) -> Iterator[str]:
    """Yield what is to be said, a sentence at a time, so that the first can be heard while the next is made."""
    for sentence in _END.split(_without_marks(markdown)):
        words = " ".join(sentence.split())
        while len(words) > MOST_CHARACTERS:
            cut = words.rfind(" ", 0, MOST_CHARACTERS)
            cut = MOST_CHARACTERS if cut <= 0 else cut
            yield words[:cut]
            words = words[cut:].strip()
        if any(character.isalnum() for character in words):
            yield words


def _without_marks(markdown: str) -> str:
    text = _FENCE.sub(f"\n{CODE}\n", markdown)
    text = _TABLE_RULE.sub("", text)
    text = _PICTURE.sub(r"\1", text)
    text = _LINK.sub(r"\1", text)
    text = _ADDRESS.sub(r"\1", text)
    text = _LINE_MARK.sub("", text)
    text = _EMPHASIS.sub(r"\2", text)
    text = _UNDERLINE.sub(r"\1", text)
    text = _TAG.sub("", text)
    text = text.replace("`", "").replace("|", ", ")
    return _SIGNS.sub("", text)
