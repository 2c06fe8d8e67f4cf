"""What systemd is told of a service: that it is ready, reloads, or ends."""

import os
import socket
import time
from contextlib import suppress


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
