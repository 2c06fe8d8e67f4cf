"""Schedules across processes: `hark serve` in one, `hark schedule` in others, with kill -9 and restarts."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.cli.command_line import CommandResult, Hark, open_hark
from tests.cli.serve.gateway_fixture import ServedGateway
from tests.fakes.models.behaviours import Behaviour, echo, hanging
from tests.waiting import until

AUTHOR = "schedule job"


@asynccontextmanager
async def run_gateway(hark: Hark) -> AsyncGenerator[ServedGateway]:
    """Run `hark serve` on a free port, and kill it when the context ends."""
    running = await hark.start("serve", "--port", "0")
    try:
        base = (await running.wait_for_line("serving on")).rpartition(" ")[2].strip()
        async with aiohttp.ClientSession(base, timeout=aiohttp.ClientTimeout(30)) as client:
            yield ServedGateway(running, client, base)
    finally:
        if running.process.returncode is None:
            running.process.kill()
        await running.wait_for_end()


async def run_schedule_command(hark: Hark, *arguments: str) -> CommandResult:
    return await hark.run("schedule", *arguments)


async def scheduled_messages(served: ServedGateway, session: str = "s") -> list[str]:
    """Return the ids of all messages that schedules sent to this session."""
    _, body = await served.call("GET", f"/api/sessions/{session}/transcript")
    return [row["id"] for row in body["messages"] if row.get("author", "").startswith("schedule ")]


async def is_idle(served: ServedGateway) -> bool:
    """Return whether no turn is running and the queue is empty."""
    _, status = await served.call("GET", "/api/status")
    _, answer = await served.call("GET", "/api/sessions/s/queue")
    return not status["running"] and not answer["queue"]


async def last_run(served: ServedGateway) -> Any:
    _, body = await served.call("GET", "/api/schedules")
    return body["schedules"][0]["last"]


def script_with_echoes(*first: Behaviour) -> list[Behaviour]:
    return [*first, *(echo() for _ in range(200))]


async def test_a_due_schedule_runs_in_hark_serve_and_the_list_shows_its_outcome(tmp_path: Path) -> None:
    async with open_hark(tmp_path, script_with_echoes()) as hark, run_gateway(hark) as served:
        added = await run_schedule_command(hark, "add", "in 1 second", "hello there", "--session", "s", "--name", "job")
        assert (added.code, added.err) == (0, "")
        assert added.out.startswith("Added job. It runs once in session s, next ")

        async def completed_run() -> Any:
            run = await last_run(served)
            return run and run["state"] == "completed" and run

        run = await until(completed_run)
        assert run["message"] == (await scheduled_messages(served))[0]
        assert run["message"].startswith("schedule:job:20")
        listed = await run_schedule_command(hark, "list")
        assert "job  [in 1 second]  over; last " in listed.out
        assert "completed; in s: hello there" in listed.out
        assert (await run_schedule_command(hark, "list", "--json")).json["schedules"][0]["last"]["state"] == "completed"


async def test_hark_stop_stops_a_scheduled_turn_and_pausing_does_not(tmp_path: Path) -> None:
    async with open_hark(tmp_path, script_with_echoes(hanging(2))) as hark, run_gateway(hark) as served:
        await run_schedule_command(hark, "add", "@yearly", "run for ever", "--session", "s", "--name", "job")
        receipt = (await run_schedule_command(hark, "run", "job")).json
        assert (receipt["session"], receipt["state"]) == ("s", "queued")  # `hark serve` runs it
        await hark.server.request(1)
        paused = await run_schedule_command(hark, "pause", "job")
        assert paused.out == "Paused job. A running turn continues; hark stop s stops it.\n"
        assert (await served.call("GET", "/api/status"))[1]["running"] == [{"session": "s", "turn": "s.t1"}]
        stopped = (await hark.run("stop", "s")).json
        assert (stopped["turn"], stopped["outcome"]) == ("s.t1", {"type": "interrupted", "source": "user"})
        shown = (await run_schedule_command(hark, "show", "job")).out
        assert "interrupted (user; run manually)" in shown
        assert "state:    paused" in shown


async def test_a_kill_between_sending_and_running_neither_loses_nor_repeats_a_message(tmp_path: Path) -> None:
    async with open_hark(tmp_path, script_with_echoes(hanging(2))) as hark:
        async with run_gateway(hark) as served:
            await served.say("s", "something long")
            await hark.server.request(1)
            await run_schedule_command(hark, "add", "in 1 second", "and then this", "--session", "s", "--name", "job")

            async def queued_messages() -> Any:
                return (await served.call("GET", "/api/sessions/s/queue"))[1]["queue"]

            [queued] = await until(queued_messages)
            served.running.process.kill()
            await served.running.process.wait()
        async with run_gateway(hark) as served:
            await served.until_text("s", "and then this")
            await until(lambda: _is_completed(served))
            assert await scheduled_messages(served) == [queued["id"]]


async def _is_completed(served: ServedGateway) -> bool:
    run = await last_run(served)
    return bool(run) and run["state"] == "completed"


async def test_repeated_kills_never_cause_a_second_run_for_a_scheduled_time(tmp_path: Path) -> None:
    async with open_hark(tmp_path, script_with_echoes()) as hark:
        await run_schedule_command(hark, "add", "every 1 second", "tick", "--session", "s", "--name", "job")
        seen: list[str] = []
        for round_ in range(3):
            async with run_gateway(hark) as served:

                async def enough_messages(served: ServedGateway = served, minimum: int = len(seen) + 2) -> list[str]:
                    messages = await scheduled_messages(served)
                    return messages if len(messages) >= minimum else []

                seen = await until(enough_messages)
                if round_ < 2:
                    served.running.process.kill()
                    await served.running.process.wait()
                    continue
                await run_schedule_command(hark, "pause", "job")
                await until(lambda served=served: is_idle(served))
                seen = await scheduled_messages(served)
        assert len(seen) == len(set(seen))
        prompts = [str(request.body["messages"][-1]["content"]) for request in hark.server.requests]
        assert all(prompt == "tick" for prompt in prompts)
        assert len(prompts) <= len(seen)  # a turn that a kill interrupted is not run again, so no prompt is sent twice


async def test_two_servers_on_one_home_send_each_message_once_and_the_second_takes_over(tmp_path: Path) -> None:
    async with (
        open_hark(tmp_path, script_with_echoes()) as hark,
        run_gateway(hark) as first,
        run_gateway(hark) as second,
    ):
        await run_schedule_command(hark, "add", "every 1 second", "tick", "--session", "s", "--name", "job")

        async def enough_messages(served: ServedGateway, minimum: int) -> list[str]:
            messages = await scheduled_messages(served)
            return messages if len(messages) >= minimum else []

        seen = await until(lambda: enough_messages(second, 3))
        assert len(seen) == len(set(seen))
        first.running.process.kill()
        await first.running.process.wait()
        seen = await until(lambda: enough_messages(second, len(seen) + 2))
        assert len(seen) == len(set(seen))


async def test_a_message_that_was_due_before_the_server_started_is_sent_at_startup(tmp_path: Path) -> None:
    async with open_hark(tmp_path, script_with_echoes()) as hark:
        added = await run_schedule_command(hark, "add", "in 1 second", "hello", "--session", "s", "--name", "job")
        assert added.err == "hark: `hark serve` isn't running, so schedules won't fire\n"
        async with run_gateway(hark) as served:
            await until(lambda: scheduled_messages(served))


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["add", "0 25 * * *", "x"], 2, 'the hour "25" must be from 0 to 23. Example: "0 9 * * mon-fri"'),
        (["add", "@daily", "x", "--timezone", "Mars/Base"], 2, 'Unknown time zone "Mars/Base"'),
        (["add", "@daily", "x", "--session", "a b"], 2, "not a valid session name"),
        (["add", "@daily", " "], 2, "The prompt is empty"),
        (["add", "@daily"], 2, "the following arguments are required: prompt"),
        (["frobnicate"], 2, "invalid choice: 'frobnicate'"),
        (["show", "nothing"], 1, "No schedule named 'nothing'. `hark schedule list` lists them"),
        (["run", "nothing"], 1, "No schedule named 'nothing'"),
    ],
)
async def test_invalid_arguments_are_reported_with_their_exit_code(
    tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    async with open_hark(tmp_path) as hark:
        result = await run_schedule_command(hark, *arguments)
        assert (result.code, "Traceback" in result.err) == (code, False)
        assert message in result.err


async def test_an_empty_list_explains_how_to_add_a_schedule(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        result = await hark.run("schedule")
        assert (result.code, result.out) == (0, "")
        assert result.err.startswith("There are no schedules. To add one: hark schedule add")
        assert (await run_schedule_command(hark, "list", "--json")).json == {"schedules": []}
