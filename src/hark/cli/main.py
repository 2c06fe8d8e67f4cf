"""The command line: finds out what is wanted, and imports only what that needs."""

import sys
from collections.abc import Sequence
from io import TextIOWrapper


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words in (["--version"], ["-V"]):
        from hark import __version__

        sys.stdout.write(f"hark {__version__}\n")
        return 0
    from hark.app.shutdown import leave_at_once

    leave_at_once()
    # No letter that a terminal lacks may cost an answer.
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # pyright: ignore[reportUnknownMemberType]
    from hark.cli.arguments import parse
    from hark.cli.commands import run

    return run(parse(words))


if __name__ == "__main__":
    sys.exit(main())
