"""Wakes between the processes of one machine, over unix datagram sockets in one directory."""

import asyncio
import os
import socket
import stat
import tempfile
from collections.abc import AsyncIterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from hark.disk.private_files import private_folder, tighten
from hark.protocol.store import StoreError

EVERYTHING = ""
LIMIT = 1024


class WakeQueue:
    """Wakes in order of arrival; too many of them become one that means: look at all."""

    def __init__(self) -> None:
        self._sessions: dict[str, None] = {}
        self._is_closed = False
        self._changed = asyncio.Event()

    def add(self, session: str) -> None:
        """Note that a session was woken."""
        if EVERYTHING not in self._sessions:
            if session == EVERYTHING or len(self._sessions) >= LIMIT:
                self._sessions.clear()
                session = EVERYTHING
            self._sessions[session] = None
        self._changed.set()

    def close(self) -> None:
        """End the iteration, at once."""
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


PATH_BYTES = 100  # what a socket's path may have on every system
SESSION_BYTES = 1024
DRAIN_LIMIT = 256
# A full socket drops wakes, and the smallest one that is full by default holds ten: whoever finds about as many at once
# may have missed others.
SUSPICIOUS = 8


class LocalBus:
    """One process's ear on the bus. The kernel closes it when the process dies, which tells the others."""

    def __init__(self, directory: Path, owner: str) -> None:
        """Bind the owner's socket, on the running loop.

        Raises:
            StoreError: The socket can't be made, or a live process has this owner's name.
        """
        self._directory = directory
        self._path = self._socket_of(owner)
        if self.is_alive(owner):
            raise StoreError(f"A process named {owner!r} uses {directory} already. Give this one another name.")
        self._loop = asyncio.get_running_loop()
        self._wakes = WakeQueue()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        try:
            Path(self._path).unlink(missing_ok=True)
            self._socket.bind(self._path)
            tighten(Path(self._path))
        except OSError as error:
            self._socket.close()
            raise StoreError(
                f"The socket {self._path} can't be made ({error.strerror}). Check that its directory may be written to."
            ) from error
        self._loop.add_reader(self._socket, self._drain)

    async def wake(self, session: str) -> None:
        """Tell the other processes that a session has something new. Never waits for them, never raises."""
        datagram = session.encode(errors="surrogatepass")
        if len(datagram) > SESSION_BYTES:
            datagram = EVERYTHING.encode()
        with suppress(OSError), os.scandir(self._directory) as files:
            for file in files:
                if file.name.endswith(".sock") and file.path != self._path:
                    self._send(datagram, file.path)

    def wakes(self) -> AsyncIterator[str]:
        """Yield the sessions that others woke; "" means: look at all. Ends when the bus is closed."""
        return aiter(self._wakes)

    def is_alive(self, owner: str) -> bool:
        """Tell whether the process with this owner's name lives; may be asked from any thread."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(self._socket_of(owner))
            except (FileNotFoundError, ConnectionRefusedError):
                return False
            except OSError:  # nothing is known, so its lease stays until it expires
                return True
            return True

    def close(self) -> None:
        """Leave the bus."""
        if self._socket.fileno() < 0:
            return
        self._loop.remove_reader(self._socket)
        self._socket.close()
        self._wakes.close()
        with suppress(OSError):
            Path(self._path).unlink(missing_ok=True)

    def _socket_of(self, owner: str) -> str:
        # A digest, so that any name makes a file name, and all are of one length.
        return str(self._directory / f"{blake2b(owner.encode(errors='surrogatepass'), digest_size=8).hexdigest()}.sock")

    def _send(self, datagram: bytes, path: str) -> None:
        try:
            self._socket.sendto(datagram, path)
        except ConnectionRefusedError:  # its process died; names are never used again, so neither is the file
            with suppress(OSError):
                Path(path).unlink(missing_ok=True)
        except OSError:  # a full socket: its reader looks at all when it finds so many wakes
            pass

    def _drain(self) -> None:
        for count in range(DRAIN_LIMIT):
            try:
                datagram = self._socket.recv(SESSION_BYTES)
                session = datagram.decode(errors="surrogatepass")
            except BlockingIOError:
                return
            except (OSError, UnicodeDecodeError):
                session = EVERYTHING
            self._wakes.add(EVERYTHING if count >= SUSPICIOUS else session)


def bus_directory(home: Path) -> Path:
    """Return the directory of the sockets for `home`, made if needed: in it, or if that path is too long, elsewhere.

    Raises:
        StoreError: It can't be made, or is not safe to use.
    """
    directory = home.absolute() / "run"
    try:
        if not _fits(directory):
            name = blake2b(os.fsencode(home.resolve()), digest_size=8).hexdigest()
            directory = Path(tempfile.gettempdir()) / f"hark-{os.getuid()}-{name}"
        if not directory.is_dir():
            private_folder(directory)
        status = directory.lstat()
    except OSError as error:
        raise StoreError(
            f"The directory {directory} can't be made ({error.strerror}). Check that it may be written to."
        ) from error
    is_safe = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022
    if not is_safe:
        raise StoreError(f"{directory} is not a directory that you alone may write to. Remove it and start again.")
    if not _fits(directory):
        raise StoreError(f"The path {directory} is too long for a socket. Set TMPDIR to a shorter one.")
    tighten(directory)
    return directory


def _fits(directory: Path) -> bool:
    return len(os.fsencode(directory)) + len("/0123456789abcdef.sock") < PATH_BYTES
