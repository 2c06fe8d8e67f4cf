"""The agent: sessions, turns and steps; it knows the protocol only."""

import logging

# Without settings for logs, nothing is written anywhere: the app decides, and a program that imports Hark may.
logging.getLogger("hark").addHandler(logging.NullHandler())
