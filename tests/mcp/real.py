"""The real servers from npm, installed once into the project's cache."""

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
FOLDER = PROJECT / ".cache" / "npm-mcp"
PACKAGES = ("@modelcontextprotocol/server-everything", "@modelcontextprotocol/server-filesystem")
INSTALL_SECONDS = 300


def npm_server(name: str) -> str:
    """Return the program of an npm server."""
    program = FOLDER / "node_modules" / ".bin" / name
    if not program.exists():
        _install()
    return str(program)


def pypi_server(name: str) -> str:
    """Return the program of a server from PyPI."""
    return str(Path(sys.executable).with_name(name))


def _install() -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.fail("npm is not installed: the tests with real MCP servers need Node.js with npm.")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes start at once
        if (FOLDER / "node_modules" / ".bin" / "mcp-server-filesystem").exists():
            return
        words = [npm, "install", "--prefix", str(FOLDER), "--no-audit", "--no-fund", *PACKAGES]
        done = subprocess.run(words, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
        if done.returncode:
            pytest.fail(f"npm could not install {', '.join(PACKAGES)}:\n{done.stderr[-2000:]}")
