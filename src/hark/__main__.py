"""`python -m hark` is `hark`."""

import sys

from hark.app.main import main

if __name__ == "__main__":
    sys.exit(main())
