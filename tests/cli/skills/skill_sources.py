"""Creates skill sources for tests: real git repositories."""

import subprocess
from pathlib import Path

IDENTITY = ("-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "init.defaultBranch=main")


def make_repository(folder: Path) -> str:
    """Turn a folder into a git repository with one commit, and return its URL."""
    for arguments in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "all"]):
        subprocess.run(["git", *IDENTITY, *arguments], cwd=folder, check=True, stdin=subprocess.DEVNULL)
    return f"file://{folder}"
