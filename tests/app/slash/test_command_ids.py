"""A slash command that is posted twice with the same id runs once."""

import asyncio
from pathlib import Path

import hark
from hark.protocol.messages import UserMessage
from hark.protocol.outcomes import Interrupted
from hark.providers.scripted import Hang, ScriptedProvider
from tests.app.slash.test_command_table import observed_session


async def test_a_command_with_a_known_id_is_reported_as_a_duplicate_and_not_run_again(tmp_path: Path) -> None:
    hang = Hang()
    async with observed_session(tmp_path, [["par", hang], ["half", Hang()]]) as (observed, _):
        await observed.session.say("go")
        await hang.reached.wait()
        first = await observed.session.say("/stop", id="s1")
        assert hang.closed.is_set()
        await observed.session.say("go on", id="m2")
        second = await observed.session.say("/stop", id="s1")
        assert observed.session.is_busy_here  # a repeated stop does not interrupt the next turn
        third = await observed.session.say("/stop", id="s2")
        assert await observed.session.idle() == Interrupted("user")
        await observed.wait_for_notice("stop", 2)
    assert [receipt.state for receipt in (first, second, third)] == ["started", "duplicate", "started"]
    assert len(observed.notices("stop")) == 2


async def test_a_queue_command_with_a_known_id_is_still_a_duplicate_after_a_restart(tmp_path: Path) -> None:
    for state in ("started", "duplicate"):
        routes = [{"provider": ScriptedProvider([["done"]])}]
        async with hark.open(home=tmp_path, workspace=tmp_path, routes=routes) as agent:
            session = agent.session("demo")
            assert (await session.say("/queue sweep the floor", id="q1", author="Ann")).state == state
            await session.idle()
            transcript = await session.transcript()
    messages = [
        (message.id, message.text, message.author) for message in transcript if isinstance(message, UserMessage)
    ]
    assert messages == [("q1", "sweep the floor", "Ann")]


async def test_an_edited_queue_command_changes_the_message_that_it_queued(tmp_path: Path) -> None:
    hang = Hang()
    async with observed_session(tmp_path, [[hang], ["later"]]) as (observed, _):
        await observed.session.say("work")
        await hang.reached.wait()
        await observed.session.say("/queue sweep the floor", id="q1")
        assert await observed.session.edit("q1", "/queue sweep the yard") is None
        assert [item.text for item in await observed.session.queue()] == ["sweep the yard"]


async def test_concurrent_commands_with_the_same_id_run_once_per_session(
    tmp_path: Path,
) -> None:
    async with hark.open(home=tmp_path, workspace=tmp_path, store={"url": "memory"}, sweeps=False) as agent:
        here, again, there = agent.session("a"), agent.session("a"), agent.session("b")
        receipts = await asyncio.gather(*(session.say("/help", id="h1") for session in (here, again, there)))
    assert [receipt.state for receipt in receipts] == ["started", "duplicate", "started"]
