"""One reply of the model: chunks fold into it, whole or cut."""

from collections.abc import Callable, Collection

import msgspec
from msgspec import structs

from hark.protocol.messages import AssistantMessage, Call, Reasoning
from hark.protocol.outcomes import Usage
from hark.protocol.provider import (
    AliveChunk,
    CallChunk,
    Chunk,
    EndChunk,
    ReasoningChunk,
    ReasoningEnd,
    TextChunk,
    UsageChunk,
)

_ARGUMENTS = msgspec.json.Decoder(dict[str, object])


class Reply:
    """What the model has said so far in this step."""

    def __init__(self) -> None:
        self.characters = 0
        self.usage = Usage()
        self.end: EndChunk | None = None
        self._text: list[str] = []
        self._reasoning: list[Reasoning] = []
        self._calls: dict[int, _OpenCall] = {}

    @property
    def text(self) -> str:
        """The visible text so far."""
        return "".join(self._text)

    def text_from(self, piece: int) -> tuple[str, int]:
        """Return the text that came since the given count of pieces, and the count now."""
        return "".join(self._text[piece:]), len(self._text)

    def add(self, chunk: Chunk) -> None:
        """Take one more chunk."""
        match chunk:
            case TextChunk():
                self._text.append(chunk.text)
                self.characters += len(chunk.text)
            case ReasoningChunk():
                self.characters += len(chunk.text)
            case CallChunk():
                self._calls.setdefault(chunk.index, _OpenCall()).add(chunk)
                self.characters += len(chunk.arguments)
            case ReasoningEnd(reasoning):
                behind = sum(map(len, self._text))
                placed = structs.replace(reasoning, behind_characters=behind, behind_calls=len(self._calls))
                self._reasoning.append(placed)
            case UsageChunk(usage):
                self.usage = usage
            case EndChunk():
                self.end = chunk
            case AliveChunk():
                pass

    def whole(self, taken: Collection[str], new_id: Callable[[], str]) -> AssistantMessage:
        """Return the finished reply. A call id that is empty or `taken` is replaced: APIs want them unique."""
        calls: list[Call] = []
        for _, open_call in sorted(self._calls.items()):
            call = open_call.finish()
            is_free = call.id and call.id not in taken and all(call.id != other.id for other in calls)
            calls.append(call if is_free else structs.replace(call, id=f"call_{new_id()}"))
        return AssistantMessage(self.text, tuple(calls), tuple(self._reasoning))

    def partial(self, shown: int | None = None) -> AssistantMessage:
        """Return what stays of a reply that was cut: the text that was seen, no call, and no unfinished thought."""
        text = self.text if shown is None else self.text[: max(shown, 0)]
        if not text.strip():
            text = ""  # nobody saw anything, and no API takes an empty reply
        # Thinking is replayed only in front of what it led to; alone it would be an empty reply.
        thoughts = tuple(thought for thought in self._reasoning if thought.behind_characters < len(text))
        return AssistantMessage(text, (), thoughts, is_partial=True)


class _OpenCall:
    """A call whose arguments still come in."""

    def __init__(self) -> None:
        self._id = ""
        self._name = ""
        self._arguments: list[str] = []

    def add(self, chunk: CallChunk) -> None:
        self._id = self._id or chunk.id
        self._name = self._name or chunk.name
        self._arguments.append(chunk.arguments)

    def finish(self) -> Call:
        text = "".join(self._arguments).strip() or "{}"
        try:
            _ARGUMENTS.decode(text)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return Call(self._id, self._name, broken=text)
        return Call(self._id, self._name, text)
