"""Work behind the scenes: it keeps what is worth keeping, and delays nobody, whatever is wedged."""

import logging
import statistics
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Unpack, cast

import anyio
import pytest

from hark.app.reflection import Reflection
from hark.engine.services import EngineServices
from hark.engine.session.proxy import SessionProxy
from hark.engine.session.restrictions import Restrictions
from hark.engine.session.router import Router
from hark.protocol.commands import Answer, Delivery, Interrupt, Say
from hark.protocol.events import AnyEvent, CallStart, StepStart
from hark.protocol.messages import CallResult
from hark.protocol.names import belongs_to
from hark.protocol.outcomes import Completed, Interrupted, Outcome
from hark.protocol.provider import CallChunk, ProviderError, Request
from hark.protocol.receipts import Receipt, Refusal, Settled
from hark.protocol.rules import ApprovalMode, Approvals, Limits, Rules
from hark.protocol.session import Details, EventReader, Session
from hark.protocol.store import Query
from hark.providers.scripted import Fail, Hang, ScriptedProvider, Step
from hark.store.sqlite import SqliteStore
from hark.tools.notes.memory import MemoryTool
from hark.tools.notes.notes import notes_of_person
from tests.engine.engine_fixture import TestClock, make_bench
from tests.tools.notes.test_memory import held
from tests.waiting import at_most, until

KEEP = '{"action": "add", "text": "Likes teal", "scope": "user"}'
NOISE_SECONDS = at_most(0.05)

Reply = Callable[[Request], list[Step]]


class Visitor:
    """A session's port, straight through its door."""

    def __init__(self, door: SessionProxy, bench: EngineServices) -> None:
        self._door = door
        self._bench = bench

    @property
    def id(self) -> str:
        return self._door.id

    async def say(self, text: str, delivery: Delivery | str | None = None, **details: Unpack[Details]) -> Receipt:
        return await self._door.say(Say(details.get("id") or self._bench.clock.new_id(), text))

    async def interrupt(self, source: str = "user", turn: str = "", shown: int | None = None) -> Settled | None:
        return await self._door.interrupt(Interrupt(self._bench.clock.new_id(), source, turn, shown))

    async def answer(self, question: str, text: str) -> Refusal | None:
        return await self._door.answer(Answer(self._bench.clock.new_id(), question, text))

    def events(self) -> EventReader:
        return self._door.subscribe()

    async def idle(self) -> Outcome | None:
        return await self._door.idle()


class World:
    """A running engine on a file, with a reflection beside it."""

    def __init__(self, bench: EngineServices, provider: ScriptedProvider) -> None:
        self.bench = bench
        self.router = Router(bench, sweeps=True)
        self.provider = provider
        self.reflection = Reflection(self.open_child, pause_seconds=0.0)
        self.children: list[str] = []
        self._has_child = anyio.Event()

    def session(self, name: str) -> Session:
        return cast("Session", Visitor(self.router.door(name), self.bench))

    def open_child(self, name: str) -> Session:
        if len(name) > 200:
            raise ValueError("too long for a name")
        self.children.append(name)
        self._has_child.set()
        self._has_child = anyio.Event()
        self.router.charter(name, Restrictions(("memory",), Limits(steps=5)))
        return self.session(name)

    async def child_begun(self, number: int = 0) -> Session:
        """Return a child when it is opened."""
        await until(lambda: len(self.children) > number, changed=lambda: self._has_child.wait())
        return self.session(self.children[number])

    async def child_reached(self, kind: type[AnyEvent], number: int = 0) -> None:
        """Return when a child that was just opened has come to an event."""
        child = await self.child_begun(number)
        async for event in child.events():
            if isinstance(event, kind):
                return

    async def child_ended(self, number: int = 0) -> Session:
        """Return a child when it is quiet again."""
        child = await self.child_begun(number)
        await child.idle()
        return child


@asynccontextmanager
async def opened(
    home: Path, child: Reply, *, reflects: bool = True, rules: Rules | None = None
) -> AsyncGenerator[World]:
    """A world whose model says "answer" to people, and what `child` says behind the scenes."""

    def reply(request: Request) -> list[Step]:
        return child(request) if is_child(request) else ["answer"]

    provider = ScriptedProvider([reply] * 200)
    store = await SqliteStore.open(home / "hark.db", "me", TestClock())
    bench = replace(make_bench(provider, store, [MemoryTool(home)], rules), workspace=home)
    world = World(bench, provider)
    async with anyio.create_task_group() as tasks:
        await tasks.start(world.router.run)
        if reflects:
            await tasks.start(world.reflection.run)
        try:
            yield world
        finally:
            with anyio.move_on_after(4.0, shield=True):
                world.reflection.close()
                await world.router.close()
                await bench.quarantine.close()
            tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await store.close()


def is_child(request: Request) -> bool:
    return any(message.text.startswith("Look back at the exchange") for message in request.messages[:1])


def keeps(request: Request) -> list[Step]:
    if any(isinstance(message, CallResult) for message in request.messages):
        return ["done"]
    return [CallChunk(0, "c1", "memory", KEEP)]


async def said(session: Session, text: str = "I like teal") -> float:
    """Say something; return the seconds until its turn was over."""
    began = time.monotonic()
    await session.say(text)
    assert await session.idle() == Completed("answer")
    return time.monotonic() - began


