"""`hark trace`: shows where a turn's time went, in the terminal, as an HTML page, or as JSON."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from hark.app.shutdown import COMPLETED, FAILED
from hark.cli.io.printing import print_error, print_json, print_line
from hark.cli.open_store import open_store
from hark.protocol.names import short_turn_name
from hark.protocol.records import AnyRecord
from hark.text.columns import detect_output_style
from hark.trace.from_journal import build_trace, find_turn, read_child_journals, turn_names
from hark.trace.terminal import render_timeline, render_turn_list
from hark.trace.turn_trace import TurnTrace, as_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("session")
    parser.add_argument("turn", nargs="?", help="the turn, such as demo.t4, t4 or 4 (default: the last one)")
    parser.add_argument("--all", action="store_true", help="show every turn of the session")
    parser.add_argument("--html", metavar="FILE", help="write the timeline to an HTML file")
    parser.add_argument("--json", action="store_true", help="print JSON")


async def run(options: argparse.Namespace) -> int:
    """Show one turn (`demo.t4`, `t4` or `4`; by default the last one), or with `--all` every turn of a session.

    With `--html` the timeline is written to that file, with `--json` it is printed as data.
    """
    async with open_store() as store:
        records = await store.journal.read(options.session)
        turn = find_turn(records, options.turn or "")
        if not records or turn is None:
            return _report_missing(options.session, options.turn, records)
        names = turn_names(records) if options.all else [turn]
        children = await read_child_journals(store.journal, records, names)
    traces = [build_trace(records, name, children) for name in names]
    if options.html:
        return _write_html(Path(options.html), options.session, traces)
    if options.json:
        print_json({"turns": [as_json(trace) for trace in traces]})
    elif options.all:
        print_line(render_turn_list(records, detect_output_style()))
    else:
        print_line(render_timeline(records, turn, children, detect_output_style()))
    return COMPLETED


def _write_html(file: Path, session: str, traces: Sequence[TurnTrace]) -> int:
    from hark.trace.html import render_page

    title = f"{session}: {traces[0].prompt}" if traces[0].prompt else session
    try:
        file.write_text(render_page(title, traces), "utf-8")
    except OSError as error:
        print_error(f"can't write {file}: {error.strerror}")
        return FAILED
    print_line(f"Written to {file}")
    return COMPLETED


def _report_missing(session: str, turn: str | None, records: Sequence[AnyRecord]) -> int:
    if not records:
        print_error(f"No session named {session!r}. `hark sessions` lists them.")
    elif turn:
        names = ", ".join(short_turn_name(name) for name in turn_names(records)[-10:])
        print_error(f"{session} has no turn {turn}; its last turns are: {names or 'none yet'}")
    else:
        print_error(f"no turn has run in {session} yet")
    return FAILED
