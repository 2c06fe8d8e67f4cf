"""The results of `hark doctor`, and functions that run a check within a time limit."""

import asyncio
import socket
from collections.abc import Callable, Iterable
from enum import StrEnum
from urllib.parse import urlsplit

from msgspec import Struct

from hark.text.columns import TerminalStyle, to_one_line, wrap_to_columns
from hark.tools.web.abandonable_thread import run_abandonable

CHECK_TIMEOUT_SECONDS = 2.0
CONNECT_TIMEOUT_SECONDS = 2.0
NAME_COLUMNS = 10
INDENT = 18

_COLOURS = {"ok": "32", "warn": "33", "bad": "1;31"}


class Level(StrEnum):
    """The severity of a result: `warn` is an inconvenience, `bad` prevents turns from running."""

    OK = "ok"
    WARN = "warn"
    BAD = "bad"


class CheckResult(Struct, frozen=True):
    """The result of one check: its subject, severity and text, and advice on what to do."""

    name: str
    level: Level
    text: str
    advice: str = ""

    def __str__(self) -> str:
        advice = f" -> {self.advice}" if self.advice else ""
        return f"{self.level:4}  {self.name:{NAME_COLUMNS}}  {to_one_line(self.text)}{advice}"

    def lines(self, style: TerminalStyle) -> list[str]:
        """Format the result as lines, wrapped to the terminal's width."""
        first, *rest = wrap_to_columns(self.text, style.columns - INDENT)
        level = style.paint(f"{self.level:4}", _COLOURS[self.level])
        lines = [f"{level}  {self.name:{NAME_COLUMNS}}  {first}", *(f"{'':{INDENT}}{line}" for line in rest)]
        if self.advice:
            first, *rest = wrap_to_columns(self.advice, style.columns - INDENT - 3)
            lines += [f"{'':{INDENT}}-> {first}", *(f"{'':{INDENT}}   {line}" for line in rest)]
        return lines


async def run_check(
    name: str, check: Callable[[], Iterable[CheckResult]], seconds: float = CHECK_TIMEOUT_SECONDS
) -> list[CheckResult]:
    """Run a check that may block. Return its results, or a warning if it took too long.

    The check's thread is abandoned after the time limit, so a dead disk or name server can't delay the exit.
    """

    def collect_results() -> list[CheckResult]:
        try:
            return list(check())
        except OSError as error:
            return [CheckResult(name, Level.BAD, f"Check failed: {error}.")]

    try:
        async with asyncio.timeout(seconds):
            return await run_abandonable(collect_results, f"doctor: {name}")
    except TimeoutError:
        text = f"The check took longer than {seconds:g} s and was abandoned."
        return [CheckResult(name, Level.WARN, text, "Check the disk and the network.")]


async def connection_problem(url: str) -> str:
    """Return why the host of a URL can't be reached, or "" if it can. The timeout includes name resolution."""
    parsed = urlsplit(url)
    host, port = parsed.hostname or "", parsed.port or (443 if parsed.scheme == "https" else 80)

    def connect() -> list[CheckResult]:
        try:
            socket.create_connection((host, port), CONNECT_TIMEOUT_SECONDS).close()
        except socket.gaierror:
            return [CheckResult(host, Level.BAD, f"host name {host} not found: no network, or a wrong host name.")]
        except TimeoutError:
            return [CheckResult(host, Level.BAD, f"{host} is not responding: no network, or a firewall.")]
        except OSError as error:
            return [CheckResult(host, Level.BAD, f"no server listening on {host}:{port}: {error.strerror or error}.")]
        return []

    return "".join(result.text for result in await run_check(host, connect, CONNECT_TIMEOUT_SECONDS))
