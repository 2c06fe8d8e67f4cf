"""Unused sessions are closed, and reopened without loss."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from hark.engine.services import EngineServices
from hark.engine.session.proxy import SessionProxy
from hark.engine.session.router import HEARTBEAT_SECONDS, SessionRouter
from hark.protocol.commands import Say
from hark.protocol.messages import UserMessage
from hark.protocol.outcomes import Completed
from hark.protocol.rules import Limits, Rules
from hark.providers.scripted import Hang, ScriptedProvider
from tests.engine.engine_fixture import make_services

SHORT_SLEEP_RULES = Rules(limits=Limits(sleep_seconds=HEARTBEAT_SECONDS))


@asynccontextmanager
async def run_router(services: EngineServices) -> AsyncGenerator[SessionRouter]:
    router = SessionRouter(services, adopts_work=False)
    async with anyio.create_task_group() as tasks:
        await tasks.start(router.run)
        yield router
        await router.close()
        tasks.cancel_scope.cancel()


async def send(proxy: SessionProxy, text: str) -> None:
    await proxy.say(Say(text, text))


async def test_an_idle_session_is_closed_and_reopened_with_its_whole_transcript() -> None:
    provider = ScriptedProvider([["a"], ["b"]])
    async with run_router(make_services(provider, rules=SHORT_SLEEP_RULES)) as router:
        first = router.proxy_for("demo")
        await send(first, "one")
        assert await first.idle() == Completed("a")
        router.close_idle_sessions()
        assert router.proxies == []
        await send(router.proxy_for("demo"), "two")
        assert await router.proxy_for("demo").idle() == Completed("b")
    texts = [message.text for message in provider.requests[-1].messages if isinstance(message, UserMessage)]
    assert texts == ["one", "two"]


@pytest.mark.parametrize("reason", ["a turn", "a reader"])
async def test_a_session_with_a_running_turn_or_a_reader_is_not_closed(reason: str) -> None:
    hang = Hang()
    async with run_router(make_services(ScriptedProvider([[hang]]), rules=SHORT_SLEEP_RULES)) as router:
        proxy = router.proxy_for("demo")
        reader = proxy.subscribe() if reason == "a reader" else None
        if reason == "a turn":
            await send(proxy, "work")
            await hang.reached.wait()
        await proxy.wait_until_loaded()
        router.close_idle_sessions()
        assert router.proxies == [proxy]
        if reader is not None:
            reader.close()
            router.close_idle_sessions()
            assert router.proxies == []
