"""`/schedule`, as it is said on every surface."""

from pathlib import Path

from hark.protocol.events import Notice
from tests.schedules.schedule_fixture import World, opened


async def told(world: World, text: str, session: str = "chat:7") -> str:
    """Say a slash command; return its notice."""
    handle = world.agent.session(session)
    await handle.opened()
    events = handle.events()
    await handle.say(text)
    return (await anext(event async for event in events if isinstance(event, Notice))).text


async def test_it_adds_to_this_session_lists_pauses_resumes_and_removes(tmp_path: Path) -> None:
    async with opened(tmp_path, schedules={"timezone": "Europe/Zurich"}) as world:
        assert (await told(world, "/schedule")).startswith("There are no schedules. Say /schedule")
        said = await told(world, '/schedule add "every day at 9:00" What is new, and "why"?')
        assert said.startswith("what-is-new-and runs here, next ")
        assert said.endswith(" 09:00 (Europe/Zurich).")
        [schedule] = await world.book.all()
        assert (schedule.session, schedule.rule) == ("chat:7", "0 9 * * *")
        assert schedule.prompt == 'What is new, and "why"?'
        listed = await told(world, "/schedule list")
        assert "what-is-new-and  [every day at 9:00]  next " in listed
        assert "has not come yet; in chat:7: What is new" in listed
        assert (await told(world, "/schedule pause what-is-new-and")).startswith("what-is-new-and is paused. What runs")
        assert "what-is-new-and  [every day at 9:00]  paused" in await told(world, "/schedule")
        assert (await told(world, "/schedule resume what-is-new-and")).startswith("what-is-new-and comes again, next ")
        assert await told(world, "/schedule remove what-is-new-and") == "what-is-new-and is removed."
        assert await world.book.all() == []


async def test_quotes_of_phones_and_shortcuts_will_do(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        await told(world, "/schedule add “every 30 minutes” look after the oven")
        await told(world, "/schedule add @daily water the plants")
        assert [(one.rule, one.prompt) for one in await world.book.all()] == [
            ("every 1800 seconds", "look after the oven"),
            ("0 0 * * *", "water the plants"),
        ]


async def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        assert "Put the time in quotes" in await told(world, "/schedule add every day do it")
        assert 'the hour "25" must be' in await told(world, '/schedule add "0 25 * * *" do it')
        assert "There is no prompt" in await told(world, '/schedule add "@daily"')
        assert "There is no schedule 'x'" in await told(world, "/schedule remove x")
        assert (await told(world, "/schedule frobnicate")).startswith("Say /schedule")
