"""`hark doctor`: checks whether a turn can run, and shows how to fix problems."""

import argparse
import sys

from hark.app.doctor.report import NOT_READY, READY, is_ready, run_checks
from hark.app.doctor.results import CheckResult
from hark.app.shutdown import COMPLETED, EXIT_SECONDS, FAILED, Signals, Watchdog
from hark.cli.io.printing import print_json, print_line
from hark.text.columns import detect_output_style


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--json", action="store_true", help="print JSON")


async def run(options: argparse.Namespace) -> int:
    """Run the checks. A signal kills the MCP servers that they started, and exits."""
    with Signals(Watchdog(EXIT_SECONDS)):
        return await _print_checks(options)


async def _print_checks(options: argparse.Namespace) -> int:
    """Print each result as soon as it is known, or with `--json` all together. Return 0 if a turn can run."""
    style, results = detect_output_style(), list[CheckResult]()
    async for result in run_checks():
        results.append(result)
        if not options.json:
            print_line("\n".join(result.lines(style)) if sys.stdout.isatty() else str(result))
            sys.stdout.flush()
    ready = is_ready(results)
    if options.json:
        print_json({"can_run": ready, "findings": results})
    else:
        print_line(READY if ready else NOT_READY)
    return COMPLETED if ready else FAILED
