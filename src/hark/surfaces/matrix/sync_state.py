"""The saved sync state: the token up to which events were processed, and the threads of recent messages."""

import re
from pathlib import Path

import msgspec
from msgspec import Struct, field

from hark.disk.private_files import replace_file
from hark.disk.stored_json import read_json
from hark.protocol.chat import ChatError

MAX_THREAD_MESSAGES = 300


class SyncFile(Struct):
    """The content of the state file. `threads` maps messages to threads, because deletion events name no thread."""

    since: str = ""
    threads: dict[str, str] = field(default_factory=dict[str, str])


class SyncState:
    """The saved sync state of one account, in the file at `path`."""

    def __init__(self, directory: Path, account: str) -> None:
        """Read the state file.

        Raises:
            ChatError: The file exists but can't be read.
        """
        self.path = directory / f"{re.sub(r'[^A-Za-z0-9._=-]', '_', account)}.json"
        try:
            # After damage, only new messages are received.
            self._content = read_json(self.path, SyncFile) or SyncFile()
        except OSError as error:
            raise ChatError(f"{self.path} can't be read: {error}. Check its permissions.") from error

    @property
    def since(self) -> str:
        """The token up to which all events were processed, or "" before the first sync."""
        return self._content.since

    def remember_thread(self, message: str, thread: str) -> None:
        """Remember the thread of a message. The next `save` persists the thread."""
        threads = self._content.threads
        threads[message] = thread
        while len(threads) > MAX_THREAD_MESSAGES:
            del threads[next(iter(threads))]

    def thread_of(self, message: str) -> str | None:
        """Return the thread of a message, or None if no thread is known for it."""
        return self._content.threads.get(message)

    def advance(self, since: str) -> bytes:
        """Record that all events up to the token `since` were processed. Return the content for `save`."""
        self._content.since = since
        return msgspec.json.encode(self._content)

    def save(self, content: bytes) -> None:
        """Write the state file durably. May run in a thread.

        Raises:
            ChatError: The file can't be written.
        """
        try:
            replace_file(self.path, content)
        except OSError as error:
            raise ChatError(f"{self.path} can't be written: {error}. Check its directory.") from error
