"""The schedule runner sends one message per due time, never several at once, and always with a record or notice."""

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
from tests.schedules.schedule_fixture import HOUR, NINE, open_schedules

MESSAGE_ID = "schedule:job:2025-11-16T09:00Z"


async def test_a_due_message_is_sent_once_with_the_schedule_as_author(tmp_path: Path) -> None:
    async with open_schedules(tmp_path) as fixture:
        await fixture.add("0 9 * * *", "what is new?")
        await fixture.check_at(NINE - 1)
        assert await fixture.prompts() == []
        for seconds in (0.2, 1, 2, 59):
            await fixture.check_at(NINE + seconds)
        await fixture.agent.session("s").idle()
        assert await fixture.prompts() == [("schedule job", "what is new?")]
        await fixture.check_at(NINE + 60)
        run = await fixture.last_run()
        assert (run.state, run.message, run.turn, run.due) == (RunState.COMPLETED, MESSAGE_ID, "s.t1", NINE)
        await fixture.check_at(NINE + 24 * HOUR)
        await fixture.agent.session("s").idle()
        assert len(await fixture.prompts()) == 2


async def test_a_crash_between_sending_and_recording_does_not_send_a_message_twice(tmp_path: Path) -> None:
    async with open_schedules(tmp_path) as fixture:
        await fixture.add("0 9 * * *")
        before = (await fixture.store.all())[0]
        await fixture.check_at(NINE)
        await fixture.agent.session("s").idle()
        await fixture.store.change("job", lambda _: before)  # as if the process had died before recording the run
        await fixture.check_at(NINE + 5)
        assert await fixture.prompts() == [("schedule job", "do it")]
        await fixture.check_at(NINE + 6)
        assert (await fixture.last_run()).state is RunState.COMPLETED


async def test_two_runners_on_one_home_send_one_message(tmp_path: Path) -> None:
    async with open_schedules(tmp_path) as fixture:
        await fixture.add("0 9 * * *")
        fixture.clock.current = NINE
        other = fixture.make_runner()
        await asyncio.gather(other.check(), fixture.runner.check(), other.check(), fixture.runner.check())
        await fixture.agent.session("s").idle()
        assert await fixture.prompts() == [("schedule job", "do it")]
        assert await fixture.agent.engine.store.leases.is_owned(SCHEDULER)


async def test_missed_runs_are_replaced_by_a_single_run_with_a_notice(tmp_path: Path) -> None:
    async with open_schedules(tmp_path) as fixture:
        await fixture.add("0 * * * *")
        session = fixture.agent.session("s")
        events = session.events()
        await fixture.check_at(NINE + 5.5 * HOUR)
        await session.idle()
        assert await fixture.prompts() == [("schedule job", "do it")]
        run = await fixture.last_run()
        assert (run.due, run.note) == (NINE + 5 * HOUR, "hark serve was not running at that time; this run catches up")
        notice = await anext(event async for event in events if isinstance(event, Notice))
        assert "Schedule job (due 2025-11-16T14:00:00+00:00) runs now: hark serve was not running" in notice.text
        await fixture.check_at(NINE + 5.9 * HOUR)
        assert len(await fixture.prompts()) == 1


@pytest.mark.parametrize("schedules", [{"catch_up": "never"}, {"grace_seconds": 600}])
async def test_missed_runs_are_skipped_without_catch_up_or_after_the_grace_period(
    tmp_path: Path, schedules: dict[str, object]
) -> None:
    async with open_schedules(tmp_path, schedules=schedules) as fixture:
        await fixture.add("0 9 * * *")
        await fixture.add("2025-11-16 09:00", name="once")
        await fixture.check_at(NINE + HOUR)
        assert await fixture.prompts() == []
        assert ((await fixture.last_run()).state, (await fixture.last_run("once")).state) == (
            RunState.MISSED,
            RunState.MISSED,
        )
        assert (await fixture.service.get("once")).state == "over"
        await fixture.check_at(NINE + 24 * HOUR)
        await fixture.agent.session("s").idle()
        assert len(await fixture.prompts()) == 1


