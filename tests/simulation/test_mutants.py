"""The simulation detects each planted bug within a bounded number of seeds."""

import pytest

from tests.simulation.mutants import MUTANTS
from tests.simulation.mutants.mutant import Mutant
from tests.simulation.simulation import run_seed

SEEDS = 400


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_simulation_detects_a_planted_bug(mutant: Mutant) -> None:
    seeds = range(mutant.first_seed, mutant.first_seed + SEEDS)
    with mutant.planted():
        seed = next((seed for seed in seeds if run_seed(seed).violations), None)
    assert seed is not None, f"{SEEDS} seeds did not detect it: {mutant.description}"
    assert not run_seed(seed).violations, f"seed {seed} is broken without the bug too"
