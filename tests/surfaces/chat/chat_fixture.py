"""A fake chat platform in the test process, with a real agent and a real ledger."""

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
from hark.app.pairing import PairingFile
from hark.cli.serve.chat_surfaces import chat_services
from hark.protocol.chat import (
    Address,
    Author,
    ButtonPressed,
    ChatGone,
    Deliver,
    IncomingEvent,
    IncomingMessage,
    OutgoingMessage,
    PlatformLimits,
)
from hark.protocol.messages import Attachment
from hark.protocol.speech import Transcriber
from hark.providers.scripted import ScriptedProvider, ScriptedReply
from hark.store.chat_ledger import SqliteChatLedger
from hark.surfaces.chat.platform import Platform
from hark.surfaces.chat.sender_policy import SenderPolicy
from hark.surfaces.chat.settings import ChatSettings
from hark.voice.inbox import TranscribingVoiceInbox
from hark.voice.pending_recordings import PendingRecordings
from hark.voice.settings import VoiceSettings
from tests.waiting import until

ANN = Author("1", "Ann")
HOME = Address("test", "home")


@dataclass
class ShownMessage:
    """A sent message as users currently see it."""

    id: str
    address: Address
    message: OutgoingMessage
    edits: int = 0


@dataclass
class TestChat:
    """A fake chat platform that delivers the events in `inbox` and records the sent messages in `shown`."""

    __test__ = False
    limits: PlatformLimits = field(default_factory=lambda: PlatformLimits(260, 0.01, has_reactions=True))
    name: str = "test"
    shown: list[ShownMessage] = field(default_factory=list[ShownMessage])
    reactions: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    send_errors: list[Exception] = field(default_factory=list[Exception])
    edit_errors: list[Exception] = field(default_factory=list[Exception])
    reactions_open: asyncio.Event = field(default_factory=asyncio.Event)
    inbox: "asyncio.Queue[tuple[IncomingEvent, asyncio.Event]]" = field(
        default_factory=asyncio.Queue[tuple[IncomingEvent, asyncio.Event]]
    )
    agent: "hark.Agent | None" = None
    ledger: SqliteChatLedger | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    ids: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    async def run(self, deliver: Deliver) -> None:
        while True:
            incoming, is_acked = await self.inbox.get()
            await deliver(incoming)
            is_acked.set()

    async def send(self, address: Address, message: OutgoingMessage) -> str:
        if self.send_errors:
            self._notify()
            raise self.send_errors.pop(0)
        assert len(message.text) <= self.limits.characters
        self.shown.append(ShownMessage(f"m{next(self.ids)}", address, message))
        self._notify()
        return self.shown[-1].id

    async def edit(self, address: Address, message: str, new: OutgoingMessage) -> None:
        assert len(new.text) <= self.limits.characters
        if self.edit_errors:
            self._notify()
            raise self.edit_errors.pop(0)
        shown = next((one for one in self.shown if one.id == message), None)
        if shown is None:
            raise ChatGone("the message was deleted")
        shown.message = new
        shown.edits += 1
        self._notify()

    async def show_typing(self, address: Address) -> None:
        return

    def __post_init__(self) -> None:
        self.reactions_open.set()

    async def react(self, address: Address, message: str, reaction: str) -> None:
        await self.reactions_open.wait()
        self.reactions.append((message, reaction))
        self._notify()

    # Methods for the tests.

    async def deliver(self, incoming: IncomingEvent) -> None:
        """Deliver an event and wait until the surface has acknowledged it."""
        is_acked = asyncio.Event()
        self.inbox.put_nowait((incoming, is_acked))
        await is_acked.wait()

    async def write(self, text: str, message_id: str = "", author: Author = ANN, address: Address = HOME) -> None:
        await self.deliver(IncomingMessage(message_id or f"p{next(self.ids)}", address, author, text))

    async def send_voice(self, transcript: str, message_id: str = "", address: Address = HOME) -> None:
        """Send a voice message. The fake transcribers return its bytes as the transcript."""
        voice = Attachment("audio/ogg", data=base64.b64encode(transcript.encode()).decode())
        await self.deliver(IncomingMessage(message_id or f"p{next(self.ids)}", address, ANN, voice=voice))

    async def press(self, text: str) -> None:
        """Press the newest button whose label contains this text."""
        for shown in reversed(self.shown):
            for button in shown.message.buttons:
                if text in button.text:
                    await self.deliver(ButtonPressed(f"b{next(self.ids)}", shown.address, ANN, button.value))
                    return
        raise AssertionError(f"no button {text}")

    @property
    def texts(self) -> list[str]:
        return [shown.message.text for shown in self.shown]

    async def until(self, is_done: Callable[[], bool]) -> None:
        await until(is_done, changed=self.changed, shows=lambda: self.texts)

    async def until_last_texts(self, *texts: str) -> None:
        """Wait until the newest messages have these texts."""
        await self.until(lambda: self.texts[-len(texts) :] == list(texts))

    async def until_queued(self, text: str) -> None:
        """Wait until a message with this text is queued in the session."""
        assert self.agent is not None
        session = self.agent.session("test:home")

        async def is_queued() -> bool:
            return text in [item.text for item in await session.queue()]

        await until(is_queued, shows=lambda: self.texts)

    def _notify(self) -> None:
        self.changed.set()


@asynccontextmanager
async def chat_platform(
    home: Path,
    script: Sequence[ScriptedReply],
    chat: TestChat | None = None,
    settings: ChatSettings | None = None,
    transcriber: Transcriber | None = None,
    timing: Mapping[str, float] | None = None,
    provider: ScriptedProvider | None = None,
    **sections: Any,
) -> AsyncGenerator[tuple[TestChat, ScriptedProvider]]:
    """Run a fake platform with a real agent. The settings allow Ann. `timing` overrides fields of ChatServices.

    `provider` replaces the one that plays `script`.
    """
    chat = chat or TestChat()
    settings = settings or ChatSettings(allow=("1",))
    provider = provider or ScriptedProvider(script)

    async with hark.open(home=home, workspace=home, routes=[{"provider": provider}], **sections) as agent:
        ledger = SqliteChatLedger(home / "gateway.db")
        senders = SenderPolicy("test", settings.allow, PairingFile(home / "pairing.json"), settings.per_minute)
        ingress = TranscribingVoiceInbox(transcriber, PendingRecordings(home / "voice"), VoiceSettings())
        platform = Platform(
            chat, settings, senders, replace(chat_services(agent, ledger), ingress=ingress, **(timing or {}))
        )
        agent.engine.turn_started.add(platform.on_turn_started)
        chat.agent, chat.ledger = agent, ledger
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(platform.run)
            yield chat, provider
            tasks.cancel_scope.cancel()
        await ingress.close()
        await ledger.close()
