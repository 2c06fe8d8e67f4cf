"""What one session's editor is to be shown, in order; pieces are joined while the editor is slow."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from acp import update_agent_message_text, update_agent_thought_text
from acp.helpers import SessionUpdate
from acp.schema import ConfigOptionUpdate

from hark.surfaces.acp.tool_calls import ShownCall

Update = SessionUpdate | ConfigOptionUpdate
Send = Callable[[Update], Awaitable[None]]


@dataclass(slots=True)
class Words:
    """Text of the model that waits to be sent, as one piece."""

    is_thought: bool
    pieces: list[str] = field(default_factory=list[str])

    def as_update(self) -> Update:
        """Return all of it in one update."""
        text = "".join(self.pieces)
        return update_agent_thought_text(text) if self.is_thought else update_agent_message_text(text)


@dataclass(slots=True)
class OutputUpdate:
    """The newest of a running tool's output that waits to be sent."""

    call: ShownCall
    text: str = ""

    def as_update(self) -> Update:
        """Return it as it is now."""
        return self.call.printed(self.text)


class UpdateQueue:
    """Takes updates without waiting; `run` sends them. An item that is being sent is not changed any more."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._items: deque[Update | Words | OutputUpdate] = deque()
        self._printed: dict[str, OutputUpdate] = {}
        self._put = 0
        self._sent = 0
        self._came = asyncio.Event()
        self._went = asyncio.Event()

    def put(self, update: Update | Words | OutputUpdate) -> None:
        """Add an update."""
        self._items.append(update)
        self._put += 1
        self._came.set()

    def say(self, text: str, *, is_thought: bool = False) -> None:
        """Add a piece of the model's text or thinking."""
        last = self._items[-1] if self._items else None
        if not isinstance(last, Words) or last.is_thought != is_thought:
            last = Words(is_thought)
            self.put(last)
        last.pieces.append(text)

    def print(self, call: ShownCall, text: str) -> None:
        """Add a running tool's output; it takes the place of what still waits of the same tool."""
        item = self._printed.get(call.name)
        if item is None:
            item = self._printed[call.name] = OutputUpdate(call)
            self.put(item)
        item.text = text

    async def flushed(self) -> None:
        """Return when all that was put until now is sent."""
        until = self._put
        while self._sent < until:
            self._went.clear()
            await self._went.wait()

    async def run(self) -> None:
        """Send what comes, until cancelled."""
        while True:
            while not self._items:
                self._came.clear()
                await self._came.wait()
            await self._send(self._next())
            self._sent += 1
            self._went.set()

    def _next(self) -> Update:
        item = self._items.popleft()
        if isinstance(item, OutputUpdate):
            del self._printed[item.call.name]
        return item.as_update() if isinstance(item, Words | OutputUpdate) else item
