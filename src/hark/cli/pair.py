"""`hark pair`: lists pairing requests and paired accounts; approves or revokes one."""

import argparse
import time

from hark.app.pairing import CODE_SECONDS, PairingFile
from hark.app.settings import home_directory
from hark.app.shutdown import BAD_USAGE, COMPLETED, FAILED
from hark.cli.io.printing import print_error, print_line
from hark.text.columns import to_one_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("action", nargs="?", choices=("list", "approve", "revoke"), default="list")
    parser.add_argument("value", nargs="?", help="the code to approve, or the account's id to revoke")


async def run(options: argparse.Namespace) -> int:
    """List pairing requests and paired accounts; approve or revoke one."""
    pairing = PairingFile(home_directory() / "pairing.json")
    if options.action == "list":
        for request in pairing.records.knocks:
            if time.time() - request.at < CODE_SECONDS:
                print_line(to_one_line(f"{request.code} {request.surface}:{request.person} {request.name} (pending)"))
        for account in pairing.records.guests:
            print_line(f"{'':8} {to_one_line(f'{account.surface}:{account.person} {account.name}')}")
        return COMPLETED
    if not options.value:
        print_error(f"missing argument: hark pair {options.action} {'CODE' if options.action == 'approve' else 'ID'}")
        return BAD_USAGE
    if options.action == "approve":
        account = pairing.approve(options.value)
        if account is None:
            print_error("no pending request has this code; `hark pair list` shows them (codes expire after an hour)")
            return FAILED
        print_line(f"{to_one_line(account.name or account.person)} can now talk to the agent on {account.surface}.")
        return COMPLETED
    revoked = pairing.revoke(options.value)
    for account in revoked:
        print_line(
            f"{to_one_line(account.name or account.person)} can no longer talk to the agent on {account.surface}."
        )
    return COMPLETED if revoked else FAILED
