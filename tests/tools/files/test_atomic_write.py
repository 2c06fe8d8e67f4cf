"""Atomic replacement of whole files."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from hark.tools.files.atomic_write import FileChange, apply_changes

WRITER = """
import sys
from pathlib import Path
from hark.tools.files.atomic_write import FileChange, apply_changes
path = Path(sys.argv[1])
old = path.read_bytes()
print("ready", flush=True)
number = 0
while True:
    number += 1
    new = b"%09d\\n" % number * 50_000
    apply_changes([FileChange(path, old, new)], path.parent)
    old = new
"""


async def test_a_killed_writer_leaves_a_complete_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for _ in range(5):
        path.write_bytes(b"000000000\n" * 50_000)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", WRITER, str(path), stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        await process.stdout.readline()
        for _ in range(20):
            check_complete(path)
            await asyncio.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
        await process.communicate()
        check_complete(path)


def check_complete(path: Path) -> None:
    lines = path.read_bytes().split(b"\n")
    assert len(lines) == 50_001
    assert len(set(lines[:-1])) == 1


def test_the_executable_mode_can_be_set_and_removed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o644)
    apply_changes([FileChange(path, b"old", b"new", is_executable=True)], tmp_path)
    assert path.stat().st_mode & 0o777 == 0o755
    apply_changes([FileChange(path, b"new", b"new", is_executable=False)], tmp_path)
    assert path.stat().st_mode & 0o777 == 0o644
