"""Fuzzes the terminal app for a few seconds. `python -m tests.surfaces.terminal.fuzz` runs for minutes."""

from pathlib import Path

from tests.surfaces.terminal.fuzz import run_fuzzer


async def test_random_keys_pastes_resizes_and_stops_lose_no_text(tmp_path: Path) -> None:
    assert await run_fuzzer(tmp_path, seconds=3.0, seed=20) > 100
