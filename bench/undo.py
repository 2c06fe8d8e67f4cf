"""Undo: what a changing call waits for before it may begin, and the way back."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.run import Plan
from bench.table import Figure, Spread
from hark.protocol.snapshots import StepName
from hark.tools.undo.manifest import TICK_NS
from hark.tools.undo.undo import Undo

ROUNDS = 40
FILES = 1_000


def measure(plan: Plan) -> list[Figure]:
    """Keep workspaces of two sizes before each of many steps."""
    small = plan.run(_measure(plan.count(ROUNDS), FILES))
    big = plan.run(_measure(max(3, plan.count(ROUNDS) // 4), FILES * 20))
    targets = {"before a shell call, 1000 files": Spread(20.0), "before a file tool, 1000 files": Spread(10.0)}
    return [Figure(name, "ms", spread, None, targets.get(name)) for name, spread in {**small, **big}.items()]


async def _measure(rounds: int, files: int) -> dict[str, Spread]:
    with TemporaryDirectory(prefix="hark-bench-") as folder:
        workspace = Path(folder, "work")
        _fill(workspace, files)
        await asyncio.sleep(TICK_NS / 1e9 * 2)  # files that are just written are read again
        undo = Undo(Path(folder, "home", "undo"))
        name = f"{files} files"
        first = [await _timed(lambda: undo.before(StepName("s", "t", -1), workspace, None))]
        shell: list[float] = []
        tool: list[float] = []
        back: list[float] = []
        for number in range(rounds):
            for times, writes in ((shell, None), (tool, ["d0/f0"])):
                step = StepName("s", f"{number} {writes}", number)
                times.append(await _timed(lambda step=step, writes=writes: undo.before(step, workspace, writes)))
                _write(workspace, f"{step}")
                undo.after(step)
                back.append(await _timed(lambda: undo.undo("s")))
        await undo.close()
    return {
        f"before the first shell call, {name}": Spread.of(first),
        f"before a shell call, {name}": Spread.of(shell),
        f"before a file tool, {name}": Spread.of(tool),
        f"undo of one file, {name}": Spread.of(back),
    }


def _fill(workspace: Path, files: int) -> None:
    for number in range(files):
        folder = workspace / f"d{number % (files // 20)}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"f{number}").write_bytes(b"%d\n" % number * 200)


def _write(workspace: Path, text: str) -> None:
    (workspace / "d0" / "f0").write_text(text)


async def _timed(act: Callable[[], Awaitable[object]]) -> float:
    start = time.perf_counter()
    await act()
    return (time.perf_counter() - start) * 1000
