"""Real sources of skills for tests: git repositories, hanging servers."""

import subprocess
from pathlib import Path

IDENTITY = ("-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "init.defaultBranch=main")


def make_repository(folder: Path) -> str:
    """Make a folder with files in it a git repository; return its address."""
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "all"]):
        subprocess.run(["git", *IDENTITY, *words], cwd=folder, check=True, stdin=subprocess.DEVNULL)
    return f"file://{folder}"
