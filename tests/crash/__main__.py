"""`python -m tests.crash --kills 500`: kill -9 under load, then count lost and duplicated messages."""

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.crash.audit import AuditResults
from tests.crash.driver import Driver
from tests.crash.model_process import run_model


async def run_crash_test(
    home: Path, kills: int, seed: int, seconds: float = float("inf")
) -> tuple[Driver, AuditResults]:
    """Kill workers until `kills` or `seconds` is reached. Return the driver and the audit's results."""
    async with run_model() as model:
        driver = Driver(home, model.port, seed)
        deadline = time.monotonic() + seconds
        while driver.kills < kills and time.monotonic() < deadline:
            await driver.run_round()
        await driver.finish()
        findings = await driver.audit()
    for complaint in model.invalid_requests:
        findings.add_problem("invalid request", complaint)
    return driver, findings


def report(driver: Driver, findings: AuditResults) -> None:
    """Print the audit's counts, the measured times and the problems."""
    for name in ("lost", "doubled", "effect twice", "dishonest", "false effect", "left running"):
        findings.counts.setdefault(name, 0)
    for name, count in sorted(findings.counts.items()):
        print(f"{count:8}  {name}")
    for name, values in (("ready", driver.ready_seconds), ("first receipt", driver.receipt_seconds)):
        if values:
            print(f"{statistics.median(values) * 1000:8.0f}  ms from start to {name}, median of {len(values)}")
            print(f"{max(values) * 1000:8.0f}  ms from start to {name}, at most")
    for problem in findings.problems[:50]:
        print(f"WRONG {problem}")
    print("FAILED" if findings.problems else "nothing lost, nothing duplicated")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop killing after this many seconds")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--home", type=Path, help="the home to use; it is not deleted afterwards")
    options = parser.parse_args()
    seed = random.randrange(2**32) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="hark-crash-") as directory:
        home: Path = options.home or Path(directory)
        home.mkdir(parents=True, exist_ok=True)
        driver, findings = asyncio.run(run_crash_test(home, options.kills, seed, options.seconds))
    report(driver, findings)
    return 1 if findings.problems else 0


if __name__ == "__main__":
    sys.exit(main())
