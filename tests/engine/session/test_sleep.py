"""Sessions that nobody needs are put to sleep, and woken with nothing lost."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from hark.engine.services import EngineServices
from hark.engine.session.proxy import SessionProxy
from hark.engine.session.router import HEARTBEAT_SECONDS, Router
from hark.protocol.commands import Say
from hark.protocol.messages import UserMessage
from hark.protocol.outcomes import Completed
from hark.protocol.rules import Limits, Rules
from hark.providers.scripted import Hang, ScriptedProvider
from tests.engine.engine_fixture import make_bench

SLEEPY = Rules(limits=Limits(sleep_seconds=HEARTBEAT_SECONDS))


@asynccontextmanager
async def routed(bench: EngineServices) -> AsyncGenerator[Router]:
    router = Router(bench, sweeps=False)
    async with anyio.create_task_group() as tasks:
        await tasks.start(router.run)
        yield router
        await router.close()
        tasks.cancel_scope.cancel()


async def say(door: SessionProxy, text: str) -> None:
    await door.say(Say(text, text))


async def test_an_idle_session_sleeps_and_wakes_with_all_that_was_said() -> None:
    provider = ScriptedProvider([["a"], ["b"]])
    async with routed(make_bench(provider, rules=SLEEPY)) as router:
        first = router.door("demo")
        await say(first, "one")
        assert await first.idle() == Completed("a")
        router.put_to_sleep()
        assert router.doors == []
        await say(router.door("demo"), "two")
        assert await router.door("demo").idle() == Completed("b")
    said = [message.text for message in provider.requests[-1].messages if isinstance(message, UserMessage)]
    assert said == ["one", "two"]


@pytest.mark.parametrize("reason", ["a turn", "a reader"])
async def test_a_session_that_somebody_needs_stays_awake(reason: str) -> None:
    hang = Hang()
    async with routed(make_bench(ScriptedProvider([[hang]]), rules=SLEEPY)) as router:
        door = router.door("demo")
        reader = door.subscribe() if reason == "a reader" else None
        if reason == "a turn":
            await say(door, "work")
            await hang.reached.wait()
        await door.known()
        router.put_to_sleep()
        assert router.doors == [door]
        if reader is not None:
            reader.close()
            router.put_to_sleep()
            assert router.doors == []
