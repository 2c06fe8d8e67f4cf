"""A few runs of two signals. `python -m tests.two_signals --count 200` does many."""

from pathlib import Path

import pytest

from tests.two_signals.run import CLOSE, ENTRY_POINTS, EntryPoint, Plan, run_plan


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
async def test_a_second_signal_during_the_exit_leaves_no_process(tmp_path: Path, entry_point: EntryPoint) -> None:
    assert await run_plan(Plan(entry_point, "exit", ("SIGTERM", "SIGINT"), 0.0, 0.05), tmp_path) == []


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
async def test_a_sighup_and_a_second_signal_leave_no_process(tmp_path: Path, entry_point: EntryPoint) -> None:
    assert await run_plan(Plan(entry_point, "work", ("SIGHUP", "SIGTERM"), 0.0, 0.05), tmp_path) == []


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
async def test_a_closed_terminal_or_input_and_a_signal_leave_no_process(
    tmp_path: Path, entry_point: EntryPoint
) -> None:
    assert await run_plan(Plan(entry_point, "work", (CLOSE, "SIGTERM"), 0.0, 0.05), tmp_path) == []


@pytest.mark.parametrize("seed", range(12))
async def test_two_signals_at_random_instants_leave_nothing_behind(tmp_path: Path, seed: int) -> None:
    assert await run_plan(Plan.from_seed(seed), tmp_path) == []


@pytest.mark.parametrize("delay_seconds", [0.1, 0.3, 0.5, 0.7])
async def test_a_signal_while_the_terminal_app_starts_restores_the_terminal(
    tmp_path: Path, delay_seconds: float
) -> None:
    assert await run_plan(Plan("terminal", "startup", ("SIGTERM", "SIGTERM"), delay_seconds, 0.05), tmp_path) == []
