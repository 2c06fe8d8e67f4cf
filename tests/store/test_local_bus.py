"""The bus between processes: wake-ups reach all other processes, and senders never wait."""

import asyncio
import os
import socket
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from hark.protocol.store import StoreError
from hark.store.local_bus import LocalBus, prepare_bus_directory
from tests.store.store_fixtures import list_names, wait_for_wake

LISTENER_PROGRAM = """
import asyncio, pathlib, sys
from hark.store.local_bus import LocalBus
async def main():
    bus = LocalBus(pathlib.Path(sys.argv[1]), "other")
    print("bound", flush=True)
    async for session in bus.wakes():
        print(session, flush=True)
asyncio.run(main())
"""


async def test_a_wake_up_reaches_another_process_and_its_death_is_detected_immediately(tmp_path: Path) -> None:
    bus = LocalBus(tmp_path, "me")
    assert not bus.is_alive("other")
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", LISTENER_PROGRAM, str(tmp_path), stdout=PIPE)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"bound\n"
    assert bus.is_alive("other")
    await bus.wake("café")
    assert (await process.stdout.readline()).decode() == "café\n"
    process.kill()
    await process.wait()
    assert not bus.is_alive("other")
    assert len(list_names(tmp_path)) == 2
    await bus.wake("s")
    assert len(list_names(tmp_path)) == 1
    assert not bus.is_alive("other")
    bus.close()


async def test_wake_ups_for_the_same_session_are_merged_until_one_is_read(tmp_path: Path) -> None:
    first, second = LocalBus(tmp_path, "first"), LocalBus(tmp_path, "second")
    for session in ("a", "b", "a"):
        await first.wake(session)
    assert [await wait_for_wake(second), await wait_for_wake(second)] == ["a", "b"]
    await first.wake("a")
    assert await wait_for_wake(second) == "a"
    first.close()
    second.close()


async def test_too_many_wake_ups_are_replaced_by_one_for_all_sessions(tmp_path: Path) -> None:
    first, second = LocalBus(tmp_path, "first"), LocalBus(tmp_path, "second")
    for n in range(5000):
        await first.wake(f"s{n}")
    assert await wait_for_wake(second) == ""
    first.close()
    second.close()


async def test_a_session_name_that_is_too_long_wakes_all_sessions(tmp_path: Path) -> None:
    first, second = LocalBus(tmp_path, "first"), LocalBus(tmp_path, "second")
    await first.wake("s" * 100_000)
    assert await wait_for_wake(second) == ""
    first.close()
    second.close()


async def test_wake_never_raises(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    directory.mkdir()
    bus = LocalBus(directory, "me")
    (directory / "stranger.sock").write_text("not a socket")
    (directory / "note.txt").write_text("not a socket either")
    await bus.wake("s\ud83d")
    assert (directory / "note.txt").exists()
    for file in directory.iterdir():
        file.unlink()
    directory.rmdir()
    await bus.wake("s")
    bus.close()
    bus.close()


async def test_the_name_of_a_live_owner_is_refused_and_that_of_a_dead_owner_is_reused(tmp_path: Path) -> None:
    first = LocalBus(tmp_path, "a/b")
    with pytest.raises(StoreError, match="'a/b'"):
        LocalBus(tmp_path, "a/b")
    [name] = list_names(tmp_path)
    first.close()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
        dead.bind(str(tmp_path / name))
    again = LocalBus(tmp_path, "a/b")
    assert again.is_alive("a/b")
    again.close()
    assert list_names(tmp_path) == []


async def test_the_sockets_are_in_the_home_if_the_path_is_short_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/tmp")
    monkeypatch.chdir(tmp_path)
    short = Path("/tmp") / f"hark-test-{os.getpid()}"
    try:
        assert prepare_bus_directory(short) == short / "run"
        assert (short / "run").stat().st_mode & 0o777 == 0o700
    finally:
        (short / "run").rmdir()
        short.rmdir()


async def test_the_sockets_of_a_home_with_a_long_path_are_in_a_private_temp_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/tmp")
    home, other = tmp_path / ("x" * 100), tmp_path / ("y" * 100)
    directory = prepare_bus_directory(home)
    try:
        assert directory.parent == Path("/tmp")
        assert directory == prepare_bus_directory(home)
        assert directory.stat().st_mode & 0o777 == 0o700
        other_directory = prepare_bus_directory(other)
        other_directory.rmdir()
        assert other_directory != directory
        bus = LocalBus(directory, "me")
        bus.close()
        directory.rmdir()
        directory.symlink_to(tmp_path)
        with pytest.raises(StoreError, match="only you"):
            prepare_bus_directory(home)
        directory.unlink()
        directory.mkdir()
        directory.chmod(0o777)
        with pytest.raises(StoreError, match="only you"):
            prepare_bus_directory(home)
    finally:
        directory.rmdir()


async def test_an_overlong_temp_directory_path_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / ("t" * 100)))
    with pytest.raises(StoreError, match="TMPDIR"):
        prepare_bus_directory(tmp_path / ("x" * 100))
