"""The router opens sessions on demand. Only a process that adopts work opens sessions of other processes."""

import anyio
import pytest

from hark.engine.session.router import SessionRouter
from hark.protocol.commands import Say
from hark.protocol.names import background_session_name
from hark.providers.scripted import ScriptedProvider
from hark.store.memory import MemoryStore, SharedMemory
from tests.engine.engine_fixture import (
    NO_HEARTBEAT_SECONDS,
    EventRecorder,
    TestClock,
    make_services,
    quick_tool,
    run_session,
)


@pytest.mark.parametrize("adopts_work", [True, False])
async def test_a_wake_up_opens_a_session_only_in_a_process_that_adopts_work(adopts_work: bool) -> None:
    memory = SharedMemory()
    services = make_services(ScriptedProvider([["one"], ["two"]]), MemoryStore(memory, "a", TestClock()))
    router = SessionRouter(services, adopts_work=adopts_work, heartbeat_seconds=NO_HEARTBEAT_SECONDS)
    other = MemoryStore(memory, "b", TestClock())
    async with anyio.create_task_group() as tasks:
        await tasks.start(router.run)
        recorder = EventRecorder(router.proxy_for("open"))
        tasks.start_soon(recorder.record)
        for session in ("not open", "open"):  # in this order
            await other.inbox.put(session, Say("m1", "hello"))
            await other.bus.wake(session)
        await recorder.wait_for_turns(1)
        assert (router.find_open("not open") is not None) is adopts_work
        await router.close()
        tasks.cancel_scope.cancel()


async def test_a_background_session_that_is_reopened_after_a_crash_may_only_use_the_memory_tool() -> None:
    provider = ScriptedProvider([["noted"]])
    services = make_services(provider, tools=[quick_tool("memory"), quick_tool("look")])
    async with run_session(services, background_session_name("demo", "1")) as user:
        await user.say("reflect")
        await user.recorder.wait_for_turns(1)
    assert [tool.name for tool in provider.requests[0].tools] == ["memory"]
