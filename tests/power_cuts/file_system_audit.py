"""Cuts the power of recorded scenarios on a real file system."""

import asyncio
import random
from pathlib import Path

from tests.power_cuts.audit import RecordedScenario, Report
from tests.power_cuts.disk.real_file_system import replay

CUTS_PER_REPLAY = 25  # each cut needs a copy of the device


def cut_power_on_file_system(
    recorded: RecordedScenario, file_system: str, count: int, seed: int, report: Report, folder: Path
) -> None:
    """Replay the recording on this file system and cut the power `count` times."""
    pick = random.Random(seed)
    recording = recorded.recording
    points = recorded.cut_points(count, pick)
    for first in range(0, count, CUTS_PER_REPLAY):
        cuts = points[first : first + CUTS_PER_REPLAY]
        trees = replay(file_system, recording.base, recording.operations, cuts, folder)
        for cut, tree in zip(cuts, trees, strict=True):
            asyncio.run(recorded.check(tree, cut, file_system, report))
