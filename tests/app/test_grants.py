"""Saved approvals: calls that the user has always allowed."""

import asyncio
import os
import threading
from pathlib import Path

import pytest

import hark
from hark.app.grants import GrantsFile
from hark.protocol.events import QuestionAsked
from hark.protocol.outcomes import Completed
from hark.protocol.provider import CallChunk
from hark.providers.scripted import ScriptedProvider


async def test_a_grant_is_visible_to_other_and_later_processes(tmp_path: Path) -> None:
    first, second = GrantsFile(tmp_path / "home" / "allowed"), GrantsFile(tmp_path / "home" / "allowed")
    assert second.all == frozenset()
    await first.add("edit")
    await first.add("shell:echo 'a\nb'")
    await first.add("edit")
    assert second.all == first.all == {"edit", "shell:echo 'a\nb'"}
    assert len((tmp_path / "home" / "allowed").read_text().splitlines()) == 3


async def test_storing_grants_does_not_block_the_event_loop_and_preserves_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grants = GrantsFile(tmp_path / "allowed")
    synced, held, real_fsync = asyncio.Event(), threading.Event(), os.fsync
    loop = asyncio.get_running_loop()

    def slow_fsync(descriptor: int) -> None:
        loop.call_soon_threadsafe(synced.set)
        held.wait()
        real_fsync(descriptor)

    monkeypatch.setattr("hark.disk.private_files.os.fsync", slow_fsync)
    first = asyncio.create_task(grants.add("first"))
    second = asyncio.create_task(grants.add("second"))
    try:
        await synced.wait()  # the event loop continues while the disk is slow
        assert not first.done()
        assert grants.all == frozenset()
    finally:
        held.set()
    await asyncio.gather(first, second)
    assert (tmp_path / "allowed").read_text().splitlines()[1:] == ['"first"', '"second"']


def test_truncated_or_invalid_lines_in_the_grants_file_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "allowed"
    path.write_text('# mine\n"edit"\n"shell:ma\nnonsense\n')
    assert GrantsFile(path).all == {"edit"}
    path.write_bytes(b"\xff\xfe")
    assert GrantsFile(path).all == frozenset()


async def test_an_always_allowed_call_needs_no_approval_in_the_next_run(tmp_path: Path) -> None:
    for run in range(2):
        calls = [CallChunk(0, "c1", "shell", '{"command": "touch made"}')]
        provider = ScriptedProvider([calls, ["ok"]])
        agent_context = hark.open(
            home=tmp_path / "home", workspace=tmp_path, routes=[{"provider": provider}], approvals={"mode": "ask"}
        )
        async with agent_context as agent:
            session = agent.session(f"s{run}")
            events = session.events()
            await session.say("go")
            if not run:
                async for event in events:
                    if isinstance(event, QuestionAsked):
                        await session.answer(event.question, "always")
                        break
            assert await session.idle() == Completed("ok")
