"""`hark sessions`: list, show, search, export and delete conversations."""

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
from hark.cli.open_store import opened_store
from hark.engine.session.preview import saved_state
from hark.protocol.names import belongs_to, is_background, is_child
from hark.protocol.store import Query, SessionLine, Store
from hark.text.columns import BOLD, DIM, TerminalStyle, cut, look_of_output, plain_text, width, wrap
from hark.tools.notes.todo import todo_file

FOUND = 50
NAME_COLUMNS = 24
SNIPPET_LINES = 2
LEAST_COLUMNS = 20
UNCUT_COLUMNS = 1_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("action", nargs="?", choices=("list", "show", "search", "export", "delete"), default="list")
    parser.add_argument("value", nargs="?", help="the session, or the words to search for")
    parser.add_argument("--json", action="store_true", help="print JSON")


async def run(options: argparse.Namespace) -> int:
    """`options.action` is list, show, search, export or delete; `options.value` the session, or the words."""
    if options.action != "list" and not options.value:
        what = "WORDS" if options.action == "search" else "SESSION"
        print_error(f"say what to {options.action}: hark sessions {options.action} {what}")
        return BAD_USAGE
    async with opened_store() as store:
        if options.action == "list":
            return await _list(store, as_json=options.json)
        acts: dict[str, Callable[[Store, str, bool], Coroutine[Any, Any, int]]] = {
            "search": _search,
            "show": partial(_told, with_facts=True),
            "export": partial(_told, with_facts=False),
            "delete": _delete,
        }
        return await acts[options.action](store, options.value, options.json)


async def _list(store: Store, *, as_json: bool) -> int:
    """Print the sessions, the last changed first. Children are part of their parents: only programs are told them."""
    lines = [line for line in await store.journal.sessions() if not is_background(line.session)]
    if as_json:
        print_json({"sessions": lines})
        return COMPLETED
    own = [line for line in lines if not is_child(line.session)]
    if not own:
        sys.stderr.write("There are no sessions yet: `hark` starts one.\n")
        return COMPLETED
    names = min(NAME_COLUMNS, max(width(line.session) for line in own))
    look = look_of_output()
    for line in own:
        print_line(_row(line, await _doing(store, line), names, look))
    return COMPLETED


def _row(line: SessionLine, doing: str, names: int, look: TerminalStyle) -> str:
    """Return a session in one line. Its name is always whole: it is what other commands take."""
    summary = line.summary
    name = line.session + " " * (names - width(line.session))
    turns = f"{summary.turns:4} turn{' ' if summary.turns == 1 else 's'}"
    facts = f"{_when(summary.updated_at)} {turns}"
    title = f"[{doing}] {summary.title}" if doing else summary.title
    room = look.columns - width(name) - width(facts) - 4 if sys.stdout.isatty() else UNCUT_COLUMNS
    return f"{look.paint(name, BOLD)}  {look.paint(facts, DIM)}  {cut(title, max(LEAST_COLUMNS, room))}".rstrip()


async def _doing(store: Store, line: SessionLine) -> str:
    """Return what a session does now; "" when it rests."""
    if not line.summary.is_open and not line.summary.is_waiting:
        return ""
    if not await store.leases.is_owned(line.session):
        return "cut off" if line.summary.is_open else "waiting"
    return "running" if line.summary.is_open else "open"


async def _search(store: Store, words: str, as_json: bool) -> int:
    """Print the messages in which all the words stand, the newest first."""
    hits = await store.search.find(Query(words, limit=FOUND))
    if as_json:
        print_json({"hits": hits})
        return COMPLETED
    if not hits:
        sys.stderr.write(f"Nothing has been said with all of these words: {words}\n")
    look = look_of_output()
    for hit in hits:
        print_line(look.paint(cut(f"{hit.turn or hit.session}  {_when(hit.at)}  {hit.who}", UNCUT_COLUMNS), BOLD))
        for line in wrap(hit.snippet, look.columns - 4)[:SNIPPET_LINES]:
            print_line(f"    {line}")
    return COMPLETED


async def _told(store: Store, session: str, as_json: bool, *, with_facts: bool) -> int:
    """Print all that was said in a session, as Markdown or JSON, behind what the session is."""
    state = await saved_state(store, session)
    if not state.length:
        return _unknown(session)
    if as_json:
        facts = {"turns": state.turns, "tokens": state.tokens, "cost": state.cost, "updated_at": state.updated_at}
        print_json({"session": session, "title": state.title, **facts, "messages": as_rows(state)})
        return COMPLETED
    if with_facts:
        turns = f"{state.turns} turn{'' if state.turns == 1 else 's'}"
        cost = f", ${state.cost:.4f}" if state.cost else ""
        print_line(f"{session}: {turns}, {state.tokens:,} tokens{cost}, last changed {_when(state.updated_at)}\n")
    text = as_markdown(state)
    # What a model or a tool has said must not command the terminal; a file gets it as it was.
    print_line(plain_text(text) if sys.stdout.isatty() else text)
    return COMPLETED


async def _delete(store: Store, session: str, as_json: bool) -> int:
    """Forget a session with its children, unless a process has it open."""
    lease = await store.leases.acquire(session)
    if lease is None:
        print_error(f"{session} is open in a process that runs: leave it there, or stop that process, then delete it")
        return FAILED
    try:
        names = [line.session for line in await store.journal.sessions() if belongs_to(line.session, session)]
        deleted = [name for name in (session, *names) if await store.journal.delete(name)]
    finally:
        await store.leases.release(lease)
    if not deleted:
        return _unknown(session)
    home = home_directory()
    if "/" not in session:  # a name that no session of ours has, but a stranger's could
        for file in (todo_file(home, session), home / "drafts" / session):
            file.unlink(missing_ok=True)
    if as_json:
        print_json({"deleted": deleted})
    return COMPLETED


def _when(at: float) -> str:
    return datetime.fromtimestamp(at).strftime("%Y-%m-%d %H:%M")


def _unknown(name: str) -> int:
    print_error(f"there is no {name}; `hark sessions` lists what there is")
    return FAILED
