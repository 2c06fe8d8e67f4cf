"""The shell analyzer as the engine uses it, without blocking the event loop."""

import asyncio
import threading
from pathlib import Path

import pytest

from hark.command_safety import analysis
from hark.command_safety.analysis import INLINE_CHARACTERS_MAX, ShellAnalyzer
from hark.protocol.tool import PredictedEffects, Risk, RiskAssessment

ANALYZER = ShellAnalyzer(Path("/home/person"))


async def analyze(effects: PredictedEffects, workspace: Path, *writable: str) -> RiskAssessment:
    return await ANALYZER.analyze(effects, workspace, None, writable)


async def test_cancelling_the_analysis_of_a_long_command_abandons_its_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, released = asyncio.Event(), threading.Event()
    loop, loop_thread = asyncio.get_running_loop(), threading.get_ident()
    threads: list[int] = []

    def blocking_analysis(*_: object, **__: object) -> RiskAssessment:
        threads.append(threading.get_ident())
        loop.call_soon_threadsafe(started.set)
        released.wait()
        return RiskAssessment(Risk.READING)

    monkeypatch.setattr(analysis, "analyze_command", blocking_analysis)
    foreseen = PredictedEffects(command="echo " + "x" * INLINE_CHARACTERS_MAX)
    task = asyncio.create_task(analyze(foreseen, tmp_path))
    try:
        await started.wait()  # the event loop keeps running
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    finally:
        released.set()
    assert threads != [loop_thread]


async def test_a_long_command_gets_the_same_risk_as_a_short_one(tmp_path: Path) -> None:
    padding = "ls; " * (INLINE_CHARACTERS_MAX // 3)
    for command, risk in (("ls", Risk.READING), ("touch x", Risk.CHANGING), ("sudo reboot", Risk.HARD)):
        assert (await analyze(PredictedEffects(command=command), tmp_path)).risk is risk
        assert (await analyze(PredictedEffects(command=padding + command), tmp_path)).risk is risk


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
async def test_the_risk_of_a_path_depends_on_the_target_of_its_links(
    tmp_path: Path, writes: tuple[str, ...], risk: Risk
) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "inside").symlink_to("sub")
    (workspace / "outside").symlink_to(tmp_path)
    (workspace / "loop").symlink_to("loop")
    judgement = await analyze(PredictedEffects(writes=writes), workspace)
    assert judgement.risk is risk
    assert bool(judgement.reasons) is (risk is Risk.LEAVING)


async def test_writable_folders_count_as_inside_the_workspace(tmp_path: Path) -> None:
    foreseen = PredictedEffects(writes=(f"{tmp_path}/other/a",))
    assert (await analyze(foreseen, tmp_path / "workspace")).risk is Risk.LEAVING
    assert (await analyze(foreseen, tmp_path / "workspace", f"{tmp_path}/other")).risk is Risk.CHANGING


async def test_the_risk_of_a_call_without_known_paths_depends_on_whether_it_changes_state(tmp_path: Path) -> None:
    assert (await analyze(PredictedEffects(is_changing=False), tmp_path)).risk is Risk.READING
    assert (await analyze(PredictedEffects(is_changing=True), tmp_path)).risk is Risk.CHANGING
