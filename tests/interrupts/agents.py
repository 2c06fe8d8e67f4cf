"""An agent on one of the three APIs, with a second route that should see nothing, and strict servers for both."""

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


class Look:
    """The tool that the fake replies call; with `hangs`, it runs until it is cancelled."""

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
    """One session, its servers, and all that its person saw."""

    session: hark.SessionHandle
    server: ModelServer
    second: ModelServer
    events: list[AnyEvent] = field(default_factory=list[AnyEvent])
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def watch(self) -> None:
        async for event in self.session.events():
            self.events.append(event)
            self.changed.set()
            self.changed = asyncio.Event()

    def all(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    async def until(self, is_true: Callable[[], bool]) -> None:
        await until(is_true, changed=lambda: self.changed.wait(), shows=lambda: self.events)

    async def ask(self, text: str) -> Outcome | None:
        """Say something, and wait for the end of its turn."""
        await self.session.say(text)
        return await self.session.idle()

    @property
    def shown(self) -> str:
        """The reply's text as a surface shows it: what was taken back is gone."""
        text = ""
        for event in self.events:
            if isinstance(event, ReplyDelta):
                text += event.text
            elif isinstance(event, ReplyRestarted):
                text = ""
        return text


@asynccontextmanager
async def conversing(
    home: Path,
    provider: str,
    script: Sequence[Behaviour],
    second: Sequence[Behaviour] | None = (),
    *,
    look: Look | None = None,
    **route: Any,
) -> AsyncGenerator[Conversation]:
    """A session whose first route plays `script`, and whose other one plays `second`; None for no other one."""
    async with ModelServer(script, is_strict=True) as server, ModelServer(second or (), is_strict=True) as other:
        usual = {"provider": provider, "model": "fake", "api_key": "sk-not-so-secret"}
        routes = [{"name": "first", "base_url": server.base_url, **usual, **route}]
        if second is not None:
            routes.append({"name": "second", "base_url": other.base_url, **usual})
        opened = hark.open(
            home=home, workspace=home, routes=routes, tools=[look or Look()], store={"url": "memory"}, sweeps=False
        )
        async with opened as agent:
            talk = Conversation(agent.session("demo"), server, other)
            watching = asyncio.create_task(talk.watch())
            await talk.session.opened()
            yield talk
        await watching


class Ear:
    """Knows when the client has heard all that a fake server said: it counts the bytes that are fed to the parser."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._heard = 0
        self._said = 0
        self._is_said = False
        self._changed = asyncio.Event()
        feed = SseParser.feed

        def counted(stream: SseParser, data: bytes) -> list[bytes]:
            self._heard += len(data)
            self._tell()
            return feed(stream, data)

        monkeypatch.setattr(SseParser, "feed", counted)

    def then_hang(self, chunks: Sequence[Chunk]) -> Behaviour:
        """These chunks, then silence."""

        async def play(exchange: Exchange) -> None:
            self._heard = self._said = 0
            await exchange.begin()
            for chunk in chunks:
                events = exchange.speaker.events([chunk])
                self._said += sum(len(sse(event)) for event in events)
                await exchange.events(*events)
            self._is_said = True
            self._tell()
            await asyncio.get_running_loop().create_future()

        return play

    async def heard_all(self) -> None:
        """Return when the last behaviour has said all, and the client has taken all of it."""
        while not self._is_said or self._heard < self._said:
            await self._changed.wait()
        self._is_said = False
        await asyncio.sleep(0)

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
