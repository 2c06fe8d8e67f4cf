"""Snapshots of the main screens. `HARK_UPDATE_SCREENS=1 pytest ...` updates them; review the diff."""

import os
from pathlib import Path

import pytest

from tests.surfaces.terminal.screens import SCENES

SNAPSHOT_DIRECTORY = Path(__file__).parent / "screens"


@pytest.mark.parametrize("name", SCENES)
async def test_screen_matches_its_snapshot(tmp_path: Path, name: str) -> None:
    async with SCENES[name](tmp_path) as terminal:
        await terminal.pilot.pause()
        terminal.app.draw_progress()
        await terminal.pilot.pause()
        screen = terminal.screen.rstrip() + "\n"
    path = SNAPSHOT_DIRECTORY / f"{name}.txt"
    if os.environ.get("HARK_UPDATE_SCREENS"):
        SNAPSHOT_DIRECTORY.mkdir(exist_ok=True)
        path.write_text(screen)
    assert screen == path.read_text()
