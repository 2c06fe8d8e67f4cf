"""`python -m bench [NAME...] [--quick]`: measures, each benchmark in a process of its own."""

import argparse
from collections.abc import Callable

from bench import (
    crowd,
    gateway,
    interrupts,
    misconfigured,
    sleepers,
    soak,
    start,
    terminal,
    tokens,
    turns,
    undo,
    voice,
)
from bench.run import Plan, in_fresh_process, raise_file_limit
from bench.table import Figure, show

BENCHMARKS: dict[str, Callable[[Plan], list[Figure]]] = {
    "interrupts": interrupts.measure,
    "tokens": tokens.measure,
    "turns": turns.measure,
    "undo": undo.measure,
    "crowd": crowd.measure,
    "start": start.measure,
    "terminal": terminal.measure,
    "voice": voice.measure,
    "gateway": gateway.measure,
    "sleepers": sleepers.measure,
    "misconfigured": misconfigured.measure,
    "soak": soak.measure,
}


def main() -> None:
    """Print a table for each benchmark. A busy machine makes a figure miss its target, so that is no failure."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which: {', '.join(BENCHMARKS)} (all)")
    parser.add_argument("--quick", action="store_true", help="about a tenth of the work: rough figures")
    parser.add_argument("--uvloop", action="store_true", help="on uvloop, which must be installed")
    parser.add_argument("--minutes", type=float, default=2.0, help="how long the soak lasts (2)")
    options = parser.parse_args()
    unknown = set(options.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}")
    raise_file_limit()
    plan = Plan(is_quick=options.quick, has_uvloop=options.uvloop, minutes=options.minutes)
    for name in options.names or BENCHMARKS:
        show(name, in_fresh_process(BENCHMARKS[name], plan))


if __name__ == "__main__":
    main()
