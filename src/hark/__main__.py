"""Lets `python -m hark` run the `hark` command."""

import sys

from hark.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
