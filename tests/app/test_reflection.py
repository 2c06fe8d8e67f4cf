"""Background reflection stores useful facts and never delays a user, even when it is stuck."""

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
from hark.engine.session.router import SessionRouter
from hark.protocol.commands import Answer, Delivery, Interrupt, Say
from hark.protocol.events import AnyEvent, CallStart, StepStart
from hark.protocol.messages import CallResult
from hark.protocol.names import belongs_to
from hark.protocol.outcomes import Completed, Interrupted, Outcome
from hark.protocol.provider import CallChunk, ProviderError, Request
from hark.protocol.receipts import Receipt, Refusal, Settled
from hark.protocol.rules import ApprovalMode, Approvals, Limits, Rules
from hark.protocol.session import EventReader, MessageDetails, Session
from hark.protocol.store import SearchQuery
from hark.providers.scripted import Fail, Hang, ScriptedProvider, ScriptStep
from hark.store.sqlite import SqliteStore
from hark.tools.notes.memory import MemoryTool
from hark.tools.notes.notes import user_notes
from tests.engine.engine_fixture import TestClock, make_services
from tests.tools.notes.test_memory import hold_lock
from tests.waiting import at_most, until

ADD_NOTE = '{"action": "add", "text": "Likes teal", "scope": "user"}'
NOISE_SECONDS = at_most(0.05)

MakeReply = Callable[[Request], list[ScriptStep]]


class ProxySession:
    """A minimal test session that calls its proxy directly."""

    def __init__(self, proxy: SessionProxy, engine_services: EngineServices) -> None:
        self._proxy = proxy
        self._engine_services = engine_services

    @property
    def id(self) -> str:
        return self._proxy.id

    async def say(
        self, text: str, delivery: Delivery | str | None = None, **details: Unpack[MessageDetails]
    ) -> Receipt:
        return await self._proxy.say(Say(details.get("id") or self._engine_services.clock.new_id(), text))

    async def interrupt(self, source: str = "user", turn: str = "", shown: int | None = None) -> Settled | None:
        return await self._proxy.interrupt(Interrupt(self._engine_services.clock.new_id(), source, turn, shown))

    async def answer(self, question: str, text: str) -> Refusal | None:
        return await self._proxy.answer(Answer(self._engine_services.clock.new_id(), question, text))

    def events(self) -> EventReader:
        return self._proxy.subscribe()

    async def idle(self) -> Outcome | None:
        return await self._proxy.idle()


class ReflectionFixture:
    """A running engine on a database file, with reflection enabled."""

    def __init__(self, engine_services: EngineServices, provider: ScriptedProvider) -> None:
        self.engine_services = engine_services
        self.router = SessionRouter(engine_services, adopts_work=True)
        self.provider = provider
        self.reflection = Reflection(self.open_child, pause_seconds=0.0)
        self.children: list[str] = []
        self._has_child = anyio.Event()

    def session(self, name: str) -> Session:
        return cast("Session", ProxySession(self.router.proxy_for(name), self.engine_services))

    def open_child(self, name: str) -> Session:
        if len(name) > 200:
            raise ValueError("too long for a name")
        self.children.append(name)
        self._has_child.set()
        self._has_child = anyio.Event()
        self.router.set_restrictions(name, Restrictions(("memory",), Limits(steps=5)))
        return self.session(name)

    async def wait_for_child(self, number: int = 0) -> Session:
        """Wait until a child is opened, and return it."""
        await until(lambda: len(self.children) > number, changed=lambda: self._has_child.wait())
        return self.session(self.children[number])

    async def wait_for_child_event(self, event_type: type[AnyEvent], number: int = 0) -> None:
        """Wait until the child with this number publishes an event of this type."""
        child = await self.wait_for_child(number)
        async for event in child.events():
            if isinstance(event, event_type):
                return

    async def wait_for_child_end(self, number: int = 0) -> Session:
        """Wait until a child is idle again, and return it."""
        child = await self.wait_for_child(number)
        await child.idle()
        return child


