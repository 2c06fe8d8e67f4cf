"""systemd notifications: ready, reloading, stopping, and watchdog pings from the event loop."""

import os
import socket
import time
from contextlib import suppress

import anyio


def notify(*states: str) -> None:
    """Send states to the service manager that started this process, if there is one."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as client:
        client.setblocking(False)
        client.sendto("\n".join(states).encode(), address)


def notify_reloading() -> None:
    """Announce the start of a reload. `notify("READY=1")` announces its end."""
    notify("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")


async def ping_watchdog() -> None:
    """Ping systemd's watchdog from the event loop, so that systemd restarts a process whose loop is stuck."""
    seconds = _watchdog_seconds()
    while seconds:
        notify("WATCHDOG=1")
        await anyio.sleep(seconds / 3)


def _watchdog_seconds() -> float:
    """Return the watchdog's timeout in seconds, or 0 if systemd doesn't watch this process."""
    if os.environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0.0
    microseconds = os.environ.get("WATCHDOG_USEC", "")
    return int(microseconds) / 1_000_000 if microseconds.isdecimal() else 0.0