async def test_what_is_worth_keeping_is_kept_by_a_child_that_can_do_nothing_else(tmp_path: Path) -> None:
    async with opened(tmp_path, keeps) as world:
        session = world.session("demo")
        world.reflection.follow(session)
        world.reflection.follow(session)
        await said(session)
        child = await world.child_ended()
        assert await child.idle() == Completed("done")
        assert notes_of_person(tmp_path).read() == ["Likes teal"]
        [request, _] = [request for request in world.provider.requests if is_child(request)]
        assert [spec.name for spec in request.tools] == ["memory"]
        assert "person: I like teal\nhark: answer" in request.messages[0].text
        assert belongs_to(child.id, "demo")
        assert len(world.children) == 1
        hits = await world.bench.store.search.find(Query("teal"))
        assert [hit.session for hit in hits] == ["demo"]


async def test_a_session_that_is_busy_again_has_its_reflection_cut(tmp_path: Path) -> None:
    hang = Hang()
    async with opened(tmp_path, lambda _: [hang]) as world:
        session = world.session("demo")
        world.reflection.follow(session)
        await said(session)
        await hang.reached.wait()
        await said(session, "and another thing")
        await hang.closed.wait()
        assert await (await world.child_ended()).idle() == Interrupted("behind the scenes")


async def test_the_last_exchange_counts_when_turns_follow_each_other(tmp_path: Path) -> None:
    async with opened(tmp_path, keeps) as world:
        world.reflection.turn_ended("demo", "person: first")
        world.reflection.turn_ended("demo", "person: second")
        await world.child_ended()
        assert len(world.children) == 1
        assert "person: second" in world.provider.requests[0].messages[0].text


async def test_children_and_silence_are_not_reflected_on(tmp_path: Path) -> None:
    async with opened(tmp_path, keeps) as world:
        for name in ("demo.m-1", "demo.c-call1"):
            world.reflection.turn_ended(name, "person: x")
            world.reflection.follow(world.session(name))
        world.reflection.turn_ended("demo", "  \n ")
        world.reflection.turn_ended("last", "person: y")
        await world.child_ended()
        assert [name.split(".")[0] for name in world.children] == ["last"]


async def test_a_cut_turn_is_not_reflected_on(tmp_path: Path) -> None:
    hang = Hang()
    async with opened(tmp_path, keeps) as world:
        world.provider._replies[0] = [hang]  # pyright: ignore[reportPrivateUsage]
        session = world.session("demo")
        world.reflection.follow(session)
        await session.say("long task")
        await hang.reached.wait()
        await session.interrupt()
        assert world.children == []
        await said(session)
        assert len((await world.child_ended()).id) > 0
        assert len(world.children) == 1


async def test_a_long_exchange_is_clipped(tmp_path: Path) -> None:
    async with opened(tmp_path, keeps) as world:
        world.reflection.turn_ended("demo", "begin " + "x" * 100_000 + " end")
        await world.child_ended()
        text = world.provider.requests[0].messages[0].text
        assert len(text) < 10_000
        assert "begin" in text
        assert " end\n" in text


async def test_failures_are_logged_and_reach_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "hark.app.reflection")

    def fails(_: Request) -> list[Step]:
        return [Fail(ProviderError("No such model.", code="bad_model"))]

    async with opened(tmp_path, fails) as world:
        session = world.session("demo")
        world.reflection.follow(session)
        await said(session)
        await world.child_ended()
        world.reflection.turn_ended("x" * 200, "person: a name that no child can have")
        await said(session)
        await world.child_ended(1)
    assert "ended as Failed" in caplog.text
    assert "reflection on session xxx" in caplog.text
    assert "teal" not in caplog.text


async def test_a_child_that_would_have_to_ask_is_stopped(tmp_path: Path) -> None:
    rules = Rules(approvals=Approvals(ApprovalMode.ASK))
    async with opened(tmp_path, keeps, rules=rules) as world:
        world.reflection.turn_ended("demo", "person: x")
        assert await (await world.child_ended()).idle() == Interrupted("behind the scenes")
        assert notes_of_person(tmp_path).read() == []


async def median_turn(home: Path, child: Reply = keeps, wedged_at: type[AnyEvent] | None = None) -> float:
    """Return the median seconds of a turn, each begun when the last one's reflection is wedged at such an event."""
    async with opened(home, child, reflects=wedged_at is not None) as world:
        session = world.session("demo")
        world.reflection.follow(session)
        turns: list[float] = []
        for number in range(9):
            turns.append(await said(session))
            if wedged_at is not None:
                await world.child_reached(wedged_at, number)
        return statistics.median(turns)


async def test_a_wedged_reflection_delays_neither_an_end_nor_a_start(tmp_path: Path) -> None:
    without = await median_turn(tmp_path / "without")
    with_it = await median_turn(tmp_path / "with", lambda _: [Hang()], StepStart)
    assert with_it - without < NOISE_SECONDS


async def test_a_wedged_write_delays_neither_an_end_nor_a_start(tmp_path: Path) -> None:
    without = await median_turn(tmp_path / "without")
    with held(tmp_path / "with"):
        with_it = await median_turn(tmp_path / "with", keeps, CallStart)
    assert with_it - without < NOISE_SECONDS
    assert notes_of_person(tmp_path / "with").read() == []


@pytest.mark.parametrize("wedge", ["model", "write"])
async def test_an_exit_is_not_held(tmp_path: Path, wedge: str) -> None:
    with held(tmp_path):
        async with opened(tmp_path, (lambda _: [Hang()]) if wedge == "model" else keeps) as world:
            session = world.session("demo")
            world.reflection.follow(session)
            await said(session)
            await world.child_reached(StepStart if wedge == "model" else CallStart)
            began = time.monotonic()
        assert time.monotonic() - began < at_most(2.5)
    assert notes_of_person(tmp_path).read() == []
