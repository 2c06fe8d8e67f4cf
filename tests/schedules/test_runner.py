"""What the runner does at which time: once each, never a flood, and always told."""

import asyncio
from pathlib import Path

import pytest

from hark.protocol.events import Notice, QuestionAsked, TurnEnd
from hark.protocol.messages import CallResult
from hark.protocol.names import SCHEDULER
from hark.protocol.receipts import ReceiptState
from hark.protocol.schedules import RunState, ScheduleRefused
from tests.cli.command_line import gated, shell_call
from tests.fakes.models.behaviours import text
from tests.schedules.schedule_fixture import HOUR, NINE, opened

NAME = "schedule:job:2025-11-16T09:00Z"


async def test_it_comes_at_its_time_once_and_is_told_apart(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        await world.add("0 9 * * *", "what is new?")
        await world.look(NINE - 1)
        assert await world.said() == []
        for seconds in (0.2, 1, 2, 59):
            await world.look(NINE + seconds)
        await world.agent.session("s").idle()
        assert await world.said() == [("schedule job", "what is new?")]
        await world.look(NINE + 60)
        run = await world.last()
        assert (run.state, run.message, run.turn, run.due) == (RunState.COMPLETED, NAME, "s.t1", NINE)
        await world.look(NINE + 24 * HOUR)
        await world.agent.session("s").idle()
        assert len(await world.said()) == 2


async def test_a_crash_between_sending_and_noting_doubles_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        await world.add("0 9 * * *")
        before = (await world.book.all())[0]
        await world.look(NINE)
        await world.agent.session("s").idle()
        await world.book.change("job", lambda _: before)  # as if it had died before it noted that
        await world.look(NINE + 5)
        assert await world.said() == [("schedule job", "do it")]
        await world.look(NINE + 6)
        assert (await world.last()).state is RunState.COMPLETED


async def test_two_runners_of_one_home_are_one(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        await world.add("0 9 * * *")
        world.clock.at = NINE
        other = world.another_runner()
        await asyncio.gather(other.look(), world.runner.look(), other.look(), world.runner.look())
        await world.agent.session("s").idle()
        assert await world.said() == [("schedule job", "do it")]
        assert await world.agent.bench.store.leases.is_owned(SCHEDULER)


async def test_what_was_missed_is_made_good_once_and_said(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        await world.add("0 * * * *")
        session = world.agent.session("s")
        events = session.events()
        await world.look(NINE + 5.5 * HOUR)
        await session.idle()
        assert await world.said() == [("schedule job", "do it")]
        run = await world.last()
        assert (run.due, run.note) == (NINE + 5 * HOUR, "nobody served when its time came; it is made good once")
        notice = await anext(event async for event in events if isinstance(event, Notice))
        assert "Schedule job of 2025-11-16T14:00:00+00:00 comes now: nobody served" in notice.text
        await world.look(NINE + 5.9 * HOUR)
        assert len(await world.said()) == 1


@pytest.mark.parametrize("schedules", [{"catch_up": "never"}, {"grace_seconds": 600}])
async def test_what_was_missed_too_long_ago_is_left(tmp_path: Path, schedules: dict[str, object]) -> None:
    async with opened(tmp_path, schedules=schedules) as world:
        await world.add("0 9 * * *")
        await world.add("2025-11-16 09:00", name="once")
        await world.look(NINE + HOUR)
        assert await world.said() == []
        assert ((await world.last()).state, (await world.last("once")).state) == (RunState.MISSED, RunState.MISSED)
        assert (await world.desk.row("once")).state == "over"
        await world.look(NINE + 24 * HOUR)
        await world.agent.session("s").idle()
        assert len(await world.said()) == 1


async def test_while_the_one_before_runs_only_one_waits(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with opened(tmp_path, [gated(gate, "one"), text(["two"]), text(["three"])]) as world:
        await world.add("every 10 minutes")
        session = world.agent.session("s")
        start = world.clock.at
        await world.look(start + 600)
        await world.model.request(1)
        await world.look(start + 1200)
        assert [item.id[:13] for item in await session.queue()] == ["schedule:job:"]
        assert (await world.desk.row("job")).last.state is RunState.WAITING  # type: ignore[union-attr]
        events = session.events()
        await world.look(start + 1800)
        await world.look(start + 2400)
        assert len(await session.queue()) == 1
        assert ((await world.last()).state, (await world.last()).note) == (
            RunState.SKIPPED,
            "the one before it still waits",
        )
        notice = await anext(event async for event in events if isinstance(event, Notice))
        assert notice.text.endswith("was left out: the one before it still waits.")
        gate.set()
        await session.idle()
        assert len(await world.said()) == 2
        await world.look(start + 3000)
        await session.idle()
        assert len(await world.said()) == 3


async def test_a_stop_stops_it_like_any_turn_and_the_next_time_comes(tmp_path: Path) -> None:
    async with opened(tmp_path, [gated(asyncio.Event(), ""), text(["later"])]) as world:
        await world.add("every 10 minutes")
        session, start = world.agent.session("s"), world.clock.at
        await world.look(start + 600)
        await world.model.request(1)
        await world.look(start + 1200)
        assert (await session.say("/stop")).state is ReceiptState.STARTED
        assert [item.state for item in await session.queue()] == [ReceiptState.HELD]
        await world.look(start + 1800)  # what a stop holds is replaced, not piled up, and the new one releases it
        await session.idle()
        assert await session.queue() == []
        assert len(await world.said()) == 2
        assert len(world.model.requests) == 2


async def test_the_end_of_a_stopped_run_names_who_stopped_it(tmp_path: Path) -> None:
    async with opened(tmp_path, [gated(asyncio.Event(), "")]) as world:
        await world.add("0 9 * * *")
        await world.look(NINE)
        await world.model.request(1)
        await world.agent.session("s").interrupt("the boss")
        await world.look(NINE + 1)
        run = await world.last()
        assert (run.state, run.detail) == (RunState.INTERRUPTED, "the boss")


async def test_pausing_leaves_what_runs_and_resuming_makes_nothing_good(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with opened(tmp_path, [gated(gate, "one"), text(["two"])]) as world:
        await world.add("0 * * * *")
        await world.look(NINE)
        await world.model.request(1)
        assert (await world.desk.pause("job")).state == "paused"
        gate.set()
        await world.agent.session("s").idle()
        await world.look(NINE + 2 * HOUR)
        assert len(await world.said()) == 1
        world.clock.at = NINE + 2.5 * HOUR
        assert (await world.desk.resume("job")).next == "2025-11-16T12:00:00+00:00"
        await world.look(NINE + 2.6 * HOUR)
        assert len(await world.said()) == 1
        await world.look(NINE + 3 * HOUR)
        await world.agent.session("s").idle()
        assert len(await world.said()) == 2


async def test_once_is_over_after_its_time_and_forgotten_after_a_while(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        await world.add("0 9 * * *", is_once=True)
        await world.look(NINE)
        await world.agent.session("s").idle()
        row = await world.desk.row("job")
        assert (row.state, row.next, row.last.state if row.last else "") == ("over", None, RunState.COMPLETED)
        await world.look(NINE + 24 * HOUR)
        assert len(await world.said()) == 1
        with pytest.raises(ScheduleRefused, match="its time is over"):
            await world.desk.resume("job")
        await world.look(NINE + 8 * 24 * HOUR)
        await world.look(NINE + 8 * 24 * HOUR)
        assert await world.book.all() == []


async def test_an_interrupting_one_interrupts(tmp_path: Path) -> None:
    async with opened(tmp_path, [gated(asyncio.Event(), ""), text(["now"])]) as world:
        session = world.agent.session("s")
        await session.say("something long")
        await world.model.request(1)
        await world.add("0 9 * * *", delivery="interrupt")
        await world.look(NINE)
        await session.idle()
        assert await world.said() == [("", "something long"), ("schedule job", "do it")]


async def test_run_says_it_now_and_leaves_its_times(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        await world.add("0 9 * * *")
        receipt = await world.desk.run("job")
        assert (receipt.state, receipt.id[:17]) == (ReceiptState.STARTED, "schedule:job:run-")
        await world.agent.session("s").idle()
        row = await world.desk.row("job")
        assert row.last is not None
        assert (row.last.state, row.last.note) == (RunState.COMPLETED, "run by hand")
        await world.look(NINE)
        await world.agent.session("s").idle()
        assert len(await world.said()) == 2


async def test_a_slash_command_is_carried_out_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        session = world.agent.session("s")
        await session.say("hello")
        await session.idle()
        await world.add("0 9 * * *", "/reset")
        await world.look(NINE)
        await world.look(NINE + 1)
        assert await world.said() == []
        assert (await world.last()).state is RunState.DONE


async def test_a_question_that_nobody_answers_is_refused_in_time(tmp_path: Path) -> None:
    script = [shell_call("rm -rf /nowhere"), text(["so be it"])]
    async with opened(tmp_path, script, schedules={"question_seconds": 0.05}) as world:
        await world.add("0 9 * * *", delivery="interrupt")
        session = world.agent.session("s")
        events = session.events()
        await world.look(NINE)
        asked = await anext(event async for event in events if isinstance(event, QuestionAsked))
        assert "rm -rf /nowhere" in asked.text
        await anext(event async for event in events if isinstance(event, TurnEnd))
        results = [one.text for one in await session.transcript() if isinstance(one, CallResult)]
        assert results[0].startswith("This needs a person's approval, and nobody is there to give it.")
        await world.look(NINE + 1)
        assert (await world.last()).state is RunState.COMPLETED


async def test_a_question_in_a_turn_of_a_person_waits(tmp_path: Path) -> None:
    script = [shell_call("rm -rf /nowhere"), text(["fine"])]
    async with opened(tmp_path, script, schedules={"question_seconds": 0.001}) as world:
        session = world.agent.session("s")
        events = session.events()
        await session.say("clean up")
        asked = await anext(event async for event in events if isinstance(event, QuestionAsked))
        await asyncio.sleep(0.05)  # far longer than a scheduled turn would wait
        assert await session.answer(asked.question, "no") is None
        await session.idle()
