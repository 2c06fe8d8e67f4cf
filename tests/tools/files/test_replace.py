"""Changes of whole files."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from hark.tools.files.replace import FileChange, make

WRITER = """
import sys
from pathlib import Path
from hark.tools.files.replace import FileChange, make
path = Path(sys.argv[1])
old = path.read_bytes()
print("ready", flush=True)
number = 0
while True:
    number += 1
    new = b"%09d\\n" % number * 50_000
    make([FileChange(path, old, new)], path.parent)
    old = new
"""


async def test_a_writer_that_is_killed_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for _ in range(5):
        path.write_bytes(b"000000000\n" * 50_000)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", WRITER, str(path), stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        await process.stdout.readline()
        for _ in range(20):
            check_whole(path)
            await asyncio.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
        await process.communicate()
        check_whole(path)


def check_whole(path: Path) -> None:
    lines = path.read_bytes().split(b"\n")
    assert len(lines) == 50_001
    assert len(set(lines[:-1])) == 1


def test_a_changed_mode_is_put_on_and_taken_off(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o644)
    make([FileChange(path, b"old", b"new", is_executable=True)], tmp_path)
    assert path.stat().st_mode & 0o777 == 0o755
    make([FileChange(path, b"new", b"new", is_executable=False)], tmp_path)
    assert path.stat().st_mode & 0o777 == 0o644
