"""`python -m tests.gateway_kills`: many chats, a gateway that is killed often, and an audit of every message."""

import argparse
import asyncio
import random
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.crash.audit import AuditResults
from tests.gateway_kills.audit.audit_all import audit_all
from tests.gateway_kills.environment import GatewayEnvironment, Plan
from tests.gateway_kills.load import run_load
from tests.gateway_kills.open_environment import open_environment
from tests.gateway_kills.platforms.api import ApiFixture

MAX_PROBLEMS_PER_KIND = 6  # of a kind are shown
PROBLEM_KINDS = (
    *("lost", "doubled", "invented", "overheard", "another text", "wrong author", "edit lost", "deletion ignored"),
    *("steer lost", "echo lost", "out of order", "still queued", "wrong prompt", "open turn", "turn ended twice"),
    *("reply lost", "reply out of order", "reply not finished", "doubled silently", "note doubled", "stop lost"),
    *("effect twice", "left running", "wedged", "said on stderr"),
)


async def run_gateway_kills(
    folder: Path, plan: Plan, log: Callable[[str], None]
) -> tuple[GatewayEnvironment, AuditResults, list[float]]:
    """Run the test with its home in `folder`. Return the environment, the audit's results and the stop delays."""
    async with open_environment(folder, plan) as environment:
        try:
            await run_load(environment, log)
            errors = (folder / "stderr").read_text().strip()
        finally:
            await environment.gateway.stop()
        findings, stops = await audit_all(environment)
    if errors:
        findings.add_problem("said on stderr", errors[-2000:])
    return environment, findings, stops


def report(environment: GatewayEnvironment, findings: AuditResults, stops: Sequence[float]) -> None:
    """Print the counts, then the problems."""
    counts = dict(findings.counts)
    counts |= {
        "kills": environment.gateway.kills,
        "chats": len(environment.chats),
        "people": len(environment.users),
        "API posts repeated": environment.api.repeated_posts,
    }
    streams = [person.fixture.stream for person in environment.users if isinstance(person.fixture, ApiFixture)]
    counts |= {"API: transcript read again after a restart": sum(stream.resyncs for stream in streams)}
    counts |= {f"kills when {moment}": times for moment, times in environment.kill_point.counts.items()}
    for platform in (environment.telegram, environment.slack, environment.discord, environment.programs):
        for name, count in platform.counts.items():
            counts[f"platform: {name}"] = counts.get(f"platform: {name}", 0) + count
    for name, count in sorted(counts.items()):
        if name not in PROBLEM_KINDS:
            print(f"{count:8}  {name}")
    print("   ---")
    for name in PROBLEM_KINDS:
        print(f"{counts.get(name, 0):8}  {name}")
    print("   ---")
    times = {
        "start to ready": environment.gateway.ready_seconds,
        "ready to connected": environment.connect_seconds,
        "an accepted stop to the end of the reply": stops,
    }
    for name, values in times.items():
        if values:
            print(f"{statistics.median(values) * 1000:8.0f}  ms from {name}, median of {len(values)}")
            print(f"{max(values) * 1000:8.0f}  ms from {name}, at most")
    printed: Counter[str] = Counter()
    for problem in findings.problems:
        kind = problem.partition(":")[0]
        printed[kind] += 1
        if printed[kind] <= MAX_PROBLEMS_PER_KIND:
            print(f"WRONG {problem}")
    print("FAILED" if findings.problems else "nothing lost, nothing duplicated")


def main() -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the gateway ends with this process
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chats", type=int, default=200)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--kill-seconds", type=float, default=4.0, help="average time from ready to kill")
    parser.add_argument("--per-second", type=float, default=60.0, help="user actions per second, all users together")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--folder", type=Path, help="the folder to use; it is not deleted afterwards")
    options = parser.parse_args()
    seed = random.randrange(2**32) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    plan = Plan(options.chats, options.messages, options.kill_seconds, options.per_second, seed)
    began = time.monotonic()

    def log(text: str) -> None:
        print(f"{time.monotonic() - began:7.1f} s  {text}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="hark-kills-", ignore_cleanup_errors=True) as directory:
        folder: Path = options.folder or Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        environment, findings, stops = asyncio.run(run_gateway_kills(folder, plan, log))
    print(f"{time.monotonic() - began:8.0f}  s in total")
    report(environment, findings, stops)
    return 1 if findings.problems else 0


if __name__ == "__main__":
    sys.exit(main())
