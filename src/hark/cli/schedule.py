"""`hark schedule`: adds, lists, shows, pauses, resumes, removes and runs scheduled prompts."""

import argparse
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio

from hark.app.clock import SystemClock
from hark.app.sessions.remote_session import RemoteSession
from hark.app.settings import config
from hark.app.shutdown import BAD_USAGE, COMPLETED, FAILED
from hark.app.slash.meaning import is_command
from hark.cli.io.printing import print_error, print_json, print_line
from hark.cli.open_store import open_store
from hark.protocol.commands import Delivery, Say
from hark.protocol.names import SCHEDULER
from hark.protocol.receipts import Receipt
from hark.protocol.schedules import ScheduleInfo, ScheduleRefused, ScheduleRequest
from hark.protocol.store import Store
from hark.schedules.format import NO_SCHEDULES, format_change, format_details, format_line, format_next
from hark.schedules.service import ScheduleService
from hark.store.schedule_store import SqliteScheduleStore
from hark.text.columns import to_plain_text

CLOSE_SECONDS = 2.0
NOT_SERVING = "`hark serve` isn't running, so schedules won't fire"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    actions = parser.add_subparsers(dest="action", required=False, metavar="ACTION")
    add = actions.add_parser("add", help='add one: hark schedule add "0 9 * * mon-fri" "What is new?" --session daily')
    add.add_argument(
        "when", help='cron, "every 30 minutes", "weekdays at 9:00", "at 18:30", "2026-12-01 09:00", @daily'
    )
    add.add_argument("prompt", help="the prompt to run at that time")
    add.add_argument("--session", default="", help="the session to run it in (default: the schedule's name)")
    add.add_argument("--name", default="", help="the schedule's name (default: the first words of the prompt)")
    add.add_argument("--delivery", choices=("queue", "steer", "interrupt"), default="queue")
    add.add_argument("--timezone", default="", metavar="ZONE", help="such as Europe/Zurich (default: this machine's)")
    add.add_argument("--once", action="store_true", help="run only once, at the next scheduled time")
    add.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
    listing = actions.add_parser("list", help="list the schedules, with their next run and last outcome")
    listing.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
    for name, help_text in (
        ("show", "show the details of a schedule"),
        ("remove", "remove a schedule; a running turn continues"),
        ("pause", "pause a schedule until it is resumed; a running turn continues"),
        ("resume", "resume a paused schedule; it runs at its next time"),
        ("run", "run a schedule now and print the receipt"),
    ):
        action = actions.add_parser(name, help=help_text)
        action.add_argument("name")
        action.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")


async def run(options: argparse.Namespace) -> int:
    """Run the requested action. Return the exit code."""
    try:
        async with _open_schedules() as (service, store):
            return await _run_action(options, service, store)
    except ScheduleRefused as refused:
        print_error(str(refused))
        return BAD_USAGE if refused.code == "bad_schedule" else FAILED


async def _run_action(options: argparse.Namespace, service: ScheduleService, store: Store) -> int:
    match options.action:
        case None | "list":
            await _print_schedules(service, store, as_json=options.json)
        case "add":
            request = ScheduleRequest(
                options.when,
                options.prompt,
                options.session,
                options.name,
                options.timezone,
                Delivery(options.delivery),
                options.once,
            )
            schedule = await service.add(request)
            once = " once" if schedule.once else ""
            when = f"{format_next(schedule)} ({schedule.timezone})"
            text = f"Added {schedule.name}. It runs{once} in session {schedule.session}, {when}."
            _print_value(schedule if options.json else text)
            await _warn_if_not_serving(store)
        case "run":
            _print_value(await service.run(options.name))
            await _warn_if_not_serving(store)
        case action:
            actions: dict[str, Callable[[str], Awaitable[ScheduleInfo]]] = {
                "show": service.get,
                "pause": service.pause,
                "resume": service.resume,
                "remove": service.remove,
            }
            schedule = await actions[action](options.name)
            stop = f"hark stop {schedule.session}"
            text = format_details(schedule) if action == "show" else format_change(action, schedule, stop)
            _print_value(schedule if options.json else text)
    return COMPLETED


async def _print_schedules(service: ScheduleService, store: Store, *, as_json: bool) -> None:
    rows = await service.all()
    if as_json:
        _print_value({"schedules": rows})
        return
    for row in rows:
        _print_value(format_line(row))
    if not rows:
        sys.stderr.write(f"{NO_SCHEDULES}\n")
    elif any(row.state == "active" for row in rows):
        await _warn_if_not_serving(store)


async def _warn_if_not_serving(store: Store) -> None:
    """Print a warning if no process runs the schedules."""
    if not await store.leases.is_owned(SCHEDULER):
        print_error(NOT_SERVING)


@asynccontextmanager
async def _open_schedules() -> AsyncGenerator[tuple[ScheduleService, Store]]:
    home = config.home_directory()
    settings = config.load_here()
    async with open_store() as store:

        async def say(session: str, message: Say) -> Receipt:
            if is_command(message.text):
                reason = "Its prompt is a slash command, which only `hark serve` can run, at the scheduled time."
                raise ScheduleRefused("unknown", reason)
            return await RemoteSession(session, store).say(message)

        schedules = SqliteScheduleStore(home / "schedules.db")
        try:
            yield ScheduleService(schedules, store.journal, settings.schedules, SystemClock(), say, is_command), store
        finally:
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await schedules.close()


def _print_value(value: object) -> None:
    """Print text without terminal control characters, or any other value as JSON."""
    if isinstance(value, str):
        print_line(to_plain_text(value))
    else:
        print_json(value)
