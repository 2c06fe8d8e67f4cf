"""What systemd is told of a service: that it is ready, reloads, ends, and that its event loop still turns."""

import os
import socket
import time
from contextlib import suppress

import anyio


def notify(*words: str) -> None:
    """Tell the service manager that started us; nothing happens without one."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as speaker:
        speaker.setblocking(False)
        speaker.sendto("\n".join(words).encode(), address)


def notify_reloading() -> None:
    """Say that the settings are read again; `notify("READY=1")` ends it."""
    notify("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")


async def ping_watchdog() -> None:
    """Say from the event loop that it turns, as often as systemd wants to hear it: one that is stuck is restarted."""
    seconds = _watchdog_seconds()
    while seconds:
        notify("WATCHDOG=1")
        await anyio.sleep(seconds / 3)


def _watchdog_seconds() -> float:
    """Return how long we may be silent; 0 when nobody listens, or when it is another process that should speak."""
    if os.environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0.0
    microseconds = os.environ.get("WATCHDOG_USEC", "")
    return int(microseconds) / 1_000_000 if microseconds.isdecimal() else 0.0
