"""Runs a scenario under strace, and returns the operations on its folder."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.power_cuts.disk.operations import Operation
from tests.power_cuts.disk.tree import Tree, read_tree
from tests.power_cuts.recorder.interpreter import Interpreter
from tests.power_cuts.recorder.system_calls import parse_calls

CALLS = (
    *("open", "openat", "creat", "write", "writev", "pwrite64", "pwritev", "pwritev2", "copy_file_range", "sendfile"),
    *("ftruncate", "fallocate", "rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat", "rmdir"),
    *("mkdir", "mkdirat", "symlink", "symlinkat", "chmod", "fchmod", "fchmodat", "fsync", "fdatasync", "syncfs"),
    *("sync", "dup", "dup2", "dup3", "fcntl", "lseek", "clone", "clone3", "fork", "vfork", "chdir"),
)
MAX_STRING_BYTES = 16_000_000
SCENARIO_SECONDS = 300.0


class RecordingFailed(Exception):
    """The scenario failed, or the recorded operations don't yield the folder's real content."""


@dataclass(frozen=True, slots=True)
class Recording:
    """The folder before the scenario, and all operations in their order."""

    root: Path
    base: Tree
    operations: list[Operation]


def can_record() -> bool:
    """Return whether strace is installed and may trace processes here."""
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-qq", "-o", os.devnull, "true"], check=False, capture_output=True).returncode == 0


def record(arguments: list[str], folder: Path) -> Recording:
    """Run a Python program under strace. Record the changes in `folder/root` and the marks in `folder/marks`.

    Raises:
        RecordingFailed: The program failed, or the recording is incomplete.
    """
    root, marks, log = folder / "root", folder / "marks", folder / "strace.log"
    marks.touch()
    base = read_tree(root)
    command = ["strace", "-f", "-qq", "--seccomp-bpf", "-y", "-xx", "-s", str(MAX_STRING_BYTES), "-e", "signal=none"]
    command += ["-e", f"trace={','.join(CALLS)}", "-o", str(log), sys.executable, *arguments]
    ended = subprocess.run(command, check=False, capture_output=True, umask=0o022, timeout=SCENARIO_SECONDS, text=True)
    if ended.returncode != 0:
        raise RecordingFailed(f"{arguments} ended with {ended.returncode}: {ended.stderr[-4000:]}")
    with log.open() as lines:
        calls = list(parse_calls(lines))
    log.unlink()
    interpreter = Interpreter(os.fsencode(root), os.fsencode(marks), base, calls)
    interpreter.run()
    _check(interpreter.tree, read_tree(root))
    return Recording(root, base, interpreter.operations)


def _check(recorded: Tree, real: Tree) -> None:
    """Compare the recorded folder with the real one. SQLite's index files, which are memory-mapped, are ignored."""
    ours, theirs = recorded.describe(), real.describe()
    wrong = [
        name
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name) and not name.endswith(b"-shm")
    ]
    if wrong:
        raise RecordingFailed(f"not recorded correctly: {wrong[:10]}")
