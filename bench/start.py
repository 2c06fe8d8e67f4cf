"""Cold start: the time from starting a command to its exit, or to its first request to the model server."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.model import FakeModelServer, run_model_server
from bench.run import BenchOptions
from bench.table import Figure, Percentiles

STARTS = 15
HARK = str(Path(sys.executable).with_name("hark"))
CONFIG = '[[routes]]\nname = "main"\nbase_url = "{base_url}"\nmodel = "token-1"\n'


def measure(options: BenchOptions) -> list[Figure]:
    """Start each command many times, alternating between them."""
    with run_model_server() as server, TemporaryDirectory(prefix="hark-bench-") as home:
        Path(home, "config.toml").write_text(CONFIG.format(base_url=server.base_url))
        commands: dict[str, Callable[[], float]] = {
            "python -c pass": lambda: _time_command(home, sys.executable, "-c", "pass"),
            'python -c "import hark"': lambda: _time_command(home, sys.executable, "-c", "import hark"),
            "hark --version": lambda: _time_command(home, HARK, "--version"),
            'python -c "import aiohttp"': lambda: _time_command(home, sys.executable, "-c", "import aiohttp"),
            "hark -p, to the first request": lambda: _time_to_request(home, server),
            "hark -p, to its end": lambda: _time_command(home, HARK, "-p", "hello"),
        }
        for command in commands.values():
            command()  # the first run compiles the bytecode
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(max(3, options.scale(STARTS))):
            for name, command in commands.items():
                times[name].append(command())
    bare = Percentiles.of(times["python -c pass"])
    targets = {'python -c "import hark"': 8.3, "hark --version": 6.7}
    return [
        Figure(name, "ms", Percentiles.of(samples), bare, None, targets.get(name)) for name, samples in times.items()
    ]


def _time_command(home: str, *command: str) -> float:
    # As after an installation: with compiled bytecode, regardless of this process's environment.
    environment = {**os.environ, "HARK_HOME": home, "PYTHONPYCACHEPREFIX": f"{home}/bytecode"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    start = time.perf_counter()
    nothing = subprocess.DEVNULL
    subprocess.run(command, check=True, timeout=30, cwd=home, env=environment, stdin=nothing, stdout=nothing)
    return (time.perf_counter() - start) * 1000


def _time_to_request(home: str, server: FakeModelServer) -> float:
    start = time.perf_counter()
    _time_command(home, HARK, "-p", "hello")
    return (server.requests()[-1]["arrived"] - start) * 1000
