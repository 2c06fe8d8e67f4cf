"""Known bugs, put back in: each is found within a bounded number of seeds."""

import pytest

from tests.simulation.mutants import MUTANTS
from tests.simulation.mutants.mutant import Mutant
from tests.simulation.simulation import run_seed

SEEDS = 400


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_known_bug_is_found(mutant: Mutant) -> None:
    seeds = (*range(mutant.near, SEEDS), *range(mutant.near))
    with mutant.alive():
        found = next((seed for seed in seeds if run_seed(seed).violations), None)
    assert found is not None, f"{SEEDS} seeds did not find it: {mutant.story}"
    assert not run_seed(found).violations, f"seed {found} is broken without the bug too"
