"""/status describes the running turn in words, without asking the model."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import hark
from hark.protocol.events import AnyEvent, Notice
from hark.protocol.outcomes import Completed
from hark.protocol.provider import CallChunk
from hark.providers.scripted import Hang, ScriptedProvider
from tests.app.slash.test_command_table import ObservedSession, observed_session


async def status_of(observed: ObservedSession, text: str = "/status", number: int = 1) -> str:
    await observed.session.say(text)
    return await observed.wait_for_notice("status", number)


async def test_the_status_names_the_step_the_finished_calls_and_the_running_call(tmp_path: Path) -> None:
    quick = [CallChunk(0, "c1", "shell", '{"command": "echo hi"}')]
    slow = [CallChunk(0, "c2", "shell", '{"command": "echo 41 percent; sleep 600"}')]
    async with observed_session(tmp_path, [quick, slow]) as (observed, [provider]):
        session = observed.session
        await session.say("/mode all")
        await session.say("build it")
        await observed.until(
            lambda: any("41" in str(event) and event.type == "call.output" for event in observed.events)
        )
        await session.say("then test it", "queue")
        status = await status_of(observed)
        assert "is in step 2." in status
        assert "Finished calls: shell (1)." in status
        assert ": shell echo 41 percent; sleep 600" in status
        assert "Its last output: 41 percent" in status
        assert "1 message is queued." in status
        await session.interrupt()
    assert len(provider.requests) == 2


async def test_the_status_says_that_the_model_is_awaited_or_writing(tmp_path: Path) -> None:
    waiting, writing = Hang(), Hang()
    async with observed_session(tmp_path, [[waiting], ["half a sentence", writing]]) as (observed, _):
        await observed.session.say("one")
        await waiting.reached.wait()
        assert "It is waiting for the model's reply." in await status_of(observed)
        await observed.session.say("two")
        await writing.reached.wait()
        assert "The model is writing (15 characters so far): …half a sentence" in await status_of(observed, number=2)
        await observed.session.interrupt()


@pytest.mark.parametrize("question", ["How far are you?", "how far are you"])
async def test_asking_how_far_the_turn_is_never_interrupts_it(tmp_path: Path, question: str) -> None:
    hang = Hang()
    provider = ScriptedProvider([["half", hang], ["I am idle."]])
    async with hark.open(home=tmp_path, routes=[{"provider": provider}], store={"url": "memory"}) as agent:
        session = agent.session("demo", "terminal")
        events = session.events()
        await session.say("long work")
        await hang.reached.wait()
        await session.say(question)
        notices = [event async for event in _until_notice(events)]
        assert "t1 has been running for" in notices[-1]
        assert not hang.closed.is_set()
        await session.interrupt()
        await session.say(question)  # a message, because no turn is running
        assert await session.idle() == Completed("I am idle.")


async def _until_notice(events: AsyncIterator[AnyEvent]) -> AsyncIterator[str]:
    async for event in events:
        if isinstance(event, Notice):
            yield event.text
            return
