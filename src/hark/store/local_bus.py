"""Wake-ups between the processes of one machine, over Unix datagram sockets in one directory."""

import asyncio
import os
import socket
import stat
import tempfile
from collections.abc import AsyncIterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from hark.disk.private_files import create_private_folder, restrict_access
from hark.protocol.store import StoreError

ALL_SESSIONS = ""
MAX_QUEUED_WAKES = 1024


class WakeQueue:
    """A queue of wake-ups in order of arrival. On overflow, one wake-up for all sessions replaces its contents."""

    def __init__(self) -> None:
        self._sessions: dict[str, None] = {}
        self._is_closed = False
        self._changed = asyncio.Event()

    def add(self, session: str) -> None:
        """Add a wake-up for a session, or for all sessions if the queue is full."""
        if ALL_SESSIONS not in self._sessions:
            if session == ALL_SESSIONS or len(self._sessions) >= MAX_QUEUED_WAKES:
                self._sessions.clear()
                session = ALL_SESSIONS
            self._sessions[session] = None
        self._changed.set()

    def close(self) -> None:
        """Close the queue, which ends the iteration over it immediately."""
        self._is_closed = True
        self._changed.set()

    async def __aiter__(self) -> AsyncIterator[str]:
        while not self._is_closed:
            if self._sessions:
                session = next(iter(self._sessions))
                del self._sessions[session]
                yield session
            else:
                self._changed.clear()
                await self._changed.wait()


MAX_PATH_BYTES = 100  # the limit for socket paths on every supported system
MAX_DATAGRAM_BYTES = 1024
MAX_DRAIN_COUNT = 256
# A full socket drops wake-ups. The smallest default capacity is ten, so a process that finds about as many at once
# may have missed some.
OVERFLOW_COUNT = 8


class LocalBus:
    """One process's connection to the bus. The kernel closes its socket when the process dies."""

    def __init__(self, directory: Path, owner: str) -> None:
        """Bind the owner's socket on the running loop.

        Raises:
            StoreError: The socket can't be created, or a live process uses this owner's name.
        """
        self._directory = directory
        self._path = self._socket_path(owner)
        if self.is_alive(owner):
            raise StoreError(f"Another process named {owner!r} already uses {directory}. Choose a different name.")
        self._loop = asyncio.get_running_loop()
        self._wakes = WakeQueue()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        try:
            Path(self._path).unlink(missing_ok=True)
            self._socket.bind(self._path)
            restrict_access(Path(self._path))
        except OSError as error:
            self._socket.close()
            raise StoreError(
                f"The socket {self._path} can't be created ({error.strerror}). Check that its directory is writable."
            ) from error
        self._loop.add_reader(self._socket, self._receive_wakes)

    async def wake(self, session: str) -> None:
        """Notify the other processes that a session has changed. Never waits for them, never raises."""
        datagram = session.encode(errors="surrogatepass")
        if len(datagram) > MAX_DATAGRAM_BYTES:
            datagram = ALL_SESSIONS.encode()
        with suppress(OSError), os.scandir(self._directory) as files:
            for file in files:
                if file.name.endswith(".sock") and file.path != self._path:
                    self._send(datagram, file.path)

    def wakes(self) -> AsyncIterator[str]:
        """Yield the sessions that others woke; "" stands for all sessions. Ends when the bus is closed."""
        return aiter(self._wakes)

    def is_alive(self, owner: str) -> bool:
        """Return whether the process with this owner name is alive. Can be called from any thread."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(self._socket_path(owner))
            except (FileNotFoundError, ConnectionRefusedError):
                return False
            except OSError:  # unknown, so its lease stays until it expires
                return True
            return True

    def close(self) -> None:
        """Close the socket and end `wakes`."""
        if self._socket.fileno() < 0:
            return
        self._loop.remove_reader(self._socket)
        self._socket.close()
        self._wakes.close()
        with suppress(OSError):
            Path(self._path).unlink(missing_ok=True)

    def _socket_path(self, owner: str) -> str:
        # A digest, so that any owner name gives a valid file name of fixed length.
        return str(self._directory / f"{blake2b(owner.encode(errors='surrogatepass'), digest_size=8).hexdigest()}.sock")

    def _send(self, datagram: bytes, path: str) -> None:
        try:
            self._socket.sendto(datagram, path)
        except ConnectionRefusedError:  # the process died; owner names are never reused, so the file is obsolete
            with suppress(OSError):
                Path(path).unlink(missing_ok=True)
        except OSError:  # the socket is full; its reader then checks all sessions
            pass

    def _receive_wakes(self) -> None:
        for count in range(MAX_DRAIN_COUNT):
            try:
                datagram = self._socket.recv(MAX_DATAGRAM_BYTES)
                session = datagram.decode(errors="surrogatepass")
            except BlockingIOError:
                return
            except (OSError, UnicodeDecodeError):
                session = ALL_SESSIONS
            self._wakes.add(ALL_SESSIONS if count >= OVERFLOW_COUNT else session)


def prepare_bus_directory(home: Path) -> Path:
    """Create and return the directory for the sockets of `home`, in the temp directory if the path is too long.

    Raises:
        StoreError: The directory can't be created, or is not safe to use.
    """
    directory = home.absolute() / "run"
    try:
        if not _fits_socket_path(directory):
            name = blake2b(os.fsencode(home.resolve()), digest_size=8).hexdigest()
            directory = Path(tempfile.gettempdir()) / f"hark-{os.getuid()}-{name}"
        if not directory.is_dir():
            create_private_folder(directory)
        status = directory.lstat()
    except OSError as error:
        raise StoreError(
            f"The directory {directory} can't be created ({error.strerror}). Check that its parent is writable."
        ) from error
    is_safe = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022
    if not is_safe:
        raise StoreError(f"{directory} is not a directory that only you can write to. Remove it and start Hark again.")
    if not _fits_socket_path(directory):
        raise StoreError(f"The path {directory} is too long for a socket. Set TMPDIR to a shorter one.")
    restrict_access(directory)
    return directory


def _fits_socket_path(directory: Path) -> bool:
    return len(os.fsencode(directory)) + len("/0123456789abcdef.sock") < MAX_PATH_BYTES
