"""Folders are ignored as git ignores them."""

import os
import subprocess
from pathlib import Path

import pytest

from hark.tools.undo.ignore import Ignored

FOLDERS = (
    *("build", "src/build", "a/x/b", "a/b", "a", "x.egg-info", "docs/_build", "docs/keep", "out", "out/deep", "#x"),
    *("src/gen", "src/gen/keep", "sp ace", "[odd]", "b1", "b2", "keep.log", "x.log"),
)


@pytest.mark.parametrize(
    "text",
    [
        "build/\n",
        "/build\n",
        "build\n!src/build\n",
        "a/**/b\n",
        "**/gen/\n",
        "a/**\n",
        "*.egg-info/\ndocs/_build/\n",
        "docs/*\n!docs/keep\n",
        "*.log\n!keep.log\n",
        "# comment\n\n\\#x\n   \n",
        "b[12]\n",
        "b[!1]\n",
        "b?\n",
        "sp ace/   \n",
        "\\[odd\\]\n",
        "*\n!*/\n",
        "/*\n!/src\n",
        "src/*/\n",
        "[\n",
        "/\n!\n",
        "out/deep\r\n",
    ],
)
def test_the_rules_are_gits(tmp_path: Path, text: str) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".gitignore").write_bytes(text.encode())
    for folder in FOLDERS:
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    asked = "\0".join(FOLDERS)
    git = ["git", "-c", "core.excludesFile=/dev/null", "-C", tmp_path, "check-ignore", "-z", "--stdin"]
    answer = subprocess.run(git, input=asked.encode(), capture_output=True, check=False).stdout.decode()
    rules = Ignored().below(os.fsencode(tmp_path))
    ours = {folder for folder in FOLDERS if is_ignored(rules, tmp_path, folder)}
    assert ours == {name.rstrip("/") for name in answer.split("\0") if name}


def is_ignored(rules: Ignored, root: Path, folder: str) -> bool:
    """Look from the top, as the walk does: nothing below an ignored folder is asked for."""
    parts = folder.split("/")
    places = ["/".join(parts[: number + 1]) for number in range(len(parts))]
    return any(rules.ignores(os.fsencode(root / place)) for place in places)
