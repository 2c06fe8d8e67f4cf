"""Contents of files, each kept once under the hash of its bytes."""
# Names of files are bytes here, and needn't be text.
# ruff: noqa: PTH102, PTH105, PTH108, PTH110, PTH112, PTH120

import fcntl
import hashlib
import os
import secrets
import stat
import sys
from contextlib import suppress
from pathlib import Path

from hark.disk.private_files import private_folder

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
            temporary = self._temporary()
            with _removed_unless_renamed(temporary):
                file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                try:
                    _write(file, content)
                finally:
                    os.close(file)
                self._place(temporary, digest)
        return digest

    def keep_file(self, path: bytes) -> tuple[bytes, os.stat_result]:
        """Keep what a regular file holds; return the digest, and what the file was when it was read.

        A file that is written to meanwhile gives one of the states that a reader could have seen.
        """
        source = open_regular(path)
        try:
            status = os.fstat(source)
            if status.st_size <= SMALL_BYTES:
                return self.keep(_read(source, status.st_size)), status
            return self._keep_big(source), status
        finally:
            os.close(source)

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
            source = open_regular(self.path(digest))
        except OSError:
            return False
        try:
            return _digest_of_file(source) == digest
        finally:
            os.close(source)

    def write_to(self, digest: bytes, target: int) -> None:
        """Write a content into an open, empty file."""
        source = open_regular(self.path(digest))
        try:
            _copy(source, target)
        finally:
            os.close(source)

    def _keep_big(self, source: int) -> bytes:
        temporary = self._temporary()
        with _removed_unless_renamed(temporary):
            target = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                _copy(source, target)
                os.lseek(target, 0, os.SEEK_SET)
                digest = _digest_of_file(target)
            finally:
                os.close(target)
            self._place(temporary, digest)
        return digest

    def _temporary(self) -> bytes:
        if not os.path.isdir(self._folder):
            private_folder(Path(os.fsdecode(self._folder)))
        self._count += 1
        return b"%s/new-%s-%d" % (self._folder, self._name, self._count)

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
    source = open_regular(path)
    try:
        return _digest_of_file(source)
    finally:
        os.close(source)


def open_regular(path: bytes) -> int:
    """Open a file to read, never through a link, and never waiting for the other end of a pipe.

    Raises:
        OSError: It can't be read, or is not a regular file.
    """
    source = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(source).st_mode):
        os.close(source)
        raise OSError("not a regular file")
    return source


def read_start(path: bytes, size: int) -> bytes:
    """Return the first bytes of a regular file.

    Raises:
        OSError: It can't be read, or is not a regular file.
    """
    source = open_regular(path)
    try:
        return os.read(source, size)
    finally:
        os.close(source)


class _removed_unless_renamed:  # noqa: N801 - reads as a phrase after `with`
    def __init__(self, path: bytes) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            with suppress(OSError):
                os.unlink(self._path)


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
