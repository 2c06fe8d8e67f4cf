"""The response times of the terminal app, measured in a pseudo-terminal: start, typing, interrupting, exit."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.cli.command_line import shell_call
from tests.fakes.models.behaviours import Behaviour, silent, text, tokens
from tests.fakes.models.server import ModelServer
from tests.surfaces.terminal.pseudo_terminal import PseudoTerminal, open_pseudo_terminal

from bench.run import BenchOptions
from bench.table import Figure, Percentiles, quantile

STARTS = 10
KEYS = 200
ROUNDS = 20
REPLY_TOKENS = 12_000  # about 100 kB
REPLY_RATE = 500
ALLOW_ALL = '[approvals]\nmode = "all"\n'
ASK = '[approvals]\nmode = "ask"\n'


def measure(options: BenchOptions) -> list[Figure]:
    """Measure start and exit, typing, and interrupts."""
    return [
        *options.run(_measure_starts(max(3, options.scale(STARTS)))),
        *options.run(_measure_typing(options.scale(KEYS))),
        *options.run(_measure_interrupts(max(3, options.scale(ROUNDS)))),
    ]


async def _measure_starts(count: int) -> list[Figure]:
    """Measure the start, to the first echoed character and to the complete app, and the exit after Ctrl+C."""
    echo_times: list[float] = []
    ready_times: list[float] = []
    exit_times: list[float] = []
    import_times: list[float] = []
    for _ in range(count):
        import_times.append(await asyncio.to_thread(_time_textual_import))
        start = time.perf_counter()
        async with _open_terminal([]) as (_, terminal):
            terminal.type("x")
            echo_times.append((await terminal.until("› x") - start) * 1000)
            ready_times.append((await terminal.until("Enter send") - start) * 1000)
            await asyncio.sleep(0.3)
            terminal.type("\x15\x03")
            await terminal.until("Press Ctrl+C again")
            pressed = terminal.type("\x03")
            assert await terminal.wait_for_exit() == 0
            exit_times.append((time.perf_counter() - pressed) * 1000)
    textual = Percentiles.of(import_times)
    return [
        Figure("start: typed character is shown", "ms", Percentiles.of(echo_times), textual, None, 2.0),
        Figure("start: app is complete", "ms", Percentiles.of(ready_times), textual),
        Figure("exit when idle", "ms", Percentiles.of(exit_times), None, Percentiles(300)),
    ]


def _time_textual_import() -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import textual"], check=True)
    return (time.perf_counter() - start) * 1000


async def _measure_typing(count: int) -> list[Figure]:
    """Measure the time from a key press to its echo on the screen, when idle and while a long reply streams."""
    async with _open_terminal([tokens(REPLY_TOKENS, REPLY_RATE)] * 10) as (_, terminal):
        await terminal.until("Enter send")
        idle_times = await _time_keys(terminal, min(count, 50))
        terminal.type("go\r")
        await terminal.until("Answering")
        streaming_times = await _time_keys(terminal, count)
    streaming = Percentiles(quantile(streaming_times, 0.5), quantile(streaming_times, 0.95))
    return [
        Figure(
            "key to screen, idle (p50, p95)", "ms", Percentiles(quantile(idle_times, 0.5), quantile(idle_times, 0.95))
        ),
        Figure("key to screen, 500 tokens/s (p50, p95)", "ms", streaming, None, Percentiles(50, 50)),
    ]


async def _time_keys(terminal: PseudoTerminal, count: int) -> list[float]:
    times: list[float] = []
    for number in range(count):
        typed = f"q{number:04}"
        start = terminal.type(typed)
        times.append((await terminal.until(typed) - start) * 1000)
        terminal.type("\x15")
        await asyncio.sleep(0.07)
    return times


async def _measure_interrupts(count: int) -> list[Figure]:
    """Measure the time from Enter until the model server gets the request, for several kinds of interrupted work."""
    sleep_call = shell_call("sleep 120")
    cases: dict[str, tuple[Behaviour, str, str]] = {
        "a silent model": (silent(), "Thinking", ALLOW_ALL),
        "a stream": (tokens(20_000, 100), "Answering", ALLOW_ALL),
        "sleep 120": (sleep_call, "Running shell", ALLOW_ALL),
        "an approval": (shell_call("touch never-made"), "press a key", ASK),
    }
    figures: list[Figure] = []
    for name, (behaviour, visible_text, settings) in cases.items():
        times: list[float] = []
        async with _open_terminal([behaviour] * (count + 1), settings) as (server, terminal):
            await terminal.until("Enter send")
            terminal.type("go\r")
            for number in range(count):
                await server.request(number + 1)
                await terminal.until(visible_text)
                await asyncio.sleep(0.2)
                typed = f"no{number:04}"
                terminal.type(typed)
                await terminal.until(typed)
                start = terminal.type("\r")
                request = await server.request(number + 2)
                times.append((request.arrived_at - start) * 1000)
        figures.append(
            Figure(f"Enter to request, interrupting {name}", "ms", Percentiles.of(times), None, Percentiles(30, 100))
        )
    return figures


@asynccontextmanager
async def _open_terminal(
    script: Sequence[Behaviour], settings: str = ""
) -> AsyncGenerator[tuple[ModelServer, PseudoTerminal]]:
    with TemporaryDirectory(prefix="hark-bench-") as home:
        async with ModelServer([*script, text(["done"])]) as server:
            route = f'[[routes]]\nname = "main"\nbase_url = "{server.base_url}"\nmodel = "fake"\n'
            _write_config(home, route + settings)
            environment = {**os.environ, "HARK_HOME": home}
            environment.pop("PYTHONDONTWRITEBYTECODE", None)
            async with open_pseudo_terminal(environment, size=(100, 30), directory=home) as terminal:
                yield server, terminal


def _write_config(home: str, settings: str) -> None:
    Path(home, "config.toml").write_text(settings)