@asynccontextmanager
async def open_fixture(
    home: Path, child_reply: MakeReply, *, is_reflecting: bool = True, rules: Rules | None = None
) -> AsyncGenerator[ReflectionFixture]:
    """Open a fixture whose model replies "answer" to users and calls `child_reply` for requests from children."""

    def reply(request: Request) -> list[ScriptStep]:
        return child_reply(request) if is_child_request(request) else ["answer"]

    provider = ScriptedProvider([reply] * 200)
    store = await SqliteStore.open(home / "hark.db", "me", TestClock())
    bench = replace(make_services(provider, store, [MemoryTool(home)], rules), workspace=home)
    fixture = ReflectionFixture(bench, provider)
    async with anyio.create_task_group() as tasks:
        await tasks.start(fixture.router.run)
        if is_reflecting:
            await tasks.start(fixture.reflection.run)
        try:
            yield fixture
        finally:
            with anyio.move_on_after(4.0, shield=True):
                fixture.reflection.close()
                await fixture.router.close()
                await bench.quarantine.close()
            tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await store.close()


def is_child_request(request: Request) -> bool:
    return any(message.text.startswith("Review the exchange") for message in request.messages[:1])


def reply_with_note(request: Request) -> list[ScriptStep]:
    if any(isinstance(message, CallResult) for message in request.messages):
        return ["done"]
    return [CallChunk(0, "c1", "memory", ADD_NOTE)]


async def run_turn(session: Session, text: str = "I like teal") -> float:
    """Send a message and return the seconds until its turn ended."""
    began = time.monotonic()
    await session.say(text)
    assert await session.idle() == Completed("answer")
    return time.monotonic() - began


async def test_a_fact_is_stored_by_a_child_session_with_only_the_memory_tool(tmp_path: Path) -> None:
    async with open_fixture(tmp_path, reply_with_note) as fixture:
        session = fixture.session("demo")
        fixture.reflection.follow(session)
        fixture.reflection.follow(session)
        await run_turn(session)
        child = await fixture.wait_for_child_end()
        assert await child.idle() == Completed("done")
        assert user_notes(tmp_path).read() == ["Likes teal"]
        [request, _] = [request for request in fixture.provider.requests if is_child_request(request)]
        assert [spec.name for spec in request.tools] == ["memory"]
        assert "user: I like teal\nhark: answer" in request.messages[0].text
        assert belongs_to(child.id, "demo")
        assert len(fixture.children) == 1
        hits = await fixture.engine_services.store.search.find(SearchQuery("teal"))
        assert [hit.session for hit in hits] == ["demo"]


async def test_a_new_turn_cancels_the_sessions_reflection(tmp_path: Path) -> None:
    hang = Hang()
    async with open_fixture(tmp_path, lambda _: [hang]) as fixture:
        session = fixture.session("demo")
        fixture.reflection.follow(session)
        await run_turn(session)
        await hang.reached.wait()
        await run_turn(session, "and another thing")
        await hang.closed.wait()
        assert await (await fixture.wait_for_child_end()).idle() == Interrupted("behind the scenes")


async def test_only_the_last_of_several_quick_exchanges_triggers_a_reflection(tmp_path: Path) -> None:
    async with open_fixture(tmp_path, reply_with_note) as fixture:
        fixture.reflection.turn_ended("demo", "person: first")
        fixture.reflection.turn_ended("demo", "person: second")
        await fixture.wait_for_child_end()
        assert len(fixture.children) == 1
        assert "person: second" in fixture.provider.requests[0].messages[0].text


async def test_child_sessions_and_empty_exchanges_trigger_no_reflection(tmp_path: Path) -> None:
    async with open_fixture(tmp_path, reply_with_note) as fixture:
        for name in ("demo.m-1", "demo.c-call1"):
            fixture.reflection.turn_ended(name, "person: x")
            fixture.reflection.follow(fixture.session(name))
        fixture.reflection.turn_ended("demo", "  \n ")
        fixture.reflection.turn_ended("last", "person: y")
        await fixture.wait_for_child_end()
        assert [name.split(".")[0] for name in fixture.children] == ["last"]


