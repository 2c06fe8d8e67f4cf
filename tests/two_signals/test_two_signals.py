"""A few runs of two signals. `python -m tests.two_signals --count 200` does many."""

from pathlib import Path

import pytest

from tests.two_signals.plan import CLOSE, ENTRY_POINTS, EntryPoint, Plan
from tests.two_signals.run import run_plan

GAP_SECONDS = 0.15  # the order of the signals is certain, and the stubborn work is still being stopped


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
async def test_a_second_signal_during_the_exit_leaves_no_process(tmp_path: Path, entry_point: EntryPoint) -> None:
    assert await run_plan(Plan(entry_point, "exit", ("SIGTERM", "SIGINT"), 0.0, GAP_SECONDS), tmp_path) == []


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
async def test_a_sighup_and_a_second_signal_leave_no_process(tmp_path: Path, entry_point: EntryPoint) -> None:
    assert await run_plan(Plan(entry_point, "work", ("SIGHUP", "SIGTERM"), 0.0, GAP_SECONDS), tmp_path) == []


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
async def test_a_closed_terminal_or_input_and_a_signal_leave_no_process(
    tmp_path: Path, entry_point: EntryPoint
) -> None:
    assert await run_plan(Plan(entry_point, "work", (CLOSE, "SIGTERM"), 0.0, GAP_SECONDS), tmp_path) == []


@pytest.mark.parametrize("seed", range(6))
async def test_two_signals_at_random_instants_leave_nothing_behind(tmp_path: Path, seed: int) -> None:
    assert await run_plan(Plan.from_seed(seed), tmp_path) == []


@pytest.mark.parametrize("delay_seconds", [0.2, 0.4, 0.6])
async def test_a_signal_while_the_terminal_app_starts_restores_the_terminal(
    tmp_path: Path, delay_seconds: float
) -> None:
    assert (
        await run_plan(Plan("terminal", "startup", ("SIGTERM", "SIGTERM"), delay_seconds, GAP_SECONDS), tmp_path) == []
    )


async def test_two_signals_in_a_row_restore_the_terminal(tmp_path: Path) -> None:
    assert await run_plan(Plan("terminal", "work", ("SIGINT", "SIGTERM"), 0.0, 0.002), tmp_path) == []
