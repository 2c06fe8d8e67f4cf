"""The agent engine: sessions, turns and steps. It depends only on the protocol."""

import logging

# Without log settings, nothing is logged. The app configures logging, and so may a program that imports Hark.
logging.getLogger("hark").addHandler(logging.NullHandler())
