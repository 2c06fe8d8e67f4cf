"""The words of `hark schedule`."""

import argparse


def add_words(schedule: argparse.ArgumentParser) -> None:
    """Teach the command its words."""
    schedule.add_argument("--json", action="store_true", help="print JSON")
    actions = schedule.add_subparsers(dest="action", required=False, metavar="ACTION")
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
