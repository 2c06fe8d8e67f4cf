"""What must outlive the process: how far the news were dealt with, and which late messages are in which thread."""

import re
from pathlib import Path

import msgspec
from msgspec import Struct, field

from hark.disk.private_files import replace_private
from hark.protocol.chat import ChatError

MOST_THREADED = 300


class Known(Struct):
    """The file. `threads`: messages, with the threads that they are in; a deletion does not tell it any more."""

    since: str = ""
    threads: dict[str, str] = field(default_factory=dict[str, str])


class SyncState:
    """A small file for one account, at `path`."""

    def __init__(self, folder: Path, account: str) -> None:
        """Read it.

        Raises:
            ChatError: It is there and can't be read. To start anew by ourselves would lose what came meanwhile.
        """
        self.path = folder / f"{re.sub(r'[^A-Za-z0-9._=-]', '_', account)}.json"
        try:
            self._known = msgspec.json.decode(self.path.read_bytes(), type=Known)
        except FileNotFoundError:
            self._known = Known()
        except (OSError, msgspec.DecodeError) as error:
            advice = "Mend it, or remove it to start with what is written from then on."
            raise ChatError(f"{self.path} can't be read: {error}. {advice}") from error

    @property
    def since(self) -> str:
        """The token up to which all was dealt with; "" when there never was one."""
        return self._known.since

    def note_thread(self, message: str, thread: str) -> None:
        """Remember, with the next `save`, in which thread a message is."""
        threads = self._known.threads
        threads[message] = thread
        while len(threads) > MOST_THREADED:
            del threads[next(iter(threads))]

    def thread_of(self, message: str) -> str | None:
        """Return the thread of a message; None when it is not known to be in one."""
        return self._known.threads.get(message)

    def move(self, since: str) -> bytes:
        """All up to this token was dealt with; return what `save` must write."""
        self._known.since = since
        return msgspec.json.encode(self._known)

    def save(self, content: bytes) -> None:
        """Make it durable; may run in a thread.

        Raises:
            ChatError: It can't be written.
        """
        try:
            replace_private(self.path, content)
        except OSError as error:
            raise ChatError(f"{self.path} can't be written: {error}. Check its folder.") from error
