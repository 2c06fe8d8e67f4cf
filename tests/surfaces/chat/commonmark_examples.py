"""The examples of the CommonMark specification, from an npm package that is installed once into the project's cache."""

import fcntl
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = "commonmark-spec@0.31.2"
INSTALL_FOLDER = Path(__file__).parents[3] / ".cache" / "npm-commonmark"
SPEC = INSTALL_FOLDER / "node_modules" / "commonmark-spec" / "spec.txt"
INSTALL_SECONDS = 300
_EXAMPLE = re.compile(r"^`{32} example\n(.*?)^\.\n(.*?)^`{32}$", re.MULTILINE | re.DOTALL)


class Example(NamedTuple):
    """A Markdown text and its HTML."""

    markdown: str
    html: str


def load_examples() -> list[Example]:
    """Return the examples of the specification. Install the package first if necessary."""
    if not SPEC.exists():
        _install_package()
    text = SPEC.read_text(encoding="utf-8").replace("→", "\t")
    return [Example(markdown, html) for markdown, html in _EXAMPLE.findall(text)]


def _install_package() -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed: the CommonMark examples come from an npm package.")
    INSTALL_FOLDER.mkdir(parents=True, exist_ok=True)
    with (INSTALL_FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes may start at the same time
        if SPEC.exists():
            return
        command = [npm, "install", "--prefix", str(INSTALL_FOLDER), "--no-audit", "--no-fund", PACKAGE]
        result = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
        if result.returncode:
            pytest.fail(f"npm could not install {PACKAGE}:\n{result.stderr[-2000:]}")
