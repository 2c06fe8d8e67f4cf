"""Output of commands: lines and JSON on stdout, errors on stderr."""

import sys


def print_line(text: str) -> None:
    """Print a line on stdout."""
    sys.stdout.write(f"{text}\n")


def print_json(value: object) -> None:
    """Print a value as one line of JSON on stdout."""
    import msgspec

    print_line(msgspec.json.encode(value).decode())


def print_error(text: str) -> None:
    """Print an error on stderr, prefixed with "hark: "."""
    sys.stderr.write(f"hark: {text}\n")
