"""A command that is posted twice with one id is carried out once."""

import asyncio
from pathlib import Path

import hark
from hark.protocol.messages import UserMessage
from hark.protocol.outcomes import Interrupted
from hark.providers.scripted import Hang, ScriptedProvider
from tests.app.slash.test_table import desk


async def test_a_command_with_a_known_id_is_a_duplicate_and_is_not_carried_out_again(tmp_path: Path) -> None:
    hang = Hang()
    async with desk(tmp_path, [["par", hang], ["half", Hang()]]) as (one, _):
        await one.session.say("go")
        await hang.reached.wait()
        first = await one.session.say("/stop", id="s1")
        assert hang.closed.is_set()
        await one.session.say("go on", id="m2")
        second = await one.session.say("/stop", id="s1")
        assert one.session.is_busy_here  # a stop that is posted again does not cut the next turn
        third = await one.session.say("/stop", id="s2")
        assert await one.session.idle() == Interrupted("user")
        await one.notice("stop", 2)
    assert [receipt.state for receipt in (first, second, third)] == ["started", "duplicate", "started"]
    assert len(one.notices("stop")) == 2


async def test_a_message_by_command_is_taken_once_also_by_the_next_process(tmp_path: Path) -> None:
    for state in ("started", "duplicate"):
        routes = [{"provider": ScriptedProvider([["done"]])}]
        async with hark.open(home=tmp_path, workspace=tmp_path, routes=routes) as agent:
            session = agent.session("demo")
            assert (await session.say("/queue sweep the floor", id="q1", author="Ann")).state == state
            await session.idle()
            transcript = await session.transcript()
    said = [(message.id, message.text, message.author) for message in transcript if isinstance(message, UserMessage)]
    assert said == [("q1", "sweep the floor", "Ann")]


async def test_a_message_by_command_that_waits_is_edited_by_command_too(tmp_path: Path) -> None:
    hang = Hang()
    async with desk(tmp_path, [[hang], ["later"]]) as (one, _):
        await one.session.say("work")
        await hang.reached.wait()
        await one.session.say("/queue sweep the floor", id="q1")
        assert await one.session.edit("q1", "/queue sweep the yard") is None
        assert [item.text for item in await one.session.queue()] == ["sweep the yard"]


async def test_the_same_id_posted_twice_at_once_is_carried_out_once_and_another_session_has_its_own(
    tmp_path: Path,
) -> None:
    async with hark.open(home=tmp_path, workspace=tmp_path, store={"url": "memory"}, sweeps=False) as agent:
        here, again, there = agent.session("a"), agent.session("a"), agent.session("b")
        receipts = await asyncio.gather(*(session.say("/help", id="h1") for session in (here, again, there)))
    assert [receipt.state for receipt in receipts] == ["started", "duplicate", "started"]
