"""`hark schedule`: add, list, show, pause, resume, remove and run prompts that come at their times."""

import argparse
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio

from hark.app.clock import SystemClock
from hark.app.sessions.remote_session import Caller
from hark.app.settings import config
from hark.app.shutdown import BAD_USAGE, COMPLETED, FAILED
from hark.app.slash.meaning import is_command
from hark.cli.io.printing import print_error, print_json, print_line
from hark.cli.open_store import opened_store
from hark.protocol.commands import Delivery, Say
from hark.protocol.names import SCHEDULER
from hark.protocol.receipts import Receipt
from hark.protocol.schedules import ScheduleOrder, ScheduleRefused, ScheduleRow
from hark.protocol.store import Store
from hark.schedules.service import ScheduleDesk
from hark.schedules.table import NOTHING, change_words, line_of, next_words, told
from hark.store.schedule_store import SqliteScheduleBook
from hark.text.columns import plain_text

CLOSE_SECONDS = 2.0
NOBODY = "nobody serves this home now: schedules run while `hark serve` does"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    actions = parser.add_subparsers(dest="action", required=False, metavar="ACTION")
    add = actions.add_parser("add", help='add one: hark schedule add "0 9 * * mon-fri" "What is new?" --session daily')
    add.add_argument(
        "when", help='cron, "every 30 minutes", "weekdays at 9:00", "at 18:30", "2026-12-01 09:00", @daily'
    )
    add.add_argument("prompt", help="what is said at that time")
    add.add_argument("--session", default="", help="the session to say it in (one of the schedule's own name)")
    add.add_argument("--name", default="", help="what to call it (words of the prompt)")
    add.add_argument("--delivery", choices=("queue", "steer", "interrupt"), default="queue")
    add.add_argument("--timezone", default="", metavar="ZONE", help="such as Europe/Zurich (this machine's)")
    add.add_argument("--once", action="store_true", help="only the next time")
    add.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
    listing = actions.add_parser("list", help="list them, with the next time and how the last one ended")
    listing.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
    for name, words in (
        ("show", "tell all about one"),
        ("remove", "forget one; a turn of it that runs goes on (hark stop)"),
        ("pause", "have one not come until it is resumed; a turn of it that runs goes on (hark stop)"),
        ("resume", "have one come again, from its next time on"),
        ("run", "say its prompt now; prints the receipt"),
    ):
        one = actions.add_parser(name, help=words)
        one.add_argument("name")
        one.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")


async def run(options: argparse.Namespace) -> int:
    """Carry out what the words say."""
    try:
        async with _opened() as (desk, store):
            return await _act(options, desk, store)
    except ScheduleRefused as refused:
        print_error(str(refused))
        return BAD_USAGE if refused.code == "bad_schedule" else FAILED


async def _act(options: argparse.Namespace, desk: ScheduleDesk, store: Store) -> int:
    match options.action:
        case None | "list":
            await _list(desk, store, as_json=options.json)
        case "add":
            order = ScheduleOrder(
                options.when,
                options.prompt,
                options.session,
                options.name,
                options.timezone,
                Delivery(options.delivery),
                options.once,
            )
            row = await desk.add(order)
            once = " once" if row.once else ""
            _print(
                row if options.json else f"{row.name} runs{once}, {next_words(row)} ({row.timezone}), in {row.session}."
            )
            await _warn(store)
        case "run":
            _print(await desk.run(options.name))
            await _warn(store)
        case action:
            acts: dict[str, Callable[[str], Awaitable[ScheduleRow]]] = {
                "show": desk.row,
                "pause": desk.pause,
                "resume": desk.resume,
                "remove": desk.remove,
            }
            row = await acts[action](options.name)
            words = told(row) if action == "show" else change_words(action, row, f"hark stop {row.session}")
            _print(row if options.json else words)
    return COMPLETED


async def _list(desk: ScheduleDesk, store: Store, *, as_json: bool) -> None:
    rows = await desk.rows()
    if as_json:
        _print({"schedules": rows})
        return
    for row in rows:
        _print(line_of(row))
    if not rows:
        sys.stderr.write(f"{NOTHING}\n")
    elif any(row.state == "active" for row in rows):
        await _warn(store)


async def _warn(store: Store) -> None:
    """Say so when nobody is there to send anything."""
    if not await store.leases.is_owned(SCHEDULER):
        print_error(NOBODY)


@asynccontextmanager
async def _opened() -> AsyncGenerator[tuple[ScheduleDesk, Store]]:
    home = config.home_directory()
    settings = config.load_here()
    async with opened_store() as store:

        async def say(session: str, message: Say) -> Receipt:
            if is_command(message.text):
                words = "Its prompt is a slash command: only a process that serves can carry it out, at its time."
                raise ScheduleRefused("unknown", words)
            return await Caller(session, store).say(message)

        book = SqliteScheduleBook(home / "schedules.db")
        try:
            yield ScheduleDesk(book, store.journal, settings.schedules, SystemClock(), say, is_command), store
        finally:
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await book.close()


def _print(value: object) -> None:
    """Print a text so that nothing in it can command the terminal, or a value as JSON."""
    if isinstance(value, str):
        print_line(plain_text(value))
    else:
        print_json(value)
