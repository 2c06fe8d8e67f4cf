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

from tests.crash.audit import Findings
from tests.gateway_kills.audit.audit_all import inquire
from tests.gateway_kills.environment import Plan, World
from tests.gateway_kills.load import run_load
from tests.gateway_kills.platforms.api import ApiFixture
from tests.gateway_kills.set_up import opened

EACH = 6  # of a kind are shown
WRONG = (
    *("lost", "doubled", "invented", "overheard", "another text", "wrong author", "edit lost", "deletion ignored"),
    *("steer lost", "echo lost", "out of order", "still queued", "wrong prompt", "open turn", "turn ended twice"),
    *("reply lost", "reply out of order", "reply not finished", "doubled silently", "note doubled", "stop lost"),
    *("effect twice", "left running", "wedged", "said on stderr"),
)


async def run_gateway_kills(
    folder: Path, plan: Plan, tell: Callable[[str], None]
) -> tuple[World, Findings, list[float]]:
    """Burn, and return what the audit found; `folder` has the home afterwards."""
    async with opened(folder, plan) as world:
        try:
            await run_load(world, tell)
            errors = (folder / "stderr").read_text().strip()
        finally:
            await world.gateway.end()
        findings, stops = await inquire(world)
    if errors:
        findings.wrong("said on stderr", errors[-2000:])
    return world, findings, stops


def report(world: World, findings: Findings, stops: Sequence[float]) -> None:
    """Print the counts, then what is wrong."""
    counts = dict(findings.counts)
    counts |= {
        "kills": world.gateway.kills,
        "chats": len(world.chats),
        "people": len(world.people),
        "API posts made again": world.api.posted_again,
    }
    streams = [person.fixture.stream for person in world.people if isinstance(person.fixture, ApiFixture)]
    counts |= {"API: read anew after a restart": sum(stream.resyncs for stream in streams)}
    counts |= {f"kills when {moment}": times for moment, times in world.kill_point.counts.items()}
    for platform in (world.telegram, world.slack, world.discord, world.programs):
        for name, count in platform.counts.items():
            counts[f"platform: {name}"] = counts.get(f"platform: {name}", 0) + count
    for name, count in sorted(counts.items()):
        if name not in WRONG:
            print(f"{count:8}  {name}")
    print("   ---")
    for name in WRONG:
        print(f"{counts.get(name, 0):8}  {name}")
    print("   ---")
    times = {
        "start to ready": world.gateway.ready_seconds,
        "ready to connected": world.connect_seconds,
        "a taken stop to the end of the reply": stops,
    }
    for name, values in times.items():
        if values:
            print(f"{statistics.median(values) * 1000:8.0f}  ms from {name}, median of {len(values)}")
            print(f"{max(values) * 1000:8.0f}  ms from {name}, at most")
    shown: Counter[str] = Counter()
    for problem in findings.problems:
        kind = problem.partition(":")[0]
        shown[kind] += 1
        if shown[kind] <= EACH:
            print(f"WRONG {problem}")
    print("FAILED" if findings.problems else "nothing lost, nothing doubled")


def main() -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the gateway ends with us
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chats", type=int, default=200)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--kill-seconds", type=float, default=4.0, help="from ready to kill, on the average")
    parser.add_argument("--per-second", type=float, default=60.0, help="deeds of all people together")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--folder", type=Path, help="where to work; kept for a look afterwards")
    options = parser.parse_args()
    seed = random.randrange(2**32) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    plan = Plan(options.chats, options.messages, options.kill_seconds, options.per_second, seed)
    began = time.monotonic()

    def tell(text: str) -> None:
        print(f"{time.monotonic() - began:7.1f} s  {text}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="hark-kills-", ignore_cleanup_errors=True) as directory:
        folder: Path = options.folder or Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        world, findings, stops = asyncio.run(run_gateway_kills(folder, plan, tell))
    print(f"{time.monotonic() - began:8.0f}  s in all")
    report(world, findings, stops)
    return 1 if findings.problems else 0


if __name__ == "__main__":
    sys.exit(main())
