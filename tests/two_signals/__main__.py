"""`python -m tests.two_signals --count 200`: reports every run that left a process, a raw terminal or a wrong code."""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.two_signals.plan import Plan
from tests.two_signals.run import run_plan


async def run_all(seeds: range, jobs: int) -> int:
    """Run the plans of these seeds and return the number of failed ones."""
    limiter = asyncio.Semaphore(jobs)
    failures = 0

    async def run(seed: int) -> None:
        nonlocal failures
        plan = Plan.from_seed(seed)
        async with limiter:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                problems = await run_plan(plan, Path(folder))
        failures += bool(problems)
        for problem in problems:
            sys.stdout.write(f"seed {seed}: {plan}\n  {problem}\n")
            sys.stdout.flush()

    await asyncio.gather(*(run(seed) for seed in seeds))
    return failures


parser = argparse.ArgumentParser()
parser.add_argument("--count", type=int, default=200)
parser.add_argument("--seed", type=int, default=0, help="the first seed")
parser.add_argument("--jobs", type=int, default=2)
options = parser.parse_args()
failed = asyncio.run(run_all(range(options.seed, options.seed + options.count), options.jobs))
sys.stdout.write(f"{options.count} runs, {failed} failed\n")
sys.exit(failed > 0)
