"""A few seconds of chaos at the keyboard; `python -m tests.surfaces.terminal.fuzz` is for minutes."""

from pathlib import Path

from tests.surfaces.terminal.fuzz import fuzz


async def test_random_keys_pastes_resizes_and_stops_lose_nothing(tmp_path: Path) -> None:
    assert await fuzz(tmp_path, seconds=3.0, seed=20) > 100
