"""Stores file contents under the hash of their bytes, so that equal contents are stored only once."""
# File names are bytes here, because they may not be valid text.
# ruff: noqa: PTH102, PTH105, PTH108, PTH110, PTH112, PTH116, PTH120

import fcntl
import hashlib
import os
import secrets
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from hark.disk.durable import sync_files, sync_folders
from hark.disk.private_files import create_private_folder
from hark.disk.regular_files import open_regular

SMALL_BYTES = 256 * 1024  # read at once; bigger files are copied by the kernel where possible
CHUNK_BYTES = 1024 * 1024
CLONE = 0x40049409  # FICLONE of <linux/fs.h>: the copy shares the blocks
DIGEST_BYTES = 32


class BlobStore:
    """A folder of blobs. Processes may share the folder, because a blob is created by a rename and never changes.

    Blobs get their names, all at once, when the outermost `batch` ends. By then their contents are on disk, so a power
    loss never leaves an incomplete blob. Any method may raise an OSError.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = os.fsencode(folder)
        self._temporary_name = secrets.token_hex(6).encode()  # part of temporary file names, unique to this process
        self._count = 0
        self._pending: dict[bytes, bytes] = {}  # the temporary files of this batch, by digest

    @contextmanager
    def batch(self) -> Generator[None]:
        """Store blobs durably when the context exits. If it exits with an error, store none of them."""
        try:
            yield
            self._name_pending_blobs()
        finally:
            for temporary in self._pending.values():
                with suppress(OSError):
                    os.unlink(temporary)
            self._pending.clear()

    def path(self, digest: bytes) -> bytes:
        """Return the path of a blob, whether or not it exists."""
        name = digest.hex().encode()
        return self._folder + b"/" + name[:2] + b"/" + name[2:]

    def has(self, digest: bytes) -> bool:
        """Return whether the blob exists, or will exist at the end of this batch."""
        return digest in self._pending or os.path.exists(self.path(digest))

    def store(self, content: bytes) -> bytes:
        """Store these bytes and return their digest. Call it in a `batch`."""
        digest = digest_of(content)
        if not self._has_content(digest, len(content)):
            with self._new_file() as (file, temporary):
                _write_all(file, content)
                self._pending[digest] = temporary
        return digest

    def store_file(self, path: bytes) -> tuple[bytes, os.stat_result]:
        """Store the content of a regular file. Return its digest, and the file's status when it was read. Call it in a
        `batch`.

        If another process writes the file meanwhile, the stored content is one that any reader could have seen.
        """
        with open_regular(path) as source:
            status = os.fstat(source)
            if status.st_size <= SMALL_BYTES:
                return self.store(_read_all(source, status.st_size)), status
            return self._store_big_file(source), status

    def read(self, digest: bytes) -> bytes:
        """Return a blob's content.

        Raises:
            OSError: The blob is missing or damaged.
        """
        content = Path(os.fsdecode(self.path(digest))).read_bytes()
        if digest_of(content) != digest:
            raise OSError("the stored copy is damaged")
        return content

    def is_intact(self, digest: bytes) -> bool:
        """Return whether the blob exists and matches its digest."""
        try:
            return digest_of_file(self.path(digest)) == digest
        except OSError:
            return False

    def copy_to(self, digest: bytes, target: int) -> None:
        """Write a blob's content into an open, empty file.

        Raises:
            OSError: The blob is missing or damaged, or the file can't be written.
        """
        with open_regular(self.path(digest)) as source:
            _copy_content(source, target)
        os.lseek(target, 0, os.SEEK_SET)
        if _digest_of_descriptor(target) != digest:
            raise OSError("the stored copy is damaged")

    def _store_big_file(self, source: int) -> bytes:
        with self._new_file() as (target, temporary):
            _copy_content(source, target)
            os.lseek(target, 0, os.SEEK_SET)
            digest = _digest_of_descriptor(target)
            if digest in self._pending:
                os.unlink(temporary)
            else:
                self._pending[digest] = temporary
        return digest

    def _has_content(self, digest: bytes, size: int) -> bool:
        """Return whether a blob of this size exists. A wrong size is the most common damage."""
        if digest in self._pending:
            return True
        try:
            return os.stat(self.path(digest)).st_size == size
        except FileNotFoundError:
            return False

    @contextmanager
    def _new_file(self) -> Generator[tuple[int, bytes]]:
        """Create a temporary file and yield its descriptor and path. The file is removed if the caller fails."""
        if not os.path.isdir(self._folder):
            create_private_folder(Path(os.fsdecode(self._folder)))
        self._count += 1
        temporary = b"%s/new-%s-%d" % (self._folder, self._temporary_name, self._count)
        file = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            yield file, temporary
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        finally:
            os.close(file)

    def _name_pending_blobs(self) -> None:
        if not self._pending:
            return
        sync_files(self._pending.values())
        folders = {self._folder}
        while self._pending:
            digest, temporary = self._pending.popitem()
            path = self.path(digest)
            folders.add(os.path.dirname(path))
            with suppress(FileExistsError):
                os.mkdir(os.path.dirname(path), mode=0o700)
            os.replace(temporary, path)
        sync_folders(folders)


def digest_of(content: bytes) -> bytes:
    """Return the digest under which the content is stored."""
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest()


def digest_of_file(path: bytes) -> bytes:
    """Return the digest of a regular file without storing it.

    Raises:
        OSError: The file can't be read, or is not a regular file.
    """
    with open_regular(path) as source:
        return _digest_of_descriptor(source)


def _digest_of_descriptor(source: int) -> bytes:
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    while chunk := os.read(source, CHUNK_BYTES):
        digest.update(chunk)
    return digest.digest()


def _copy_content(source: int, target: int) -> None:
    if sys.platform == "linux":
        with suppress(OSError):  # not supported by most file systems
            fcntl.ioctl(target, CLONE, source)
            return
        with suppress(OSError):  # part of the file may have been copied: the loop below continues from there
            while os.copy_file_range(source, target, CHUNK_BYTES * 64):
                pass
    while chunk := os.read(source, CHUNK_BYTES):
        _write_all(target, chunk)


def _read_all(source: int, size: int) -> bytes:
    """Read to the end of the file. `size` is only a hint, because the file may have grown or shrunk."""
    chunks: list[bytes] = []
    while chunk := os.read(source, size + 1):
        chunks.append(chunk)
    return b"".join(chunks)


def _write_all(target: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(target, view) :]
