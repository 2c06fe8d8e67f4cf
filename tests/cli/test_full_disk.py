"""`hark -p` on a database that can't be written: a script gets an error immediately."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.cli.command_line import gated, open_hark
from tests.fakes.models.behaviours import text
from tests.waiting import at_most

FULL = "CREATE TRIGGER full BEFORE INSERT ON journal BEGIN SELECT RAISE(ABORT, 'no room'); END"


def execute(home: Path, statement: str) -> None:
    with closing(sqlite3.connect(next(home.glob("*.db")), timeout=5)) as connection, connection:
        connection.execute(statement)


async def test_a_prompt_whose_turn_cannot_be_saved_fails_immediately_and_a_later_one_works(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with open_hark(tmp_path, [gated(gate, "all of it"), text(["here again"])]) as hark:
        running = await hark.start("-p", "first", "--session", "demo")
        assert running.process.stdin is not None
        running.process.stdin.close()
        await hark.wait_for_request(1, running)
        execute(hark.home, FULL)
        gate.set()
        async with asyncio.timeout(at_most(5)):
            ended = await running.wait_for_end()
        assert ended.code == 1
        assert "no room" in ended.err
        assert "Traceback" not in ended.err
        execute(hark.home, "DROP TRIGGER full")
        again = await hark.run("-p", "second", "--session", "demo")
        contents = [message["content"] for message in hark.server.requests[1].body["messages"][1:]]
    assert (again.code, again.out) == (0, "here again\n")
    assert contents[0].startswith("first")
    assert contents[-1].endswith("second")
