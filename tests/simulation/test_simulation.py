"""Hundreds of seeded runs of the real engine and stores, each checked against every guarantee."""

import os
import subprocess
import sys

import pytest

from tests.simulation.simulation import run_seed

COUNT = int(os.environ.get("HARK_SEEDS", "500"))  # more than any planted bug needs; `make simulate` runs thousands
BLOCKS = 10
SOME_SEEDS = (3, 9, 11, 42, 57, 111, 416, 697)
PRINT_FINGERPRINTS = """
import sys
from tests.simulation.simulation import run_seed
for seed in sys.argv[1:]:
    print(run_seed(int(seed)).fingerprint())
"""


@pytest.mark.parametrize("block", range(BLOCKS))
def test_every_guarantee_holds_for_every_seed(block: int) -> None:
    for seed in range(block, COUNT, BLOCKS):
        violations = run_seed(seed).violations
        assert not violations, f"seed {seed} (replay: uv run python -m tests.simulation --seed {seed} --trace): " + (
            "\n".join(violations)
        )


def test_the_same_seed_produces_the_same_run() -> None:
    for seed in SOME_SEEDS:
        assert run_seed(seed).trace_text() == run_seed(seed).trace_text()


@pytest.mark.parametrize("hash_seed", ["0", "1", "random"])
def test_the_same_seed_produces_the_same_run_in_another_process(hash_seed: str) -> None:
    command = [sys.executable, "-c", PRINT_FINGERPRINTS, *map(str, SOME_SEEDS)]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert output.split() == [run_seed(seed).fingerprint() for seed in SOME_SEEDS]


def test_different_seeds_produce_different_runs() -> None:
    fingerprints = {run_seed(seed).fingerprint() for seed in range(20)}
    assert len(fingerprints) == 20