async def test_an_interrupted_turn_triggers_no_reflection(tmp_path: Path) -> None:
    hang = Hang()
    async with open_fixture(tmp_path, reply_with_note) as fixture:
        fixture.provider._replies[0] = [hang]  # pyright: ignore[reportPrivateUsage]
        session = fixture.session("demo")
        fixture.reflection.follow(session)
        await session.say("long task")
        await hang.reached.wait()
        await session.interrupt()
        assert fixture.children == []
        await run_turn(session)
        assert len((await fixture.wait_for_child_end()).id) > 0
        assert len(fixture.children) == 1


async def test_a_long_exchange_is_truncated_for_reflection(tmp_path: Path) -> None:
    async with open_fixture(tmp_path, reply_with_note) as fixture:
        fixture.reflection.turn_ended("demo", "begin " + "x" * 100_000 + " end")
        await fixture.wait_for_child_end()
        text = fixture.provider.requests[0].messages[0].text
        assert len(text) < 10_000
        assert "begin" in text
        assert " end\n" in text


async def test_reflection_failures_are_only_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "hark.app.reflection")

    def fail_reply(_: Request) -> list[ScriptStep]:
        return [Fail(ProviderError("No such model.", code="bad_model"))]

    async with open_fixture(tmp_path, fail_reply) as fixture:
        session = fixture.session("demo")
        fixture.reflection.follow(session)
        await run_turn(session)
        await fixture.wait_for_child_end()
        fixture.reflection.turn_ended("x" * 200, "person: a name that no child can have")
        await run_turn(session)
        await fixture.wait_for_child_end(1)
    assert "ended with outcome Failed" in caplog.text
    assert "reflection on session xxx" in caplog.text
    assert "teal" not in caplog.text


async def test_a_reflection_child_that_needs_an_approval_is_stopped(tmp_path: Path) -> None:
    rules = Rules(approvals=Approvals(ApprovalMode.ASK))
    async with open_fixture(tmp_path, reply_with_note, rules=rules) as fixture:
        fixture.reflection.turn_ended("demo", "person: x")
        assert await (await fixture.wait_for_child_end()).idle() == Interrupted("behind the scenes")
        assert user_notes(tmp_path).read() == []


async def median_turn_seconds(
    home: Path, child_reply: MakeReply = reply_with_note, stuck_at: type[AnyEvent] | None = None
) -> float:
    """Return the median turn duration. With `stuck_at`, earlier reflections hang after that type of event."""
    async with open_fixture(home, child_reply, is_reflecting=stuck_at is not None) as fixture:
        session = fixture.session("demo")
        fixture.reflection.follow(session)
        turns: list[float] = []
        for number in range(9):
            turns.append(await run_turn(session))
            if stuck_at is not None:
                await fixture.wait_for_child_event(stuck_at, number)
        return statistics.median(turns)


async def test_a_stuck_reflection_does_not_delay_turns(tmp_path: Path) -> None:
    without = await median_turn_seconds(tmp_path / "without")
    with_reflection = await median_turn_seconds(tmp_path / "with", lambda _: [Hang()], StepStart)
    assert with_reflection - without < NOISE_SECONDS


async def test_a_stuck_note_write_does_not_delay_turns(tmp_path: Path) -> None:
    without = await median_turn_seconds(tmp_path / "without")
    with hold_lock(tmp_path / "with"):
        with_reflection = await median_turn_seconds(tmp_path / "with", reply_with_note, CallStart)
    assert with_reflection - without < NOISE_SECONDS
    assert user_notes(tmp_path / "with").read() == []


@pytest.mark.parametrize("stuck_part", ["model", "write"])
async def test_a_stuck_reflection_does_not_delay_the_exit(tmp_path: Path, stuck_part: str) -> None:
    with hold_lock(tmp_path):
        async with open_fixture(
            tmp_path, (lambda _: [Hang()]) if stuck_part == "model" else reply_with_note
        ) as fixture:
            session = fixture.session("demo")
            fixture.reflection.follow(session)
            await run_turn(session)
            await fixture.wait_for_child_event(StepStart if stuck_part == "model" else CallStart)
            began = time.monotonic()
        assert time.monotonic() - began < at_most(2.5)
    assert user_notes(tmp_path).read() == []
