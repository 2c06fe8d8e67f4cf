"""Schedules as their people use them: `hark serve` in one process, `hark schedule` in others, and kill -9."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.cli.command_line import Ended, Hark, opened
from tests.cli.serve.gateway import Served
from tests.fakes.models.behaviours import Behaviour, echo, hanging
from tests.waiting import until

AUTHOR = "schedule job"


@asynccontextmanager
async def serving(hark: Hark) -> AsyncGenerator[Served]:
    """The real `hark serve`, on a free port; killed at the end."""
    running = await hark.start("serve", "--port", "0")
    try:
        base = (await running.until("serving on")).rpartition(" ")[2].strip()
        async with aiohttp.ClientSession(base, timeout=aiohttp.ClientTimeout(30)) as client:
            yield Served(running, client, base)
    finally:
        if running.process.returncode is None:
            running.process.kill()
        await running.end()


async def schedule(hark: Hark, *words: str) -> Ended:
    return await hark.run("schedule", *words)


async def said(served: Served, session: str = "s") -> list[str]:
    """Return the ids of all that schedules said in a session."""
    _, body = await served.call("GET", f"/api/sessions/{session}/transcript")
    return [row["id"] for row in body["messages"] if row.get("author", "").startswith("schedule ")]


async def at_rest(served: Served) -> bool:
    """Tell whether nothing runs, and nothing waits."""
    _, status = await served.call("GET", "/api/status")
    _, waiting = await served.call("GET", "/api/sessions/s/queue")
    return not status["running"] and not waiting["queue"]


async def last(served: Served) -> Any:
    _, body = await served.call("GET", "/api/schedules")
    return body["schedules"][0]["last"]


def many(*first: Behaviour) -> list[Behaviour]:
    return [*first, *(echo() for _ in range(200))]


async def test_it_comes_while_hark_serves_and_the_list_tells_how_it_ended(tmp_path: Path) -> None:
    async with opened(tmp_path, many()) as hark, serving(hark) as served:
        added = await schedule(hark, "add", "in 1 second", "hello there", "--session", "s", "--name", "job")
        assert (added.code, added.err) == (0, "")
        assert added.out.startswith("job runs once, next ")

        async def ended() -> Any:
            run = await last(served)
            return run and run["state"] == "completed" and run

        run = await until(ended)
        assert run["message"] == (await said(served))[0]
        assert run["message"].startswith("schedule:job:20")
        listed = await schedule(hark, "list")
        assert "job  [in 1 second]  over; last " in listed.out
        assert "completed; in s: hello there" in listed.out
        assert (await schedule(hark, "list", "--json")).json["schedules"][0]["last"]["state"] == "completed"


async def test_hark_stop_stops_a_scheduled_turn_and_pausing_does_not(tmp_path: Path) -> None:
    async with opened(tmp_path, many(hanging(2))) as hark, serving(hark) as served:
        await schedule(hark, "add", "@yearly", "go on for ever", "--session", "s", "--name", "job")
        receipt = (await schedule(hark, "run", "job")).json
        assert (receipt["session"], receipt["state"]) == ("s", "queued")  # whoever serves takes it up
        await hark.server.request(1)
        paused = await schedule(hark, "pause", "job")
        assert paused.out == "job is paused. What runs of it goes on: hark stop s stops that.\n"
        assert (await served.call("GET", "/api/status"))[1]["running"] == [{"session": "s", "turn": "s.t1"}]
        stopped = (await hark.run("stop", "s")).json
        assert (stopped["turn"], stopped["outcome"]) == ("s.t1", {"type": "interrupted", "source": "user"})
        shown = (await schedule(hark, "show", "job")).out
        assert "interrupted (user; run by hand)" in shown
        assert "state:    paused" in shown


async def test_a_kill_between_sending_and_running_loses_and_doubles_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path, many(hanging(2))) as hark:
        async with serving(hark) as served:
            await served.say("s", "something long")
            await hark.server.request(1)
            await schedule(hark, "add", "in 1 second", "and then this", "--session", "s", "--name", "job")

            async def waits() -> Any:
                return (await served.call("GET", "/api/sessions/s/queue"))[1]["queue"]

            [waiting] = await until(waits)
            served.running.process.kill()
            await served.running.process.wait()
        async with serving(hark) as served:
            await served.until_text("s", "and then this")
            await until(lambda: _is_over(served))
            assert await said(served) == [waiting["id"]]


async def _is_over(served: Served) -> bool:
    run = await last(served)
    return bool(run) and run["state"] == "completed"


async def test_kill_after_kill_each_second_comes_at_most_once(tmp_path: Path) -> None:
    async with opened(tmp_path, many()) as hark:
        await schedule(hark, "add", "every 1 second", "tick", "--session", "s", "--name", "job")
        seen: list[str] = []
        for round_ in range(3):
            async with serving(hark) as served:

                async def more(served: Served = served, least: int = len(seen) + 2) -> list[str]:
                    found = await said(served)
                    return found if len(found) >= least else []

                seen = await until(more)
                if round_ < 2:
                    served.running.process.kill()
                    await served.running.process.wait()
                    continue
                await schedule(hark, "pause", "job")
                await until(lambda served=served: at_rest(served))
                seen = await said(served)
        assert len(seen) == len(set(seen))
        prompts = [str(request.body["messages"][-1]["content"]) for request in hark.server.requests]
        assert all(prompt == "tick" for prompt in prompts)
        assert len(prompts) <= len(seen)  # a turn that a kill cut is not run again: no prompt is asked twice


async def test_two_servers_of_one_home_send_it_once_and_one_goes_on_for_the_other(tmp_path: Path) -> None:
    async with opened(tmp_path, many()) as hark, serving(hark) as first, serving(hark) as second:
        await schedule(hark, "add", "every 1 second", "tick", "--session", "s", "--name", "job")

        async def some(served: Served, least: int) -> list[str]:
            found = await said(served)
            return found if len(found) >= least else []

        seen = await until(lambda: some(second, 3))
        assert len(seen) == len(set(seen))
        first.running.process.kill()
        await first.running.process.wait()
        seen = await until(lambda: some(second, len(seen) + 2))
        assert len(seen) == len(set(seen))


async def test_what_came_due_before_anybody_served_comes_when_somebody_does(tmp_path: Path) -> None:
    async with opened(tmp_path, many()) as hark:
        added = await schedule(hark, "add", "in 1 second", "hello", "--session", "s", "--name", "job")
        assert added.err == "hark: nobody serves this home now: schedules run while `hark serve` does\n"
        async with serving(hark) as served:
            await until(lambda: said(served))


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["add", "0 25 * * *", "x"], 2, 'the hour "25" must be from 0 to 23. An example: "0 9 * * mon-fri"'),
        (["add", "@daily", "x", "--timezone", "Mars/Base"], 2, 'There is no time zone "Mars/Base"'),
        (["add", "@daily", "x", "--session", "a b"], 2, "can't name a session"),
        (["add", "@daily", " "], 2, "There is no prompt"),
        (["add", "@daily"], 2, "the following arguments are required: prompt"),
        (["frobnicate"], 2, "invalid choice: 'frobnicate'"),
        (["show", "nothing"], 1, "There is no schedule 'nothing'; `hark schedule list` shows what there is"),
        (["run", "nothing"], 1, "There is no schedule 'nothing'"),
    ],
)
async def test_what_is_wrong_is_told_with_its_exit_code(tmp_path: Path, words: list[str], code: int, told: str) -> None:
    async with opened(tmp_path) as hark:
        ended = await schedule(hark, *words)
        assert (ended.code, "Traceback" in ended.err) == (code, False)
        assert told in ended.err


async def test_without_any_the_list_says_how_to_add_one(tmp_path: Path) -> None:
    async with opened(tmp_path) as hark:
        ended = await hark.run("schedule")
        assert (ended.code, ended.out) == (0, "")
        assert ended.err.startswith("There are no schedules. One is added like this: hark schedule add")
        assert (await schedule(hark, "list", "--json")).json == {"schedules": []}
