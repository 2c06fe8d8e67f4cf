"""`python -m bench [NAME...] [--quick]`: runs benchmarks, each in a separate process."""

import argparse
from collections.abc import Callable

from bench import (
    crowd,
    gateway,
    interrupts,
    mcp_retries,
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
from bench.run import BenchOptions, raise_file_limit, run_in_new_process
from bench.table import Figure, print_table

BENCHMARKS: dict[str, Callable[[BenchOptions], list[Figure]]] = {
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
    "mcp_retries": mcp_retries.measure,
    "soak": soak.measure,
}


def main() -> None:
    """Run the benchmarks and print a table for each. A missed target isn't an error; a busy machine can cause it."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"benchmarks to run: {', '.join(BENCHMARKS)} (default: all)"
    )
    parser.add_argument("--quick", action="store_true", help="do about a tenth of the work, for rough figures")
    parser.add_argument("--uvloop", action="store_true", help="use uvloop, which must be installed")
    parser.add_argument("--minutes", type=float, default=2.0, help="duration of the soak test in minutes (default: 2)")
    options = parser.parse_args()
    unknown = set(options.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"unknown benchmark: {', '.join(sorted(unknown))}")
    raise_file_limit()
    bench_options = BenchOptions(is_quick=options.quick, has_uvloop=options.uvloop, minutes=options.minutes)
    for name in options.names or BENCHMARKS:
        print_table(name, run_in_new_process(BENCHMARKS[name], bench_options))


if __name__ == "__main__":
    main()
