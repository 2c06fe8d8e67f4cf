"""Who was let in by the owner, and the codes of those who knocked."""

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct, field

from hark.disk.cached_file import CachedFile
from hark.disk.private_files import open_private, replace_private
from hark.protocol.chat import Author
from hark.text.columns import one_line

CODE_SECONDS = 3600.0
MOST_KNOCKS = 200
NAME_CHARACTERS = 64


class Knock(Struct, frozen=True):
    """Somebody unknown wrote."""

    surface: str
    person: str
    name: str
    code: str
    at: float


class PairedAccount(Struct, frozen=True):
    """Somebody who was let in."""

    surface: str
    person: str
    name: str


class Book(Struct):
    """The whole of it."""

    knocks: list[Knock] = field(default_factory=list[Knock])
    guests: list[PairedAccount] = field(default_factory=list[PairedAccount])


class Pairing:
    """The book in a file, safe for several processes; read again when it changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = CachedFile(path, lambda path: msgspec.json.decode(path.read_bytes(), type=Book))

    def is_let_in(self, surface: str, person: str) -> bool:
        """Tell whether the owner has let this person in."""
        return any((guest.surface, guest.person) == (surface, person) for guest in self.book.guests)

    def knock(self, surface: str, author: Author, code: str) -> str:
        """Keep that somebody unknown wrote; return their code, the same as long as it holds."""
        with self._changing() as book:
            now = time.time()
            book.knocks = [knock for knock in book.knocks if now - knock.at < CODE_SECONDS]
            for knock in book.knocks:
                if (knock.surface, knock.person) == (surface, author.id):
                    return knock.code
            name = one_line(author.name)[:NAME_CHARACTERS]  # strangers choose it, and the owner's terminal shows it
            book.knocks = [*book.knocks, Knock(surface, author.id, name, code, now)][-MOST_KNOCKS:]
        return code

    def approve(self, code: str) -> PairedAccount | None:
        """Let the person with this code in; None when no code of now is that."""
        with self._changing() as book:
            now = time.time()
            for knock in book.knocks:
                if knock.code == code.strip().upper() and now - knock.at < CODE_SECONDS:
                    guest = PairedAccount(knock.surface, knock.person, knock.name)
                    book.knocks.remove(knock)
                    book.guests.append(guest)
                    return guest
        return None

    def revoke(self, person: str) -> list[PairedAccount]:
        """Let nobody of this id or name in any more; return who that was."""
        with self._changing() as book:
            gone = [
                guest
                for guest in book.guests
                if person in (guest.person, f"{guest.surface}:{guest.person}", guest.name)
            ]
            book.guests = [guest for guest in book.guests if guest not in gone]
        return gone

    @property
    def book(self) -> Book:
        """The book as it is now."""
        try:
            return self._file.read()
        except FileNotFoundError:
            return Book()

    @contextmanager
    def _changing(self) -> Generator[Book]:
        lock = open_private(self._path.with_suffix(".lock"), os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            book = self.book
            yield book
            replace_private(self._path, msgspec.json.encode(book), is_durable=False)
            self._file.forget()
        finally:
            os.close(lock)
