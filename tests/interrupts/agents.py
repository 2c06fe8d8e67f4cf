"""An agent on one of the three model APIs with strict fake servers. The second route should get no requests."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

import hark
from hark.protocol.events import AnyEvent, ReplyDelta, ReplyRestarted
from hark.protocol.outcomes import Outcome
from hark.protocol.provider import Chunk
from hark.protocol.tool import CallContext, ToolOutput, ToolSpec
from hark.providers.sse import SseParser
from tests.fakes.models.behaviours import Behaviour, Exchange, sse
from tests.fakes.models.server import ModelServer
from tests.waiting import until

E = TypeVar("E", bound=AnyEvent)
PROVIDERS = ("openai", "responses", "anthropic")
each_provider = pytest.mark.parametrize("provider", PROVIDERS)


class LookTool:
    """The tool that the fake model calls. If `hangs` is set, a call runs until it is cancelled."""

    def __init__(self, *, hangs: bool = False) -> None:
        self.started = asyncio.Event()
        self._hangs = hangs

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec("look", "Look.", {"type": "object", "properties": {"place": {"type": "string"}}})

    async def run(self, arguments: Any, context: CallContext) -> ToolOutput:
        self.started.set()
        if self._hangs:
            await asyncio.get_running_loop().create_future()
        return ToolOutput("seen")


@dataclass
class Conversation:
    """A session with its fake servers and all its events."""

    session: hark.SessionHandle
    server: ModelServer
    second_server: ModelServer
    events: list[AnyEvent] = field(default_factory=list[AnyEvent])
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def record_events(self) -> None:
        async for event in self.session.events():
            self.events.append(event)
            self.changed.set()
            self.changed = asyncio.Event()

    def events_of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    async def until(self, is_true: Callable[[], bool]) -> None:
        await until(is_true, changed=lambda: self.changed.wait(), shows=lambda: self.events)

    async def ask(self, text: str) -> Outcome | None:
        """Send a message and wait for the end of its turn."""
        await self.session.say(text)
        return await self.session.idle()

    @property
    def visible_reply(self) -> str:
        """The text of the reply as a surface shows it, without the text of attempts that were restarted."""
        text = ""
        for event in self.events:
            if isinstance(event, ReplyDelta):
                text += event.text
            elif isinstance(event, ReplyRestarted):
                text = ""
        return text


@asynccontextmanager
async def open_conversation(
    home: Path,
    provider: str,
    script: Sequence[Behaviour],
    second: Sequence[Behaviour] | None = (),
    *,
    look_tool: LookTool | None = None,
    **route: Any,
) -> AsyncGenerator[Conversation]:
    """Open a session with two routes that play `script` and `second`, or with one route if `second` is None."""
    async with ModelServer(script, is_strict=True) as server, ModelServer(second or (), is_strict=True) as other:
        common = {"provider": provider, "model": "fake", "api_key": "sk-not-so-secret"}
        routes = [{"name": "first", "base_url": server.base_url, **common, **route}]
        if second is not None:
            routes.append({"name": "second", "base_url": other.base_url, **common})
        opening = hark.open(
            home=home,
            workspace=home,
            routes=routes,
            tools=[look_tool or LookTool()],
            store={"url": "memory"},
            sweeps=False,
        )
        async with opening as agent:
            conversation = Conversation(agent.session("demo"), server, other)
            recording = asyncio.create_task(conversation.record_events())
            await conversation.session.wait_until_loaded()
            yield conversation
        await recording


class ParserMonitor:
    """Detects when the client has parsed all bytes that a fake server sent, by counting the bytes fed to the parser."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._parsed_bytes = 0
        self._sent_bytes = 0
        self._is_sending_done = False
        self._changed = asyncio.Event()
        feed = SseParser.feed

        def counting_feed(stream: SseParser, data: bytes) -> list[bytes]:
            self._parsed_bytes += len(data)
            self._notify()
            return feed(stream, data)

        monkeypatch.setattr(SseParser, "feed", counting_feed)

    def send_then_hang(self, chunks: Sequence[Chunk]) -> Behaviour:
        """Return a behaviour that sends these chunks and then hangs."""

        async def play(exchange: Exchange) -> None:
            self._parsed_bytes = self._sent_bytes = 0
            await exchange.begin()
            for chunk in chunks:
                events = exchange.event_writer.events([chunk])
                self._sent_bytes += sum(len(sse(event)) for event in events)
                await exchange.send_events(*events)
            self._is_sending_done = True
            self._notify()
            await asyncio.get_running_loop().create_future()

        return play

    async def wait_until_parsed(self) -> None:
        """Wait until the last behaviour has sent all its chunks and the client has parsed them."""
        while not self._is_sending_done or self._parsed_bytes < self._sent_bytes:
            await self._changed.wait()
        self._is_sending_done = False
        await asyncio.sleep(0)

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
