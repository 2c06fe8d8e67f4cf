"""What belongs together: albums, and long texts that a client split, become one message."""

from collections.abc import Sequence

from msgspec import structs

from hark.protocol.chat import Incoming, Removed, Rewritten, Written

THROUGH = ".."  # between the ids of the first and the last part; in no platform's id
REMEMBERED = 50
FULL_SHARE = 0.9  # of the longest message that the platform takes: its client may have split a longer text here


def may_go_on(message: Written, characters: int) -> bool:
    """Tell whether more of the same may follow at once."""
    return bool(message.album) or len(message.text) >= characters * FULL_SHARE


def goes_on(last: Written, message: Written, characters: int) -> bool:
    """Tell whether a message goes on the one before it."""
    is_same = last.author.id == message.author.id and last.album == message.album and message.voice is None
    return is_same and may_go_on(last, characters)


def joined(messages: Sequence[Written]) -> Written:
    """Return several messages as the one that their author meant; its id names the first and the last."""
    first = messages[0]
    if len(messages) == 1:
        return first
    separator = "\n" if first.album else ""
    return structs.replace(
        first,
        id=f"{first.id}{THROUGH}{messages[-1].id}",
        text=separator.join(message.text for message in messages if message.text),
        attachments=tuple(file for message in messages for file in message.attachments),
        is_for_us=any(message.is_for_us for message in messages),
    )


def whole(batch: Sequence[Incoming]) -> Incoming | None:
    """Return what things that belong together say in the end, with their edits; None when all of it was deleted."""
    first = batch[0]
    if not isinstance(first, Written):
        return first
    parts = [one for one in batch if isinstance(one, Written)]
    for change in batch:
        if isinstance(change, Rewritten | Removed):
            parts = changed(parts, change)
    if not parts:
        return None
    name = joined([one for one in batch if isinstance(one, Written)]).id
    return structs.replace(joined(parts), id=name)


def changed(parts: Sequence[Written], change: Rewritten | Removed) -> list[Written]:
    """Return the parts of a message as they are after an edit or a deletion of one of them."""
    if isinstance(change, Removed):
        return [part for part in parts if part.id != change.id]
    return [structs.replace(part, text=change.text) if part.id == change.id else part for part in parts]


class MergedMessages:
    """Which messages went to the session as one, so that a change of a part becomes one of the whole."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._parts: dict[str, list[Written]] = {}

    def note(self, batch: Sequence[Incoming]) -> None:
        """These are one message now; after a while that is forgotten."""
        parts = [one for one in batch if isinstance(one, Written)]
        if len(parts) < 2:
            return
        name = joined(parts).id
        self._parts[name] = parts
        self._names.update((part.id, name) for part in parts)
        while len(self._parts) > REMEMBERED:
            for part in self._parts.pop(next(iter(self._parts))):
                self._names.pop(part.id, None)

    def after(self, change: Rewritten | Removed) -> tuple[str, str | None]:
        """Return the id of the message that a change is one of, and its text then: None when nothing is left of it."""
        name = self._names.get(change.id)
        if name is None:
            return change.id, change.text if isinstance(change, Rewritten) else None
        parts = self._parts[name] = changed(self._parts[name], change)
        return name, joined(parts).text if parts else None
