"""Real MCP servers from npm and PyPI. The npm servers are installed once into the project's cache."""

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
INSTALL_FOLDER = PROJECT / ".cache" / "npm-mcp"
PACKAGES = ("@modelcontextprotocol/server-everything", "@modelcontextprotocol/server-filesystem")
INSTALL_SECONDS = 240


def find_npm_server(name: str) -> str:
    """Return the path to an npm server's program. Install the npm servers first if necessary."""
    program = INSTALL_FOLDER / "node_modules" / ".bin" / name
    if not program.exists():
        _install_npm_servers()
    return str(program)


def find_pypi_server(name: str) -> str:
    """Return the path to a PyPI server's program."""
    return str(Path(sys.executable).with_name(name))


def _install_npm_servers() -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.fail("npm is not installed: the tests with real MCP servers need Node.js with npm.")
    INSTALL_FOLDER.mkdir(parents=True, exist_ok=True)
    with (INSTALL_FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes may start at the same time
        if (INSTALL_FOLDER / "node_modules" / ".bin" / "mcp-server-filesystem").exists():
            return
        command = [npm, "install", "--prefix", str(INSTALL_FOLDER), "--no-audit", "--no-fund", *PACKAGES]
        result = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
        if result.returncode:
            pytest.fail(f"npm could not install {', '.join(PACKAGES)}:\n{result.stderr[-2000:]}")
