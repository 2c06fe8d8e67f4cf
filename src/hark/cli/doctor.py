"""`hark doctor`: see whether a turn can run, and what to do when not."""

import argparse
import sys

from hark.app.doctor.report import UNWELL, WELL, can_run, findings
from hark.app.doctor.results import Finding
from hark.app.shutdown import COMPLETED, FAILED
from hark.cli.io.printing import print_json, print_line
from hark.text.columns import look_of_output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--json", action="store_true", help="print JSON")


async def run(options: argparse.Namespace) -> int:
    """Print what is found, line by line, or with `json` all of it at the end; 0 when a turn could run."""
    look, found = look_of_output(), list[Finding]()
    async for finding in findings():
        found.append(finding)
        if not options.json:
            print_line("\n".join(finding.lines(look)) if sys.stdout.isatty() else str(finding))
            sys.stdout.flush()
    is_well = can_run(found)
    if options.json:
        print_json({"can_run": is_well, "findings": found})
    else:
        print_line(WELL if is_well else UNWELL)
    return COMPLETED if is_well else FAILED
