"""What a person has allowed for good."""

import asyncio
import threading
from pathlib import Path

import pytest

import hark
from hark.app.grants import GrantsFile
from hark.protocol.events import QuestionAsked
from hark.protocol.outcomes import Completed
from hark.protocol.provider import CallChunk
from hark.providers.scripted import ScriptedProvider


async def test_a_grant_is_there_for_other_processes_and_later_ones(tmp_path: Path) -> None:
    first, second = GrantsFile(tmp_path / "home" / "allowed"), GrantsFile(tmp_path / "home" / "allowed")
    assert second.known == frozenset()
    await first.remember("edit")
    await first.remember("shell:echo 'a\nb'")
    await first.remember("edit")
    assert second.known == first.known == {"edit", "shell:echo 'a\nb'"}
    assert len((tmp_path / "home" / "allowed").read_text().splitlines()) == 3


async def test_storing_a_grant_does_not_block_the_event_loop_and_keeps_the_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grants = GrantsFile(tmp_path / "allowed")
    synced, held = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def slow_fsync(descriptor: int) -> None:
        loop.call_soon_threadsafe(synced.set)
        held.wait()

    monkeypatch.setattr("hark.app.grants.os.fsync", slow_fsync)
    first = asyncio.create_task(grants.remember("first"))
    second = asyncio.create_task(grants.remember("second"))
    try:
        await synced.wait()  # the event loop goes on while the disk is slow
        assert not first.done()
        assert grants.known == {"first"}
    finally:
        held.set()
    await asyncio.gather(first, second)
    assert (tmp_path / "allowed").read_text().splitlines()[1:] == ['"first"', '"second"']


def test_a_file_that_was_cut_or_mistyped_grants_no_more_than_what_it_says(tmp_path: Path) -> None:
    path = tmp_path / "allowed"
    path.write_text('# mine\n"edit"\n"shell:ma\nnonsense\n')
    assert GrantsFile(path).known == {"edit"}
    path.write_bytes(b"\xff\xfe")
    assert GrantsFile(path).known == frozenset()


async def test_what_is_always_allowed_is_not_asked_again_in_the_next_run(tmp_path: Path) -> None:
    for run in range(2):
        calls = [CallChunk(0, "c1", "shell", '{"command": "touch made"}')]
        provider = ScriptedProvider([calls, ["ok"]])
        opened = hark.open(
            home=tmp_path / "home", workspace=tmp_path, routes=[{"provider": provider}], approvals={"mode": "ask"}
        )
        async with opened as agent:
            session = agent.session(f"s{run}")
            events = session.events()
            await session.say("go")
            if not run:
                async for event in events:
                    if isinstance(event, QuestionAsked):
                        await session.answer(event.question, "always")
                        break
            assert await session.idle() == Completed("ok")
