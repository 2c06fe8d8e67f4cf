"""How long a busy machine may take for what an idle one does at once.

A limit in a test is there to find what hangs or waits for the wrong thing; how fast it is, `make bench` tells.
"""

TIMES = 20
MORE_SECONDS = 15.0


def at_most(seconds: float) -> float:
    """Return a limit for any machine, when this is one for an idle machine."""
    return min(seconds * TIMES, seconds + MORE_SECONDS)
