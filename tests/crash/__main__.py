"""`python -m tests.crash --kills 500`: kill -9 under load, then count what is lost or doubled."""

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.crash.audit import Findings
from tests.crash.driver import Driver
from tests.crash.model_process import running_model


async def crash(home: Path, kills: int, seed: int, seconds: float = float("inf")) -> tuple[Driver, Findings]:
    """Kill so often, or for so long; return what the audit found."""
    async with running_model() as model:
        driver = Driver(home, model.port, seed)
        deadline = time.monotonic() + seconds
        while driver.kills < kills and time.monotonic() < deadline:
            await driver.round()
        await driver.finish()
        findings = await driver.audit()
    for complaint in model.complaints:
        findings.wrong("invalid request", complaint)
    return driver, findings


def report(driver: Driver, findings: Findings) -> None:
    """Print the counts, then what is wrong."""
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
    print("FAILED" if findings.problems else "nothing lost, nothing doubled")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop killing after so long")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--home", type=Path, help="where to work; kept for a look afterwards")
    options = parser.parse_args()
    seed = random.randrange(2**32) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="hark-crash-") as directory:
        home: Path = options.home or Path(directory)
        home.mkdir(parents=True, exist_ok=True)
        driver, findings = asyncio.run(crash(home, options.kills, seed, options.seconds))
    report(driver, findings)
    return 1 if findings.problems else 0


if __name__ == "__main__":
    sys.exit(main())
