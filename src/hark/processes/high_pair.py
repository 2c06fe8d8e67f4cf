"""A line to a process, under a number that no script uses."""

import fcntl
import socket

LOWEST_DESCRIPTOR = 100


def high_pair() -> tuple[int, int]:
    """Return the descriptors of a line's two ends: ours, and a high one for the process to inherit."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        high = fcntl.fcntl(theirs, fcntl.F_DUPFD_CLOEXEC, LOWEST_DESCRIPTOR)
        return ours.detach(), high
