"""The main screens look as they did. `HARK_UPDATE_SCREENS=1 pytest ...` takes them anew; look at the difference."""

import os
from pathlib import Path

import pytest

from tests.surfaces.terminal.screens import SCENES

FOLDER = Path(__file__).parent / "screens"


@pytest.mark.parametrize("name", SCENES)
async def test_a_screen_looks_as_it_did(tmp_path: Path, name: str) -> None:
    async with SCENES[name](tmp_path) as one:
        await one.pilot.pause()
        one.app.draw_progress()
        await one.pilot.pause()
        seen = one.screen.rstrip() + "\n"
    path = FOLDER / f"{name}.txt"
    if os.environ.get("HARK_UPDATE_SCREENS"):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(seen)
    assert seen == path.read_text()
