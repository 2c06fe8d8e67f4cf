"""Commands that don't use the terminal app don't import it, and small commands import few modules."""

import signal
from pathlib import Path

from tests.cli.command_line import Hark, open_hark
from tests.fakes.models.behaviours import text

# Runs a command and prints the modules that it imported.
PRINT_IMPORTS = """
import atexit, sys
before = set(sys.modules)
atexit.register(lambda: print("imported:", *(set(sys.modules) - before), file=sys.stderr))
from hark.cli.main import main
sys.exit(main())
"""
MAX_STOP_MODULES = 75
SLOW_MODULES = {"argparse", "asyncio", "msgspec", "re", "typing"}


def imported_modules(err: str) -> set[str]:
    """Return the modules that a command imported, according to its stderr."""
    [line] = [line for line in err.splitlines() if line.startswith("imported:")]
    return set(line.split()[1:])


def hark_modules(modules: set[str]) -> set[str]:
    return {name for name in modules if name.partition(".")[0] == "hark"}


async def run_and_list_imports(hark: Hark, *arguments: str) -> set[str]:
    ended = await (await hark.start_python("-c", PRINT_IMPORTS, *arguments)).wait_for_end()
    assert ended.code == 0, ended
    return imported_modules(ended.err)


async def test_stop_imports_few_modules_and_no_terminal_app(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        modules = await run_and_list_imports(hark, "stop", "--all")
    assert "textual" not in modules
    assert "hark.cli.stop" in modules
    assert len(hark_modules(modules)) < MAX_STOP_MODULES


async def test_trace_does_not_import_the_terminal_app(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [text(["hi"])]) as hark:
        assert (await hark.run("-p", "hello", "--session", "demo")).code == 0
        modules = await run_and_list_imports(hark, "trace", "demo") | await run_and_list_imports(
            hark, "trace", "demo", "--json"
        )
    assert "textual" not in modules
    assert "hark.trace.terminal" in modules


async def test_serve_does_not_import_the_terminal_app(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        gateway = await hark.start_python("-c", PRINT_IMPORTS, "serve", "--port", "0")
        await gateway.wait_for_line("serving on")
        gateway.process.send_signal(signal.SIGTERM)
        modules = imported_modules((await gateway.wait_for_end()).err)
    assert "textual" not in modules
    assert "hark.surfaces.web.app" in modules


async def test_version_imports_no_slow_modules(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        modules = await run_and_list_imports(hark, "--version")
    assert hark_modules(modules) == {"hark", "hark.cli", "hark.cli.main", "hark.version"}
    assert not modules & SLOW_MODULES
