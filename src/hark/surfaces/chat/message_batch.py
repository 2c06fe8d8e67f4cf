"""Merges albums, and long texts that a client has split, into one message."""

from collections.abc import Sequence

from msgspec import structs

from hark.protocol.chat import IncomingEvent, IncomingMessage, MessageDeleted, MessageEdited

ID_RANGE = ".."  # between the ids of the first and the last part; doesn't occur in any platform's ids
MAX_REMEMBERED = 50
FULL_MESSAGE_RATIO = 0.9  # of the platform's maximum message length; a client may have split a longer text here


def may_continue(message: IncomingMessage, max_characters: int) -> bool:
    """Return whether another part of the same message may follow."""
    return bool(message.album) or len(message.text) >= max_characters * FULL_MESSAGE_RATIO


def is_continuation(last: IncomingMessage, message: IncomingMessage, max_characters: int) -> bool:
    """Return whether a message continues the message before it."""
    is_same = last.author.id == message.author.id and last.album == message.album and message.voice is None
    return is_same and may_continue(last, max_characters)


def merge_messages(messages: Sequence[IncomingMessage]) -> IncomingMessage:
    """Merge several messages into one, whose id combines the ids of the first and the last message."""
    first = messages[0]
    if len(messages) == 1:
        return first
    separator = "\n" if first.album else ""
    return structs.replace(
        first,
        id=f"{first.id}{ID_RANGE}{messages[-1].id}",
        text=separator.join(message.text for message in messages if message.text),
        attachments=tuple(file for message in messages for file in message.attachments),
        is_for_us=any(message.is_for_us for message in messages),
    )


def merge_batch(batch: Sequence[IncomingEvent]) -> IncomingEvent | None:
    """Merge the messages of a batch and apply its edits and deletions. Return None if every message was deleted."""
    first = batch[0]
    if not isinstance(first, IncomingMessage):
        return first
    parts = [item for item in batch if isinstance(item, IncomingMessage)]
    for change in batch:
        if isinstance(change, MessageEdited | MessageDeleted):
            parts = apply_change(parts, change)
    if not parts:
        return None
    merged_id = merge_messages([item for item in batch if isinstance(item, IncomingMessage)]).id
    return structs.replace(merge_messages(parts), id=merged_id)


def apply_change(parts: Sequence[IncomingMessage], change: MessageEdited | MessageDeleted) -> list[IncomingMessage]:
    """Return the parts of a message after one of them was edited or deleted."""
    if isinstance(change, MessageDeleted):
        return [part for part in parts if part.id != change.id]
    return [structs.replace(part, text=change.text) if part.id == change.id else part for part in parts]


class MergedMessages:
    """Remembers which messages were merged, so that a change to one part can be applied to the merged message."""

    def __init__(self) -> None:
        self._merged_ids: dict[str, str] = {}
        self._parts: dict[str, list[IncomingMessage]] = {}

    def remember(self, batch: Sequence[IncomingEvent]) -> None:
        """Remember that these messages were merged. Only the last `MAX_REMEMBERED` merged messages are kept."""
        parts = [item for item in batch if isinstance(item, IncomingMessage)]
        if len(parts) < 2:
            return
        merged_id = merge_messages(parts).id
        self._parts[merged_id] = parts
        self._merged_ids.update((part.id, merged_id) for part in parts)
        while len(self._parts) > MAX_REMEMBERED:
            for part in self._parts.pop(next(iter(self._parts))):
                self._merged_ids.pop(part.id, None)

    def text_after(self, change: MessageEdited | MessageDeleted) -> tuple[str, str | None]:
        """Apply a change. Return the affected message's id, and its new text or None if nothing is left."""
        merged_id = self._merged_ids.get(change.id)
        if merged_id is None:
            return change.id, change.text if isinstance(change, MessageEdited) else None
        parts = self._parts[merged_id] = apply_change(self._parts[merged_id], change)
        return merged_id, merge_messages(parts).text if parts else None
