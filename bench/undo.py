"""Undo: the delay that a snapshot adds before a call that changes files, and the time to undo the change."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.run import BenchOptions
from bench.table import Figure, Percentiles
from hark.protocol.snapshots import StepId
from hark.tools.undo.manifest import TICK_NS
from hark.tools.undo.undo import Undo

ROUNDS = 40
FILES = 1_000


def measure(options: BenchOptions) -> list[Figure]:
    """Measure snapshots and undo in workspaces of two sizes, over many steps."""
    small = options.run(_measure(options.scale(ROUNDS), FILES))
    big = options.run(_measure(max(3, options.scale(ROUNDS) // 4), FILES * 20))
    targets = {
        "before a shell call, 1000 files": Percentiles(20.0),
        "before a file tool, 1000 files": Percentiles(10.0),
    }
    return [Figure(name, "ms", spread, None, targets.get(name)) for name, spread in {**small, **big}.items()]


async def _measure(rounds: int, files: int) -> dict[str, Percentiles]:
    with TemporaryDirectory(prefix="hark-bench-") as folder:
        workspace = Path(folder, "work")
        _create_files(workspace, files)
        await asyncio.sleep(TICK_NS / 1e9 * 2)  # recently written files are read again, so wait
        undo = Undo(Path(folder, "home", "undo"))
        name = f"{files} files"
        first = [await _time_call(lambda: undo.save_before_step(StepId("s", "t", -1), workspace, None))]
        shell_times: list[float] = []
        tool_times: list[float] = []
        undo_times: list[float] = []
        for number in range(rounds):
            for times, writes in ((shell_times, None), (tool_times, ["d0/f0"])):
                step = StepId("s", f"{number} {writes}", number)
                times.append(
                    await _time_call(lambda step=step, writes=writes: undo.save_before_step(step, workspace, writes))
                )
                _change_file(workspace, f"{step}")
                undo.finish_step(step)
                undo_times.append(await _time_call(lambda: undo.undo("s")))
        await undo.close()
    return {
        f"before the first shell call, {name}": Percentiles.of(first),
        f"before a shell call, {name}": Percentiles.of(shell_times),
        f"before a file tool, {name}": Percentiles.of(tool_times),
        f"undo of one file, {name}": Percentiles.of(undo_times),
    }


def _create_files(workspace: Path, files: int) -> None:
    for number in range(files):
        folder = workspace / f"d{number % (files // 20)}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"f{number}").write_bytes(b"%d\n" % number * 200)


def _change_file(workspace: Path, text: str) -> None:
    (workspace / "d0" / "f0").write_text(text)


async def _time_call(action: Callable[[], Awaitable[object]]) -> float:
    start = time.perf_counter()
    await action()
    return (time.perf_counter() - start) * 1000
