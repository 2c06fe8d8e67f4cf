"""`hark trace`: where a turn's time went, in the terminal, as a picture, or as JSON."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from hark.app.shutdown import COMPLETED, FAILED
from hark.cli.remote import opened_store
from hark.protocol.names import short_name
from hark.protocol.records import AnyRecord, CallStarted
from hark.protocol.store import Journal
from hark.text.columns import look_of_output
from hark.trace.from_journal import child_of, find_turn, story_of, turns_of
from hark.trace.terminal import trace_text
from hark.trace.turn_list import turns_text
from hark.trace.turn_trace import TurnTrace


async def trace(options: argparse.Namespace) -> int:
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
        _print(msgspec.json.encode({"turns": stories}).decode())
    elif options.all:
        _print(turns_text(records, look_of_output()))
    else:
        _print(trace_text(records, turn, children, look_of_output()))
    return COMPLETED


async def children_of(
    journal: Journal, records: Sequence[AnyRecord], turns: Sequence[str]
) -> dict[str, Sequence[AnyRecord]]:
    """Return the journals of the sessions that calls of these turns started, theirs included, by name.

    Raises:
        StoreError: They can't be read.
    """
    found: dict[str, Sequence[AnyRecord]] = {}
    for record in records:
        if isinstance(record, CallStarted) and record.turn in turns:
            name = child_of(record.turn, record.call)
            theirs = await journal.read(name)
            if theirs:
                found[name] = theirs
                found.update(await children_of(journal, theirs, turns_of(theirs)))
    return found


def _write(file: Path, session: str, stories: Sequence[TurnTrace]) -> int:
    from hark.trace.html import picture

    title = f"{session}: {stories[0].prompt}" if stories[0].prompt else session
    try:
        file.write_text(picture(title, stories), "utf-8")
    except OSError as error:
        sys.stderr.write(f"hark: {file} can't be written: {error.strerror}\n")
        return FAILED
    _print(f"Written: {file}")
    return COMPLETED


def _missing(session: str, turn: str | None, records: Sequence[AnyRecord]) -> int:
    if not records:
        sys.stderr.write(f"hark: there is no {session}; `hark sessions` lists what there is\n")
    elif turn:
        names = ", ".join(short_name(name) for name in turns_of(records)[-10:])
        sys.stderr.write(f"hark: {session} has no turn {turn}; its last ones are: {names or 'none yet'}\n")
    else:
        sys.stderr.write(f"hark: no turn has run in {session} yet\n")
    return FAILED


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
