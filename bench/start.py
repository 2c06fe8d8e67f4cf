"""Cold start: from the command to its end, or to the first request at the server."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.model import Server, model_server
from bench.run import Plan
from bench.table import Figure, Spread

STARTS = 15
HARK = str(Path(sys.executable).with_name("hark"))
CONFIG = '[[routes]]\nname = "main"\nbase_url = "{base_url}"\nmodel = "token-1"\n'


def measure(plan: Plan) -> list[Figure]:
    """Start each command many times, all of them in turns."""
    with model_server() as server, TemporaryDirectory(prefix="hark-bench-") as home:
        Path(home, "config.toml").write_text(CONFIG.format(base_url=server.base_url))
        commands: dict[str, Callable[[], float]] = {
            "python -c pass": lambda: _run(home, sys.executable, "-c", "pass"),
            'python -c "import hark"': lambda: _run(home, sys.executable, "-c", "import hark"),
            "hark --version": lambda: _run(home, HARK, "--version"),
            'python -c "import aiohttp"': lambda: _run(home, sys.executable, "-c", "import aiohttp"),
            "hark -p, to the first request": lambda: _to_request(home, server),
            "hark -p, to its end": lambda: _run(home, HARK, "-p", "hello"),
        }
        for command in commands.values():
            command()  # compiles
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(max(3, plan.count(STARTS))):
            for name, command in commands.items():
                times[name].append(command())
    bare = Spread.of(times["python -c pass"])
    targets = {'python -c "import hark"': 8.3, "hark --version": 6.7}
    return [Figure(name, "ms", Spread.of(all_), bare, None, targets.get(name)) for name, all_ in times.items()]


def _run(home: str, *command: str) -> float:
    # As after an installation: with compiled bytecode, whatever this process was told about it.
    environment = {**os.environ, "HARK_HOME": home, "PYTHONPYCACHEPREFIX": f"{home}/bytecode"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    start = time.perf_counter()
    nothing = subprocess.DEVNULL
    subprocess.run(command, check=True, timeout=30, cwd=home, env=environment, stdin=nothing, stdout=nothing)
    return (time.perf_counter() - start) * 1000


def _to_request(home: str, server: Server) -> float:
    start = time.perf_counter()
    _run(home, HARK, "-p", "hello")
    return (server.requests()[-1]["arrived"] - start) * 1000
