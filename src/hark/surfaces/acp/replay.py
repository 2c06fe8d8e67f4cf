"""A session's past, as the updates that an editor would have seen."""

from collections.abc import Iterable, Iterator

from acp.schema import (
    AgentMessageChunk,
    AgentThoughtChunk,
    ImageContentBlock,
    TextContentBlock,
    UserMessageChunk,
)

from hark.protocol.messages import AssistantMessage, CallResult, Message, Note, UserMessage
from hark.surfaces.acp.plan import as_plan
from hark.surfaces.acp.tool_calls import ShownCall, todo_items
from hark.surfaces.acp.update_queue import Update


def replay(messages: Iterable[Message], folder: str) -> Iterator[Update]:
    """Yield the updates, in order. Notes are for the model alone."""
    calls: dict[str, ShownCall] = {}
    for message in messages:
        match message:
            case UserMessage():
                yield from _user(message)
            case AssistantMessage():
                yield from _assistant(message, calls, folder)
            case CallResult():
                call = calls.get(message.call)
                if call is not None:
                    yield call.ended(message.text, message.effect, is_error=message.is_error)
            case Note():
                pass


def _user(message: UserMessage) -> Iterator[Update]:
    if message.text:
        content = TextContentBlock(type="text", text=message.text)
        yield UserMessageChunk(session_update="user_message_chunk", content=content)
    for file in message.attachments:
        if file.data and file.media_type.startswith("image/"):
            image = ImageContentBlock(type="image", data=file.data, mime_type=file.media_type)
            yield UserMessageChunk(session_update="user_message_chunk", content=image)


def _assistant(message: AssistantMessage, calls: dict[str, ShownCall], folder: str) -> Iterator[Update]:
    thoughts = "\n\n".join(thought.text for thought in message.reasoning if thought.text)
    if thoughts:
        content = TextContentBlock(type="text", text=thoughts)
        yield AgentThoughtChunk(session_update="agent_thought_chunk", content=content)
    if message.text:
        content = TextContentBlock(type="text", text=message.text)
        yield AgentMessageChunk(session_update="agent_message_chunk", content=content)
    for call in message.calls:
        calls[call.id] = ShownCall(call.id, call.name, call.arguments, folder)
        yield calls[call.id].begin("pending")
        items = todo_items(call.name, call.arguments)
        if items is not None:
            yield as_plan(items)
