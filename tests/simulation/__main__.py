"""Replays one seed or runs many: `python -m tests.simulation --seed 7 --trace`, or `--count 2000 --jobs 2`."""

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from tests.simulation.simulation import run_seed


def run_for_violations(seed: int) -> tuple[int, list[str]]:
    return seed, run_seed(seed).violations


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="replay this seed")
    parser.add_argument("--trace", action="store_true", help="print every event of the run")
    parser.add_argument("--count", type=int, default=100, help="how many seeds to run")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1, help="the number of processes")
    options = parser.parse_args()
    if options.seed is not None:
        return replay(options.seed, is_traced=options.trace)
    return run_many(range(options.first, options.first + options.count), options.jobs)


def replay(seed: int, *, is_traced: bool) -> int:
    observations = run_seed(seed)
    if is_traced:
        print(observations.trace_text())
    counts = f"{len(observations.records)} records, {len(observations.streams)} requests"
    print(f"seed {seed}: fingerprint {observations.fingerprint()}, {counts}")
    print("\n".join(observations.violations) or "no violations")
    return 1 if observations.violations else 0


def run_many(seeds: range, jobs: int) -> int:
    began = time.process_time()
    start = time.perf_counter()
    broken = 0
    if jobs > 1:
        with ProcessPoolExecutor(jobs) as pool:
            results = list(pool.map(run_for_violations, seeds, chunksize=20))
    else:
        results = list(map(run_for_violations, seeds))
    for seed, violations in results:
        if violations:
            broken += 1
            print(f"seed {seed}: " + "\n    ".join(violations))
    cpu = (time.process_time() - began) / len(seeds) * 1000
    print(
        f"{len(seeds)} seeds, {broken} with violations, {time.perf_counter() - start:.1f} s, {cpu:.1f} ms CPU each here"
    )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
