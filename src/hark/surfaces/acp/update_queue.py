"""A session's updates for the editor, in order. Text chunks are merged while the editor is slow."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from acp import update_agent_message_text, update_agent_thought_text
from acp.helpers import SessionUpdate
from acp.schema import ConfigOptionUpdate

from hark.surfaces.acp.tool_calls import EditorToolCall

Update = SessionUpdate | ConfigOptionUpdate
SendUpdate = Callable[[Update], Awaitable[None]]


@dataclass(slots=True)
class TextUpdate:
    """Queued text from the model, sent as one update."""

    is_thought: bool
    chunks: list[str] = field(default_factory=list[str])

    def as_update(self) -> Update:
        """Return the whole text as one update."""
        text = "".join(self.chunks)
        return update_agent_thought_text(text) if self.is_thought else update_agent_message_text(text)


@dataclass(slots=True)
class OutputUpdate:
    """The latest unsent output of a running tool."""

    call: EditorToolCall
    text: str = ""

    def as_update(self) -> Update:
        """Return the current output as an update."""
        return self.call.output_update(self.text)


class UpdateQueue:
    """A queue that accepts updates without waiting; `run` sends them. An item that is being sent no longer changes."""

    def __init__(self, send: SendUpdate) -> None:
        self._send = send
        self._items: deque[Update | TextUpdate | OutputUpdate] = deque()
        self._unsent_outputs: dict[str, OutputUpdate] = {}
        self._added_count = 0
        self._sent_count = 0
        self._item_added = asyncio.Event()
        self._item_sent = asyncio.Event()

    def add(self, update: Update | TextUpdate | OutputUpdate) -> None:
        """Add an update."""
        self._items.append(update)
        self._added_count += 1
        self._item_added.set()

    def add_text(self, text: str, *, is_thought: bool = False) -> None:
        """Add a piece of the model's text or thinking."""
        last = self._items[-1] if self._items else None
        if not isinstance(last, TextUpdate) or last.is_thought != is_thought:
            last = TextUpdate(is_thought)
            self.add(last)
        last.chunks.append(text)

    def add_output(self, call: EditorToolCall, text: str) -> None:
        """Add a running tool's output, replacing unsent output of the same call."""
        item = self._unsent_outputs.get(call.call_id)
        if item is None:
            item = self._unsent_outputs[call.call_id] = OutputUpdate(call)
            self.add(item)
        item.text = text

    async def wait_until_sent(self) -> None:
        """Wait until every update added so far is sent."""
        target_count = self._added_count
        while self._sent_count < target_count:
            self._item_sent.clear()
            await self._item_sent.wait()

    async def run(self) -> None:
        """Send the updates until cancelled."""
        while True:
            while not self._items:
                self._item_added.clear()
                await self._item_added.wait()
            await self._send(self._pop_update())
            self._sent_count += 1
            self._item_sent.set()

    def _pop_update(self) -> Update:
        item = self._items.popleft()
        if isinstance(item, OutputUpdate):
            del self._unsent_outputs[item.call.call_id]
        return item.as_update() if isinstance(item, TextUpdate | OutputUpdate) else item
