"""Builds a model's reply, complete or partial, from its chunks."""

from collections.abc import Callable, Collection

from msgspec import structs

from hark.protocol.messages import AssistantMessage, Call, Reasoning
from hark.protocol.outcomes import Usage
from hark.protocol.provider import (
    CallChunk,
    Chunk,
    EndChunk,
    KeepAliveChunk,
    ReasoningChunk,
    ReasoningEnd,
    TextChunk,
    UsageChunk,
)
from hark.text.lenient_json import parse_object

_CUT_REASONS = ("length", "refusal")


class ReplyBuilder:
    """The model's reply so far in this step."""

    def __init__(self) -> None:
        self.characters = 0
        self.usage = Usage()
        self.end: EndChunk | None = None
        self._text: list[str] = []
        self._reasoning: list[Reasoning] = []
        self._calls: dict[int, _CallBuilder] = {}

    @property
    def text(self) -> str:
        """The visible text so far."""
        return "".join(self._text)

    def text_since(self, piece: int) -> tuple[str, int]:
        """Return the text received after the given number of pieces, and the current number of pieces."""
        return "".join(self._text[piece:]), len(self._text)

    def add(self, chunk: Chunk) -> None:
        """Add a chunk to the reply."""
        match chunk:
            case TextChunk():
                self._text.append(chunk.text)
                self.characters += len(chunk.text)
            case ReasoningChunk():
                self.characters += len(chunk.text)
            case CallChunk():
                self._calls.setdefault(chunk.index, _CallBuilder()).add(chunk)
                self.characters += len(chunk.arguments)
            case ReasoningEnd(reasoning):
                preceding = sum(map(len, self._text))
                positioned = structs.replace(reasoning, behind_characters=preceding, behind_calls=len(self._calls))
                self._reasoning.append(positioned)
            case UsageChunk(usage):
                self.usage = usage
            case EndChunk():
                self.end = chunk
            case KeepAliveChunk():
                pass

    def finish(self, used_ids: Collection[str], new_id: Callable[[], str]) -> AssistantMessage:
        """Return the finished reply. Call ids that are empty or in `used_ids` are replaced; APIs require unique ids."""
        calls: list[Call] = []
        is_cut = self.end is not None and self.end.reason in _CUT_REASONS
        for _, open_call in sorted(self._calls.items()):
            call = open_call.finish(is_cut=is_cut)
            is_free = call.id and call.id not in used_ids and all(call.id != other.id for other in calls)
            calls.append(call if is_free else structs.replace(call, id=f"call_{new_id()}"))
        return AssistantMessage(self.text, tuple(calls), tuple(self._reasoning))

    def partial(self, shown: int | None = None) -> AssistantMessage:
        """Return an interrupted reply: the text that the user saw, without calls and unfinished reasoning."""
        text = self.text if shown is None else self.text[: max(shown, 0)]
        if not text.strip():
            text = ""  # the user saw nothing, and no API accepts an empty reply
        # Reasoning is sent back only before the text it led to; alone it would be an empty reply.
        thoughts = tuple(thought for thought in self._reasoning if thought.behind_characters < len(text))
        return AssistantMessage(text, (), thoughts, is_partial=True)


class _CallBuilder:
    """A call whose arguments are still arriving."""

    def __init__(self) -> None:
        self._id = ""
        self._name = ""
        self._arguments: list[str] = []

    def add(self, chunk: CallChunk) -> None:
        self._id = self._id or chunk.id
        self._name = self._name or chunk.name
        self._arguments.append(chunk.arguments)

    def finish(self, *, is_cut: bool) -> Call:
        text = "".join(self._arguments).strip()
        try:
            return Call(self._id, self._name, parse_object(text or ("" if is_cut else "{}"), is_cut=is_cut))
        except ValueError:
            return Call(self._id, self._name, broken=text or " ")