async def test_at_most_one_message_is_queued_while_the_previous_run_is_active(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with open_schedules(tmp_path, [gated(gate, "one"), text(["two"]), text(["three"])]) as fixture:
        await fixture.add("every 10 minutes")
        session = fixture.agent.session("s")
        start = fixture.clock.current
        await fixture.check_at(start + 600)
        await fixture.model.request(1)
        await fixture.check_at(start + 1200)
        assert [item.id[:13] for item in await session.queue()] == ["schedule:job:"]
        assert (await fixture.service.get("job")).last.state is RunState.WAITING  # type: ignore[union-attr]
        events = session.events()
        await fixture.check_at(start + 1800)
        await fixture.check_at(start + 2400)
        assert len(await session.queue()) == 1
        assert ((await fixture.last_run()).state, (await fixture.last_run()).note) == (
            RunState.SKIPPED,
            "the previous message is still queued",
        )
        notice = await anext(event async for event in events if isinstance(event, Notice))
        assert notice.text.endswith("was skipped: the previous message is still queued.")
        gate.set()
        await session.idle()
        assert len(await fixture.prompts()) == 2
        await fixture.check_at(start + 3000)
        await session.idle()
        assert len(await fixture.prompts()) == 3


async def test_a_stop_ends_a_scheduled_turn_but_not_the_schedule(tmp_path: Path) -> None:
    async with open_schedules(tmp_path, [gated(asyncio.Event(), ""), text(["later"])]) as fixture:
        await fixture.add("every 10 minutes")
        session, start = fixture.agent.session("s"), fixture.clock.current
        await fixture.check_at(start + 600)
        await fixture.model.request(1)
        await fixture.check_at(start + 1200)
        assert (await session.say("/stop")).state is ReceiptState.STARTED
        assert [item.state for item in await session.queue()] == [ReceiptState.HELD]
        await fixture.check_at(start + 1800)  # the held message is replaced, and the new one releases the queue
        await session.idle()
        assert await session.queue() == []
        assert len(await fixture.prompts()) == 2
        assert len(fixture.model.requests) == 2


async def test_a_stopped_run_records_the_source_of_the_stop(tmp_path: Path) -> None:
    async with open_schedules(tmp_path, [gated(asyncio.Event(), "")]) as fixture:
        await fixture.add("0 9 * * *")
        await fixture.check_at(NINE)
        await fixture.model.request(1)
        await fixture.agent.session("s").interrupt("the boss")
        await fixture.check_at(NINE + 1)
        run = await fixture.last_run()
        assert (run.state, run.detail) == (RunState.INTERRUPTED, "the boss")


async def test_pausing_does_not_stop_the_running_turn_and_resuming_skips_missed_times(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with open_schedules(tmp_path, [gated(gate, "one"), text(["two"])]) as fixture:
        await fixture.add("0 * * * *")
        await fixture.check_at(NINE)
        await fixture.model.request(1)
        assert (await fixture.service.pause("job")).state == "paused"
        gate.set()
        await fixture.agent.session("s").idle()
        await fixture.check_at(NINE + 2 * HOUR)
        assert len(await fixture.prompts()) == 1
        fixture.clock.current = NINE + 2.5 * HOUR
        assert (await fixture.service.resume("job")).next == "2025-11-16T12:00:00+00:00"
        await fixture.check_at(NINE + 2.6 * HOUR)
        assert len(await fixture.prompts()) == 1
        await fixture.check_at(NINE + 3 * HOUR)
        await fixture.agent.session("s").idle()
        assert len(await fixture.prompts()) == 2


async def test_a_one_time_schedule_ends_after_its_run_and_is_removed_later(tmp_path: Path) -> None:
    async with open_schedules(tmp_path) as fixture:
        await fixture.add("0 9 * * *", is_once=True)
        await fixture.check_at(NINE)
        await fixture.agent.session("s").idle()
        row = await fixture.service.get("job")
        assert (row.state, row.next, row.last.state if row.last else "") == ("over", None, RunState.COMPLETED)
        await fixture.check_at(NINE + 24 * HOUR)
        assert len(await fixture.prompts()) == 1
        with pytest.raises(ScheduleRefused, match="has ended"):
            await fixture.service.resume("job")
        await fixture.check_at(NINE + 8 * 24 * HOUR)
        await fixture.check_at(NINE + 8 * 24 * HOUR)
        assert await fixture.store.all() == []


async def test_a_schedule_with_interrupt_delivery_interrupts_the_running_turn(tmp_path: Path) -> None:
    async with open_schedules(tmp_path, [gated(asyncio.Event(), ""), text(["now"])]) as fixture:
        session = fixture.agent.session("s")
        await session.say("something long")
        await fixture.model.request(1)
        await fixture.add("0 9 * * *", delivery="interrupt")
        await fixture.check_at(NINE)
        await session.idle()
        assert await fixture.prompts() == [("", "something long"), ("schedule job", "do it")]


async def test_running_a_schedule_manually_does_not_change_its_times(tmp_path: Path) -> None:
    async with open_schedules(tmp_path) as fixture:
        await fixture.add("0 9 * * *")
        receipt = await fixture.service.run("job")
        assert (receipt.state, receipt.id[:17]) == (ReceiptState.STARTED, "schedule:job:run-")
        await fixture.agent.session("s").idle()
        row = await fixture.service.get("job")
        assert row.last is not None
        assert (row.last.state, row.last.note) == (RunState.COMPLETED, "run manually")
        await fixture.check_at(NINE)
        await fixture.agent.session("s").idle()
        assert len(await fixture.prompts()) == 2


async def test_a_scheduled_slash_command_is_run_once(tmp_path: Path) -> None:
    async with open_schedules(tmp_path) as fixture:
        session = fixture.agent.session("s")
        await session.say("hello")
        await session.idle()
        await fixture.add("0 9 * * *", "/reset")
        await fixture.check_at(NINE)
        await fixture.check_at(NINE + 1)
        assert await fixture.prompts() == []
        assert (await fixture.last_run()).state is RunState.DONE


async def test_a_question_from_a_scheduled_turn_is_refused_after_the_time_limit(tmp_path: Path) -> None:
    script = [shell_call("rm -rf /nowhere"), text(["so be it"])]
    async with open_schedules(tmp_path, script, schedules={"question_seconds": 0.05}) as fixture:
        await fixture.add("0 9 * * *", delivery="interrupt")
        session = fixture.agent.session("s")
        events = session.events()
        await fixture.check_at(NINE)
        asked = await anext(event async for event in events if isinstance(event, QuestionAsked))
        assert "rm -rf /nowhere" in asked.text
        await anext(event async for event in events if isinstance(event, TurnEnd))
        results = [row.text for row in await session.transcript() if isinstance(row, CallResult)]
        assert results[0].startswith("This needs the user's approval, but no user is available.")
        await fixture.check_at(NINE + 1)
        assert (await fixture.last_run()).state is RunState.COMPLETED


async def test_a_question_from_a_users_turn_has_no_time_limit(tmp_path: Path) -> None:
    script = [shell_call("rm -rf /nowhere"), text(["fine"])]
    async with open_schedules(tmp_path, script, schedules={"question_seconds": 0.001}) as fixture:
        session = fixture.agent.session("s")
        events = session.events()
        await session.say("clean up")
        asked = await anext(event async for event in events if isinstance(event, QuestionAsked))
        await asyncio.sleep(0.05)  # far longer than a scheduled turn would wait
        assert await session.answer(asked.question, "no") is None
        await session.idle()
