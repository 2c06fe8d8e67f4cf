"""`hark trace`: where a turn's time went, in the terminal, as a picture, or as JSON."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from hark.app.shutdown import COMPLETED, FAILED
from hark.cli.io.printing import print_error, print_json, print_line
from hark.cli.open_store import opened_store
from hark.protocol.names import short_name
from hark.protocol.records import AnyRecord
from hark.text.columns import look_of_output
from hark.trace.from_journal import children_of, find_turn, story_of, turns_of
from hark.trace.terminal import trace_text, turns_text
from hark.trace.turn_trace import TurnTrace, as_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("session")
    parser.add_argument("turn", nargs="?", help="demo.t4, t4 or 4; without it the last one")
    parser.add_argument("--all", action="store_true", help="every turn of the session")
    parser.add_argument("--html", metavar="FILE", help="write a picture")
    parser.add_argument("--json", action="store_true", help="print JSON")


async def run(options: argparse.Namespace) -> int:
    """Show one turn (`turn`: `demo.t4`, `t4` or `4`; the last one without it), or with `all` every turn of a session.

    With `html` it is written into that file as a picture, with `json` printed as data.
    """
    async with opened_store() as store:
        records = await store.journal.read(options.session)
        turn = find_turn(records, options.turn or "")
        if not records or turn is None:
            return _missing(options.session, options.turn, records)
        wanted = turns_of(records) if options.all else [turn]
        children = await children_of(store.journal, records, wanted)
    stories = [story_of(records, name, children) for name in wanted]
    if options.html:
        return _write(Path(options.html), options.session, stories)
    if options.json:
        print_json({"turns": [as_json(story) for story in stories]})
    elif options.all:
        print_line(turns_text(records, look_of_output()))
    else:
        print_line(trace_text(records, turn, children, look_of_output()))
    return COMPLETED


def _write(file: Path, session: str, stories: Sequence[TurnTrace]) -> int:
    from hark.trace.html import picture

    title = f"{session}: {stories[0].prompt}" if stories[0].prompt else session
    try:
        file.write_text(picture(title, stories), "utf-8")
    except OSError as error:
        print_error(f"{file} can't be written: {error.strerror}")
        return FAILED
    print_line(f"Written: {file}")
    return COMPLETED


def _missing(session: str, turn: str | None, records: Sequence[AnyRecord]) -> int:
    if not records:
        print_error(f"there is no {session}; `hark sessions` lists what there is")
    elif turn:
        names = ", ".join(short_name(name) for name in turns_of(records)[-10:])
        print_error(f"{session} has no turn {turn}; its last ones are: {names or 'none yet'}")
    else:
        print_error(f"no turn has run in {session} yet")
    return FAILED
