"""`hark sessions`: lists, shows, searches, exports and deletes conversations."""

import argparse
import sys
from collections.abc import Callable, Coroutine
from datetime import datetime
from functools import partial
from typing import Any

from hark.app.sessions.export import as_markdown, as_rows
from hark.app.settings import home_directory
from hark.app.shutdown import BAD_USAGE, COMPLETED, FAILED
from hark.cli.io.printing import print_error, print_json, print_line
from hark.cli.open_store import open_store
from hark.engine.session.preview import read_state
from hark.protocol.names import belongs_to, is_background, is_child
from hark.protocol.store import SearchQuery, SessionListEntry, Store
from hark.text.columns import (
    BOLD,
    DIM,
    TerminalStyle,
    detect_output_style,
    display_width,
    to_plain_text,
    truncate,
    wrap_to_columns,
)
from hark.tools.notes.todo import todo_file

MAX_HITS = 50
NAME_COLUMNS = 24
SNIPPET_LINES = 2
MIN_TITLE_COLUMNS = 20
UNLIMITED_COLUMNS = 1_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("action", nargs="?", choices=("list", "show", "search", "export", "delete"), default="list")
    parser.add_argument("value", nargs="?", help="the session, or the text to search for")
    parser.add_argument("--json", action="store_true", help="print JSON")


async def run(options: argparse.Namespace) -> int:
    """Run the action: list, show, search, export or delete. `options.value` is the session or the search text."""
    if options.action != "list" and not options.value:
        placeholder = "WORDS" if options.action == "search" else "SESSION"
        print_error(f"missing argument: hark sessions {options.action} {placeholder}")
        return BAD_USAGE
    async with open_store() as store:
        if options.action == "list":
            return await _print_sessions(store, as_json=options.json)
        actions: dict[str, Callable[[Store, str, bool], Coroutine[Any, Any, int]]] = {
            "search": _print_hits,
            "show": partial(_print_conversation, with_summary=True),
            "export": partial(_print_conversation, with_summary=False),
            "delete": _delete_session,
        }
        return await actions[options.action](store, options.value, options.json)


async def _print_sessions(store: Store, *, as_json: bool) -> int:
    """Print the sessions, most recently changed first. Child sessions are only included in JSON."""
    entries = [line for line in await store.journal.sessions() if not is_background(line.session)]
    if as_json:
        print_json({"sessions": entries})
        return COMPLETED
    top_level = [line for line in entries if not is_child(line.session)]
    if not top_level:
        sys.stderr.write("No sessions yet. Start one with `hark`.\n")
        return COMPLETED
    name_columns = min(NAME_COLUMNS, max(display_width(line.session) for line in top_level))
    style = detect_output_style()
    for line in top_level:
        print_line(_format_row(line, await _session_state(store, line), name_columns, style))
    return COMPLETED


def _format_row(entry: SessionListEntry, activity: str, name_columns: int, style: TerminalStyle) -> str:
    """Format a session as one line. The name is never truncated, since other commands need it."""
    summary = entry.summary
    name = entry.session + " " * (name_columns - display_width(entry.session))
    turns = f"{summary.turns:4} turn{' ' if summary.turns == 1 else 's'}"
    facts = f"{_format_time(summary.updated_at)} {turns}"
    title = f"[{activity}] {summary.title}" if activity else summary.title
    columns = style.columns - display_width(name + facts) - 4 if sys.stdout.isatty() else UNLIMITED_COLUMNS
    title = truncate(title, max(MIN_TITLE_COLUMNS, columns))
    return f"{style.paint(name, BOLD)}  {style.paint(facts, DIM)}  {title}".rstrip()


async def _session_state(store: Store, entry: SessionListEntry) -> str:
    """Return the state of a session: "running", "open", "queued", "interrupted", or "" if it is idle."""
    if not entry.summary.is_open and not entry.summary.is_waiting:
        return ""
    if not await store.leases.is_owned(entry.session):
        return "interrupted" if entry.summary.is_open else "queued"
    return "running" if entry.summary.is_open else "open"


async def _print_hits(store: Store, query: str, as_json: bool) -> int:
    """Print the messages that contain all words of the query, newest first."""
    hits = await store.search.find(SearchQuery(query, limit=MAX_HITS))
    if as_json:
        print_json({"hits": hits})
        return COMPLETED
    if not hits:
        sys.stderr.write(f"No matches for {query}\n")
    style = detect_output_style()
    for hit in hits:
        heading = f"{hit.turn or hit.session}  {_format_time(hit.at)}  {hit.who}"
        print_line(style.paint(truncate(heading, UNLIMITED_COLUMNS), BOLD))
        for line in wrap_to_columns(hit.snippet, style.columns - 4)[:SNIPPET_LINES]:
            print_line(f"    {line}")
    return COMPLETED


async def _print_conversation(store: Store, session: str, as_json: bool, *, with_summary: bool) -> int:
    """Print the conversation of a session as Markdown or JSON. `with_summary` adds a summary before Markdown."""
    state = await read_state(store, session)
    if not state.length:
        return _report_unknown_session(session)
    if as_json:
        facts = {"turns": state.turns, "tokens": state.tokens, "cost": state.cost, "updated_at": state.updated_at}
        print_json({"session": session, "title": state.title, **facts, "messages": as_rows(state)})
        return COMPLETED
    if with_summary:
        turns = f"{state.turns} turn{'' if state.turns == 1 else 's'}"
        cost = f", ${state.cost:.4f}" if state.cost else ""
        changed = _format_time(state.updated_at)
        print_line(f"{session}: {turns}, {state.tokens:,} tokens{cost}, last changed {changed}\n")
    text = as_markdown(state)
    # Text from a model or a tool must not control the terminal. A file gets it unchanged.
    print_line(to_plain_text(text) if sys.stdout.isatty() else text)
    return COMPLETED


async def _delete_session(store: Store, session: str, as_json: bool) -> int:
    """Delete a session with its children, unless a process has it open."""
    lease = await store.leases.acquire(session)
    if lease is None:
        print_error(f"{session} is open in a running process. Close it there or stop that process, then delete it.")
        return FAILED
    try:
        names = [line.session for line in await store.journal.sessions() if belongs_to(line.session, session)]
        deleted = [name for name in (session, *names) if await store.journal.delete(name)]
    finally:
        await store.leases.release(lease)
    if not deleted:
        return _report_unknown_session(session)
    home = home_directory()
    if "/" not in session:  # our session names have no slash, but those in a foreign store could
        for file in (todo_file(home, session), home / "drafts" / session):
            file.unlink(missing_ok=True)
    if as_json:
        print_json({"deleted": deleted})
    return COMPLETED


def _format_time(at: float) -> str:
    return datetime.fromtimestamp(at).strftime("%Y-%m-%d %H:%M")


def _report_unknown_session(name: str) -> int:
    print_error(f"No session named {name!r}. `hark sessions` lists them.")
    return FAILED
