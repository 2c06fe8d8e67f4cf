"""What belongs together: albums, and long texts that a client split, become one message."""

from collections.abc import Sequence

from msgspec import structs

from hark.protocol.chat import Written

FULL_SHARE = 0.9  # of the longest message that the platform takes: its client may have split a longer text here


def may_go_on(message: Written, characters: int) -> bool:
    """Tell whether more of the same may follow at once."""
    return bool(message.album) or len(message.text) >= characters * FULL_SHARE


def goes_on(last: Written, message: Written, characters: int) -> bool:
    """Tell whether a message goes on the one before it."""
    is_same = last.author.id == message.author.id and last.album == message.album and message.voice is None
    return is_same and may_go_on(last, characters)


def joined(messages: Sequence[Written]) -> Written:
    """Return several messages as the one that their author meant; it has the first one's id."""
    first = messages[0]
    if len(messages) == 1:
        return first
    separator = "\n" if first.album else ""
    return structs.replace(
        first,
        text=separator.join(message.text for message in messages if message.text),
        attachments=tuple(file for message in messages for file in message.attachments),
        is_for_us=any(message.is_for_us for message in messages),
    )
