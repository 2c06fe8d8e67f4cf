"""The real engine on a store in memory and a scripted provider, with a screen that waits for things."""

import itertools
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from hark.engine.door import Door
from hark.engine.fanout import Subscription
from hark.engine.quarantine import Quarantine
from hark.engine.router import Router
from hark.engine.workbench import Route, Workbench
from hark.protocol.commands import Delivery, Interrupt, Say
from hark.protocol.events import AnyEvent, ReceiptChanged, ReplyDelta, TurnEnd
from hark.protocol.outcomes import Outcome
from hark.protocol.provider import Provider
from hark.protocol.receipts import Receipt, ReceiptState, Settled
from hark.protocol.rules import Rules
from hark.protocol.store import Store
from hark.protocol.tool import Tool
from hark.store.memory import Memory, MemoryStore
from hark.tools.toolbox import Toolbox


class TestClock:
    """Real time, countable names."""

    __test__ = False

    def __init__(self) -> None:
        self._names = itertools.count(1)

    def now(self) -> float:
        return time.time()

    def new_id(self) -> str:
        return f"n{next(self._names)}"


def make_bench(
    provider: Provider, store: Store | None = None, tools: Iterable[Tool] = (), rules: Rules | None = None
) -> Workbench:
    clock = TestClock()
    return Workbench(
        store=store or MemoryStore(Memory(), "test", clock),
        routes=[Route("main", provider)],
        tools=Toolbox(tools),
        rules=rules or Rules(),
        clock=clock,
        quarantine=Quarantine(),
        workspace=Path.cwd(),
        system_prompt=lambda: "You are a test.",
        jitter=lambda: 0.0,
    )


class Screen:
    """What a person sees of a session: all events, kept."""

    def __init__(self, door: Door) -> None:
        self.events: list[AnyEvent] = []
        self._reader: Subscription = door.subscribe()
        self._changed = anyio.Event()

    async def watch(self) -> None:
        async for event in self._reader:
            self.events.append(event)
            self._changed.set()
            self._changed = anyio.Event()

    async def until(self, is_true: Callable[[], bool]) -> None:
        """Wait for the screen to show something."""
        while not is_true():
            await self._changed.wait()

    @property
    def outcomes(self) -> list[Outcome]:
        return [event.outcome for event in self.events if isinstance(event, TurnEnd)]

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, ReplyDelta))

    def states(self, message: str) -> list[ReceiptState]:
        """The states that a message went through."""
        receipts = (event.receipt for event in self.events if isinstance(event, ReceiptChanged))
        return [receipt.state for receipt in receipts if receipt.id == message]

    async def shows(self, kind: type[AnyEvent]) -> AnyEvent:
        """Wait for the first event of a kind."""
        await self.until(lambda: any(isinstance(event, kind) for event in self.events))
        return next(event for event in self.events if isinstance(event, kind))


class Person:
    """Somebody in front of one session."""

    def __init__(self, door: Door, screen: Screen) -> None:
        self.door = door
        self.screen = screen
        self._names = itertools.count(1)

    async def say(self, text: str, delivery: Delivery = Delivery.INTERRUPT, name: str = "") -> Receipt:
        return await self.door.say(Say(name or f"m{next(self._names)}", text, delivery))

    async def stop(self, turn: str = "", shown: int | None = None) -> Settled | None:
        return await self.door.interrupt(Interrupt(f"i{next(self._names)}", "user", turn, shown))

    @property
    def transcript(self) -> Sequence[object]:
        return self.door.state.transcript.messages


@asynccontextmanager
async def running(bench: Workbench, session: str = "demo", *, sweeps: bool = False) -> AsyncGenerator[Person]:
    """A person in front of a running session; settled and closed at the end."""
    router = Router(bench, sweeps=sweeps)
    async with anyio.create_task_group() as tasks:
        await tasks.start(router.run)
        door = router.door(session)
        screen = Screen(door)
        tasks.start_soon(screen.watch)
        yield Person(door, screen)
        await router.close()
        await bench.quarantine.close()
        tasks.cancel_scope.cancel()
