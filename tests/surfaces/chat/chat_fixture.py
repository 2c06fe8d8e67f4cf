"""A chat platform that lives in the test, on a real agent and a real ledger."""

import asyncio
import base64
import itertools
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio

import hark
from hark.app.pairing import Pairing
from hark.cli.serve.chat_surfaces import house_of
from hark.protocol.chat import Address, Author, ChatGone, Deliver, Incoming, Outgoing, PlatformLimits, Pressed, Written
from hark.protocol.messages import Attachment
from hark.protocol.speech import Transcriber
from hark.providers.scripted import Reply, ScriptedProvider
from hark.store.chat_ledger import SqliteChatLedger
from hark.surfaces.chat.people import People
from hark.surfaces.chat.platform import Platform
from hark.surfaces.chat.settings import ChatSettings
from hark.voice.inbox import VoiceIngress
from hark.voice.pending_recordings import PendingRecordings
from hark.voice.settings import VoiceSettings
from tests.waiting import until

ANN = Author("1", "Ann")
HOME = Address("test", "home")


@dataclass
class Shown:
    """A message of ours, as people see it now."""

    id: str
    address: Address
    message: Outgoing
    edits: int = 0


@dataclass
class TestChat:
    """A platform: what is put into `inbox` is delivered, what is sent is shown."""

    __test__ = False
    limits: PlatformLimits = field(default_factory=lambda: PlatformLimits(260, 0.01, has_reactions=True))
    name: str = "test"
    shown: list[Shown] = field(default_factory=list[Shown])
    signs: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    failing: list[Exception] = field(default_factory=list[Exception])
    failing_edits: list[Exception] = field(default_factory=list[Exception])
    slow_signs: asyncio.Event = field(default_factory=asyncio.Event)
    inbox: "asyncio.Queue[tuple[Incoming, asyncio.Event]]" = field(
        default_factory=asyncio.Queue[tuple[Incoming, asyncio.Event]]
    )
    agent: "hark.Agent | None" = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    names: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    async def run(self, deliver: Deliver) -> None:
        while True:
            incoming, acked = await self.inbox.get()
            await deliver(incoming)
            acked.set()

    async def send(self, address: Address, message: Outgoing) -> str:
        if self.failing:
            self._change()
            raise self.failing.pop(0)
        assert len(message.text) <= self.limits.characters
        self.shown.append(Shown(f"m{next(self.names)}", address, message))
        self._change()
        return self.shown[-1].id

    async def edit(self, address: Address, message: str, new: Outgoing) -> None:
        assert len(new.text) <= self.limits.characters
        if self.failing_edits:
            self._change()
            raise self.failing_edits.pop(0)
        one = next((one for one in self.shown if one.id == message), None)
        if one is None:
            raise ChatGone("it was deleted")
        one.message = new
        one.edits += 1
        self._change()

    async def typing(self, address: Address) -> None:
        return

    def __post_init__(self) -> None:
        self.slow_signs.set()

    async def react(self, address: Address, message: str, sign: str) -> None:
        await self.slow_signs.wait()
        self.signs.append((message, sign))
        self._change()

    # For the test.

    async def put(self, incoming: Incoming) -> None:
        """Deliver, and return when it was acked."""
        acked = asyncio.Event()
        self.inbox.put_nowait((incoming, acked))
        await acked.wait()

    async def write(self, text: str, name: str = "", author: Author = ANN, address: Address = HOME) -> None:
        await self.put(Written(name or f"p{next(self.names)}", address, author, text))

    async def speak(self, words: str, name: str = "", address: Address = HOME) -> None:
        """Send a recording; the ears of the test hear its bytes as its words."""
        voice = Attachment("audio/ogg", data=base64.b64encode(words.encode()).decode())
        await self.put(Written(name or f"p{next(self.names)}", address, ANN, voice=voice))

    async def press(self, text: str) -> None:
        """Press the newest button that has these words."""
        for one in reversed(self.shown):
            for button in one.message.buttons:
                if text in button.text:
                    await self.put(Pressed(f"b{next(self.names)}", one.address, ANN, button.value))
                    return
        raise AssertionError(f"no button {text}")

    @property
    def texts(self) -> list[str]:
        return [one.message.text for one in self.shown]

    async def until(self, is_true: Callable[[], bool]) -> None:
        await until(is_true, changed=self.changed, shows=lambda: self.texts)

    async def says(self, *texts: str) -> None:
        """Wait until the newest messages are these."""
        await self.until(lambda: self.texts[-len(texts) :] == list(texts))

    async def steers(self, text: str) -> None:
        """Wait until a message with that text waits at the session."""
        assert self.agent is not None
        session = self.agent.session("test:home")

        async def is_queued() -> bool:
            return text in [item.text for item in await session.queue()]

        await until(is_queued, shows=lambda: self.texts)

    def _change(self) -> None:
        self.changed.set()


@asynccontextmanager
async def chatting(
    home: Path,
    script: Sequence[Reply],
    chat: TestChat | None = None,
    settings: ChatSettings | None = None,
    ears: Transcriber | None = None,
    timing: Mapping[str, float] | None = None,
    **sections: Any,
) -> AsyncGenerator[tuple[TestChat, ScriptedProvider]]:
    """A platform on a real agent, whose owner has let Ann in by the settings; `timing` is that of ChatServices."""
    chat = chat or TestChat()
    settings = settings or ChatSettings(allow=("1",))
    provider = ScriptedProvider(script)

    async with hark.open(home=home, workspace=home, routes=[{"provider": provider}], **sections) as agent:
        ledger = SqliteChatLedger(home / "gateway.db")
        people = People("test", settings.allow, Pairing(home / "pairing.json"), settings.per_minute)
        ingress = VoiceIngress(ears, PendingRecordings(home / "voice"), VoiceSettings())
        platform = Platform(chat, settings, people, replace(house_of(agent, ledger), ingress=ingress, **(timing or {})))
        agent.bench.starts.listen(platform.turn_started)
        chat.agent = agent
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(platform.run)
            yield chat, provider
            tasks.cancel_scope.cancel()
        await ingress.close()
        await ledger.close()
