"""The port of the analysis: what the engine asks, and that it never waits long on the event loop."""

import asyncio
import threading
from pathlib import Path

import pytest

from hark.command_safety import analysis
from hark.command_safety.analysis import INLINE_CHARACTERS, ShellAnalyzer
from hark.protocol.tool import Foreseen, Judgement, Risk

ANALYZER = ShellAnalyzer(Path("/home/person"))


async def analyze(foreseen: Foreseen, workspace: Path, *writable: str) -> Judgement:
    return await ANALYZER.analyze(foreseen, workspace, None, writable)


async def test_a_long_command_is_analysed_in_a_thread_that_a_cancel_leaves_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, held = asyncio.Event(), threading.Event()
    loop, here = asyncio.get_running_loop(), threading.get_ident()
    threads: list[int] = []

    def judge(*_: object, **__: object) -> Judgement:
        threads.append(threading.get_ident())
        loop.call_soon_threadsafe(started.set)
        held.wait()
        return Judgement(Risk.READING)

    monkeypatch.setattr(analysis, "judge", judge)
    foreseen = Foreseen(command="echo " + "x" * INLINE_CHARACTERS)
    task = asyncio.create_task(analyze(foreseen, tmp_path))
    try:
        await started.wait()  # the event loop goes on
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    finally:
        held.set()
    assert threads != [here]


async def test_a_long_command_is_judged_like_a_short_one(tmp_path: Path) -> None:
    padding = "ls; " * (INLINE_CHARACTERS // 3)
    for command, risk in (("ls", Risk.READING), ("touch x", Risk.CHANGING), ("sudo reboot", Risk.HARD)):
        assert (await analyze(Foreseen(command=command), tmp_path)).risk is risk
        assert (await analyze(Foreseen(command=padding + command), tmp_path)).risk is risk


@pytest.mark.parametrize(
    ("writes", "risk"),
    [
        (("a", "sub/b"), Risk.CHANGING),
        (("../a",), Risk.LEAVING),
        (("inside",), Risk.CHANGING),
        (("outside/a",), Risk.LEAVING),
        (("a", "/etc/a"), Risk.LEAVING),
        (("~nobody-has-this-name/a",), Risk.LEAVING),
        (("loop/a",), Risk.LEAVING),
        (("x\0",), Risk.LEAVING),
    ],
)
async def test_a_path_is_judged_by_where_its_links_lead(tmp_path: Path, writes: tuple[str, ...], risk: Risk) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "inside").symlink_to("sub")
    (workspace / "outside").symlink_to(tmp_path)
    (workspace / "loop").symlink_to("loop")
    judgement = await analyze(Foreseen(writes=writes), workspace)
    assert judgement.risk is risk
    assert bool(judgement.reasons) is (risk is Risk.LEAVING)


async def test_writable_folders_count_as_inside(tmp_path: Path) -> None:
    foreseen = Foreseen(writes=(f"{tmp_path}/other/a",))
    assert (await analyze(foreseen, tmp_path / "workspace")).risk is Risk.LEAVING
    assert (await analyze(foreseen, tmp_path / "workspace", f"{tmp_path}/other")).risk is Risk.CHANGING


async def test_a_call_that_writes_nothing_known_is_judged_by_what_it_says_of_itself(tmp_path: Path) -> None:
    assert (await analyze(Foreseen(is_changing=False), tmp_path)).risk is Risk.READING
    assert (await analyze(Foreseen(is_changing=True), tmp_path)).risk is Risk.CHANGING
