"""Contents of files, each kept once under the hash of its bytes."""
# Names of files are bytes here, and needn't be text.
# ruff: noqa: PTH102, PTH105, PTH108, PTH110, PTH112, PTH120

import fcntl
import hashlib
import os
import secrets
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from hark.disk.private_files import private_folder
from hark.disk.regular_files import open_regular

SMALL_BYTES = 256 * 1024  # read at once; what is bigger is copied by the kernel where it can
CHUNK_BYTES = 1024 * 1024
CLONE = 0x40049409  # FICLONE of <linux/fs.h>: the copy shares the blocks
DIGEST_BYTES = 32


class Blobs:
    """A folder of contents. Processes may share it: a blob comes by one rename, whole, and never changes.

    Any method may raise an OSError, and leaves nothing half-written that could be taken for a blob.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = os.fsencode(folder)
        self._name = secrets.token_hex(6).encode()  # of what isn't whole yet: no other process has it
        self._count = 0

    def path(self, digest: bytes) -> bytes:
        """Return where a content is, or would be."""
        name = digest.hex().encode()
        return self._folder + b"/" + name[:2] + b"/" + name[2:]

    def has(self, digest: bytes) -> bool:
        """Return whether the content is here."""
        return os.path.exists(self.path(digest))

    def keep(self, content: bytes) -> bytes:
        """Keep these bytes; return their digest."""
        digest = digest_of(content)
        if not self.has(digest):
            with self._new_file() as (file, temporary):
                _write(file, content)
                self._place(temporary, digest)
        return digest

    def keep_file(self, path: bytes) -> tuple[bytes, os.stat_result]:
        """Keep what a regular file holds; return the digest, and what the file was when it was read.

        A file that is written to meanwhile gives one of the states that a reader could have seen.
        """
        with open_regular(path) as source:
            status = os.fstat(source)
            if status.st_size <= SMALL_BYTES:
                return self.keep(_read(source, status.st_size)), status
            return self._keep_big(source), status

    def read(self, digest: bytes) -> bytes:
        """Return a content.

        Raises:
            OSError: It is missing, or damaged.
        """
        content = Path(os.fsdecode(self.path(digest))).read_bytes()
        if digest_of(content) != digest:
            raise OSError("the kept copy is damaged")
        return content

    def is_whole(self, digest: bytes) -> bool:
        """Return whether the content is here and undamaged."""
        try:
            return digest_of_file(self.path(digest)) == digest
        except OSError:
            return False

    def write_to(self, digest: bytes, target: int) -> None:
        """Write a content into an open, empty file."""
        with open_regular(self.path(digest)) as source:
            _copy(source, target)

    def _keep_big(self, source: int) -> bytes:
        with self._new_file() as (target, temporary):
            _copy(source, target)
            os.lseek(target, 0, os.SEEK_SET)
            digest = _digest_of_file(target)
            self._place(temporary, digest)
        return digest

    @contextmanager
    def _new_file(self) -> Generator[tuple[int, bytes]]:
        """Create a file that has no name as a blob yet; remove it if that fails."""
        if not os.path.isdir(self._folder):
            private_folder(Path(os.fsdecode(self._folder)))
        self._count += 1
        temporary = b"%s/new-%s-%d" % (self._folder, self._name, self._count)
        file = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            yield file, temporary
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        finally:
            os.close(file)

    def _place(self, temporary: bytes, digest: bytes) -> None:
        path = self.path(digest)
        try:
            os.replace(temporary, path)
        except FileNotFoundError:
            with suppress(FileExistsError):
                os.mkdir(os.path.dirname(path), mode=0o700)
            os.replace(temporary, path)


def digest_of(content: bytes) -> bytes:
    """Return the name that a content has here."""
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest()


def digest_of_file(path: bytes) -> bytes:
    """Return the digest of a regular file without keeping it.

    Raises:
        OSError: It can't be read, or is not a regular file.
    """
    with open_regular(path) as source:
        return _digest_of_file(source)


def _digest_of_file(source: int) -> bytes:
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    while chunk := os.read(source, CHUNK_BYTES):
        digest.update(chunk)
    return digest.digest()


def _copy(source: int, target: int) -> None:
    if sys.platform == "linux":
        with suppress(OSError):  # most file systems can't
            fcntl.ioctl(target, CLONE, source)
            return
        with suppress(OSError):  # a part may have been copied: the loop below goes on from there
            while os.copy_file_range(source, target, CHUNK_BYTES * 64):
                pass
    while chunk := os.read(source, CHUNK_BYTES):
        _write(target, chunk)


def _read(source: int, size: int) -> bytes:
    """Read all: the size is what it was a moment ago."""
    chunks: list[bytes] = []
    while chunk := os.read(source, size + 1):
        chunks.append(chunk)
    return b"".join(chunks)


def _write(target: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(target, view) :]
