"""What the commands load: a command that needs no terminal app loads none, and a small one loads little."""

import signal
from pathlib import Path

from tests.cli.command_line import Hark, opened
from tests.fakes.models.behaviours import text

# The command, which tells at its end what it has imported.
LISTING = """
import atexit, sys
before = set(sys.modules)
atexit.register(lambda: print("imported:", *(set(sys.modules) - before), file=sys.stderr))
from hark.cli.main import main
sys.exit(main())
"""
MOST_OF_STOP = 75
SLOW = {"argparse", "asyncio", "msgspec", "re", "typing"}


def loaded(err: str) -> set[str]:
    """The modules that a command imported."""
    [line] = [line for line in err.splitlines() if line.startswith("imported:")]
    return set(line.split()[1:])


def ours(modules: set[str]) -> set[str]:
    return {name for name in modules if name.partition(".")[0] == "hark"}


async def modules_of(hark: Hark, *words: str) -> set[str]:
    ended = await (await hark.start_python("-c", LISTING, *words)).end()
    assert ended.code == 0, ended
    return loaded(ended.err)


async def test_stop_loads_no_terminal_app_and_few_modules(tmp_path: Path) -> None:
    async with opened(tmp_path) as hark:
        modules = await modules_of(hark, "stop", "--all")
    assert "textual" not in modules
    assert "hark.cli.stop" in modules
    assert len(ours(modules)) < MOST_OF_STOP


async def test_trace_loads_no_terminal_app(tmp_path: Path) -> None:
    async with opened(tmp_path, [text(["hi"])]) as hark:
        assert (await hark.run("-p", "hello", "--session", "demo")).code == 0
        modules = await modules_of(hark, "trace", "demo") | await modules_of(hark, "trace", "demo", "--json")
    assert "textual" not in modules
    assert "hark.trace.terminal" in modules


async def test_serve_loads_no_terminal_app(tmp_path: Path) -> None:
    async with opened(tmp_path) as hark:
        gateway = await hark.start_python("-c", LISTING, "serve", "--port", "0")
        await gateway.until("serving on")
        gateway.process.send_signal(signal.SIGTERM)
        modules = loaded((await gateway.end()).err)
    assert "textual" not in modules
    assert "hark.surfaces.web.app" in modules


async def test_version_loads_nothing_that_takes_time(tmp_path: Path) -> None:
    async with opened(tmp_path) as hark:
        modules = await modules_of(hark, "--version")
    assert ours(modules) == {"hark", "hark.cli", "hark.cli.main", "hark.version"}
    assert not modules & SLOW
