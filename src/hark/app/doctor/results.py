"""What `hark doctor` finds, and looks that can't hold it."""

import asyncio
import socket
from collections.abc import Callable, Iterable
from enum import StrEnum
from urllib.parse import urlsplit

from msgspec import Struct

from hark.text.columns import TerminalStyle, one_line, wrap
from hark.tools.web.abandonable_thread import aside

LOOK_SECONDS = 2.0
REACH_SECONDS = 2.0
NAME_COLUMNS = 10
INDENT = 18

_COLOURS = {"ok": "32", "warn": "33", "bad": "1;31"}


class Level(StrEnum):
    """How good a finding is: `warn` costs comfort, `bad` costs the turn."""

    OK = "ok"
    WARN = "warn"
    BAD = "bad"


class Finding(Struct, frozen=True):
    """One look: at what, what was seen, and what to do about it."""

    name: str
    level: Level
    text: str
    advice: str = ""

    def __str__(self) -> str:
        advice = f" -> {self.advice}" if self.advice else ""
        return f"{self.level:4}  {self.name:{NAME_COLUMNS}}  {one_line(self.text)}{advice}"

    def lines(self, look: TerminalStyle) -> list[str]:
        """Return it as lines for a terminal of that width."""
        first, *rest = wrap(self.text, look.columns - INDENT)
        level = look.paint(f"{self.level:4}", _COLOURS[self.level])
        lines = [f"{level}  {self.name:{NAME_COLUMNS}}  {first}", *(f"{'':{INDENT}}{line}" for line in rest)]
        if self.advice:
            first, *rest = wrap(self.advice, look.columns - INDENT - 3)
            lines += [f"{'':{INDENT}}-> {first}", *(f"{'':{INDENT}}   {line}" for line in rest)]
        return lines


async def in_time(name: str, look: Callable[[], Iterable[Finding]], seconds: float = LOOK_SECONDS) -> list[Finding]:
    """Return what a look that may block finds, or that it took too long.

    It runs in a thread that nothing waits for: a dead network disk or name server can't hold the program's end.
    """

    def work() -> list[Finding]:
        try:
            return list(look())
        except OSError as error:
            return [Finding(name, Level.BAD, f"It can't be looked at: {error}.")]

    try:
        async with asyncio.timeout(seconds):
            return await aside(work, f"doctor: {name}")
    except TimeoutError:
        text = f"Looking at it took longer than {seconds:g} s, and was given up."
        return [Finding(name, Level.WARN, text, "Look whether its disk, or the network, hangs.")]


async def reach(url: str) -> str:
    """Return why nothing listens at the host of a URL, or "". Bounded, also where no name server answers."""
    place = urlsplit(url)
    host, port = place.hostname or "", place.port or (443 if place.scheme == "https" else 80)

    def look() -> list[Finding]:
        try:
            socket.create_connection((host, port), REACH_SECONDS).close()
        except socket.gaierror:
            return [Finding(host, Level.BAD, f"the name {host} is not known: no network, or a wrong address.")]
        except TimeoutError:
            return [Finding(host, Level.BAD, f"{host} does not answer: no network, or a firewall.")]
        except OSError as error:
            return [Finding(host, Level.BAD, f"nothing listens at {host}:{port}: {error.strerror or error}.")]
        return []

    return "".join(finding.text for finding in await in_time(host, look, REACH_SECONDS))
