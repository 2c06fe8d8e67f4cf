"""The slash command `/schedule`."""

from pathlib import Path

from hark.protocol.events import Notice
from tests.schedules.schedule_fixture import ScheduleFixture, open_schedules


async def run_command(fixture: ScheduleFixture, text: str, session: str = "chat:7") -> str:
    """Send a slash command and return its notice."""
    handle = fixture.agent.session(session)
    await handle.wait_until_loaded()
    events = handle.events()
    await handle.say(text)
    return (await anext(event async for event in events if isinstance(event, Notice))).text


async def test_schedules_are_added_to_this_session_listed_paused_resumed_and_removed(tmp_path: Path) -> None:
    async with open_schedules(tmp_path, schedules={"timezone": "Europe/Zurich"}) as fixture:
        assert (await run_command(fixture, "/schedule")).startswith("No schedules. Use /schedule")
        reply = await run_command(fixture, '/schedule add "every day at 9:00" What is new, and "why"?')
        assert reply.startswith("Added what-is-new-and. It runs in this session, next ")
        assert reply.endswith(" 09:00 (Europe/Zurich).")
        [schedule] = await fixture.store.all()
        assert (schedule.session, schedule.rule) == ("chat:7", "0 9 * * *")
        assert schedule.prompt == 'What is new, and "why"?'
        listed = await run_command(fixture, "/schedule list")
        assert "what-is-new-and  [every day at 9:00]  next " in listed
        assert "not run yet; in chat:7: What is new" in listed
        assert (await run_command(fixture, "/schedule pause what-is-new-and")).startswith(
            "Paused what-is-new-and. A running"
        )
        assert "what-is-new-and  [every day at 9:00]  paused" in await run_command(fixture, "/schedule")
        assert (await run_command(fixture, "/schedule resume what-is-new-and")).startswith(
            "Resumed what-is-new-and: next "
        )
        assert await run_command(fixture, "/schedule remove what-is-new-and") == "Removed what-is-new-and."
        assert await fixture.store.all() == []


async def test_typographic_quotes_and_cron_shortcuts_are_accepted(tmp_path: Path) -> None:
    async with open_schedules(tmp_path) as fixture:
        await run_command(fixture, "/schedule add “every 30 minutes” look after the oven")
        await run_command(fixture, "/schedule add @daily water the plants")
        assert [(row.rule, row.prompt) for row in await fixture.store.all()] == [
            ("every 1800 seconds", "look after the oven"),
            ("0 0 * * *", "water the plants"),
        ]


async def test_invalid_commands_are_reported(tmp_path: Path) -> None:
    async with open_schedules(tmp_path) as fixture:
        assert "Put the time in quotes" in await run_command(fixture, "/schedule add every day do it")
        assert 'the hour "25" must be' in await run_command(fixture, '/schedule add "0 25 * * *" do it')
        assert "The prompt is empty" in await run_command(fixture, '/schedule add "@daily"')
        assert "No schedule named 'x'" in await run_command(fixture, "/schedule remove x")
        assert (await run_command(fixture, "/schedule frobnicate")).startswith("Use /schedule")
