"""The terminal app as a person feels it, measured in a pseudo-terminal: start, typing, interrupting, leaving."""

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
from tests.surfaces.terminal.pseudo_terminal import Terminal, terminal

from bench.run import Plan
from bench.table import Figure, Spread, quantile

STARTS = 10
KEYS = 200
ROUNDS = 20
REPLY_TOKENS = 12_000  # about 100 kB
REPLY_RATE = 500
ALLOW_ALL = '[approvals]\nmode = "all"\n'
ASK = '[approvals]\nmode = "ask"\n'


def measure(plan: Plan) -> list[Figure]:
    """Measure each, one after the other."""
    return [
        *plan.run(_starts(max(3, plan.count(STARTS)))),
        *plan.run(_typing(plan.count(KEYS))),
        *plan.run(_interrupts(max(3, plan.count(ROUNDS)))),
    ]


async def _starts(count: int) -> list[Figure]:
    """From the command to an echoed letter, to the app, and out of it."""
    lives: list[float] = []
    ready: list[float] = []
    exits: list[float] = []
    bare: list[float] = []
    for _ in range(count):
        bare.append(await asyncio.to_thread(_import_textual))
        start = time.perf_counter()
        async with _opened([]) as (_, one):
            one.type("x")
            lives.append((await one.until("› x") - start) * 1000)
            ready.append((await one.until("Enter sends") - start) * 1000)
            await asyncio.sleep(0.3)
            one.type("\x15\x03")
            await one.until("Once more")
            left = one.type("\x03")
            assert await one.left() == 0
            exits.append((time.perf_counter() - left) * 1000)
    textual = Spread.of(bare)
    return [
        Figure("start: a typed letter is seen", "ms", Spread.of(lives), textual, None, 2.0),
        Figure("start: the app is there", "ms", Spread.of(ready), textual),
        Figure("leaving, idle", "ms", Spread.of(exits), None, Spread(300)),
    ]


def _import_textual() -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import textual"], check=True)
    return (time.perf_counter() - start) * 1000


async def _typing(count: int) -> list[Figure]:
    """From a key to the screen: at rest, and while a long reply streams."""
    async with _opened([tokens(REPLY_TOKENS, REPLY_RATE)] * 10) as (_, one):
        await one.until("Enter sends")
        quiet = await _keys(one, min(count, 50))
        one.type("go\r")
        await one.until("answering")
        busy = await _keys(one, count)
    figure = Spread(quantile(busy, 0.5), quantile(busy, 0.95))
    return [
        Figure("key to screen, at rest (p50, p95)", "ms", Spread(quantile(quiet, 0.5), quantile(quiet, 0.95))),
        Figure("key to screen, 500 tokens/s (p50, p95)", "ms", figure, None, Spread(50, 50)),
    ]


async def _keys(one: Terminal, count: int) -> list[float]:
    times: list[float] = []
    for number in range(count):
        word = f"q{number:04}"
        start = one.type(word)
        times.append((await one.until(word) - start) * 1000)
        one.type("\x15")
        await asyncio.sleep(0.07)
    return times


async def _interrupts(count: int) -> list[Figure]:
    """From Enter to the request at the model server, whatever is being interrupted."""
    sleeping = shell_call("sleep 120")
    cases: dict[str, tuple[Behaviour, str, str]] = {
        "a silent model": (silent(), "waiting for", ALLOW_ALL),
        "a stream": (tokens(20_000, 100), "answering", ALLOW_ALL),
        "sleep 120": (sleeping, "running shell", ALLOW_ALL),
        "an approval": (shell_call("touch never-made"), "a key answers", ASK),
    }
    figures: list[Figure] = []
    for name, (behaviour, sign, settings) in cases.items():
        times: list[float] = []
        async with _opened([behaviour] * (count + 1), settings) as (server, one):
            await one.until("Enter sends")
            one.type("go\r")
            for number in range(count):
                await server.request(number + 1)
                await one.until(sign)
                await asyncio.sleep(0.2)
                word = f"no{number:04}"
                one.type(word)
                await one.until(word)
                start = one.type("\r")
                seen = await server.request(number + 2)
                times.append((seen.arrived - start) * 1000)
        figures.append(Figure(f"Enter to request, interrupting {name}", "ms", Spread.of(times), None, Spread(30, 100)))
    return figures


@asynccontextmanager
async def _opened(script: Sequence[Behaviour], settings: str = "") -> AsyncGenerator[tuple[ModelServer, Terminal]]:
    with TemporaryDirectory(prefix="hark-bench-") as home:
        async with ModelServer([*script, text(["that is all"])]) as server:
            route = f'[[routes]]\nname = "main"\nbase_url = "{server.base_url}"\nmodel = "fake"\n'
            _write(home, route + settings)
            environment = {**os.environ, "HARK_HOME": home}
            environment.pop("PYTHONDONTWRITEBYTECODE", None)
            async with terminal(environment, size=(100, 30), directory=home) as one:
                yield server, one


def _write(home: str, settings: str) -> None:
    Path(home, "config.toml").write_text(settings)
