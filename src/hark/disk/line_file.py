"""A small text file to which several processes add lines."""

from pathlib import Path

from hark.disk.file_lock import lock_file
from hark.disk.private_files import replace_file


def append_line(path: Path, line: bytes, heading: bytes = b"") -> None:
    """Add a line to a small text file durably: after a power loss, the file has the whole line or none of it.

    Several processes may add lines. A new file begins with the heading.

    Raises:
        TimeoutError: Another process held the lock for too long.
        OSError: The file can't be written.
    """
    with lock_file(path.with_name(f".{path.name}.lock")):
        try:
            lines = path.read_bytes()
        except FileNotFoundError:
            lines = b""
        lines = lines or heading
        separator = b"" if not lines or lines.endswith(b"\n") else b"\n"
        replace_file(path, lines + separator + line + b"\n")
