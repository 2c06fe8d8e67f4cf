"""`hark pair`: list who wants to talk in chats, let somebody in, or no more."""

import argparse
import time

from hark.app.pairing import CODE_SECONDS, Pairing
from hark.app.settings import home_directory
from hark.app.shutdown import BAD_USAGE, COMPLETED, FAILED
from hark.cli.io.printing import print_error, print_line
from hark.text.columns import one_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("action", nargs="?", choices=("list", "approve", "revoke"), default="list")
    parser.add_argument("value", nargs="?", help="the code, or the person's id")


async def run(options: argparse.Namespace) -> int:
    """List who knocked and who was let in, let somebody in by their code, or no more."""
    pairing = Pairing(home_directory() / "pairing.json")
    if options.action == "list":
        for knock in pairing.book.knocks:
            if time.time() - knock.at < CODE_SECONDS:
                print_line(one_line(f"{knock.code} {knock.surface}:{knock.person} {knock.name} (waits)"))
        for guest in pairing.book.guests:
            print_line(f"{'':8} {one_line(f'{guest.surface}:{guest.person} {guest.name}')}")
        return COMPLETED
    if not options.value:
        print_error(f"say whom: hark pair {options.action} {'CODE' if options.action == 'approve' else 'ID'}")
        return BAD_USAGE
    if options.action == "approve":
        guest = pairing.approve(options.value)
        if guest is None:
            print_error("no such code waits; `hark pair list` shows those that do (they hold for an hour)")
            return FAILED
        print_line(f"{one_line(guest.name or guest.person)} may talk on {guest.surface} now.")
        return COMPLETED
    gone = pairing.revoke(options.value)
    for guest in gone:
        print_line(f"{one_line(guest.name or guest.person)} may not talk on {guest.surface} any more.")
    return COMPLETED if gone else FAILED
