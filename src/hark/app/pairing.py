"""Pairing: the accounts that the owner approved, and the codes of pending requests."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct, field

from hark.disk.cached_file import CachedFile
from hark.disk.file_lock import lock_file
from hark.disk.private_files import replace_file
from hark.disk.stored_json import read_json
from hark.protocol.chat import Author
from hark.text.columns import to_one_line
from hark.text.graphemes import shorten

CODE_SECONDS = 3600.0
MAX_REQUESTS = 200
NAME_CHARACTERS = 64


class PairingRequest(Struct, frozen=True):
    """A request for access from an unknown account, with the code that approves it."""

    surface: str
    person: str
    name: str
    code: str
    at: float


class PairedAccount(Struct, frozen=True):
    """An account that the owner approved."""

    surface: str
    person: str
    name: str


class PairingRecords(Struct):
    """The contents of the pairing file: pending requests and paired accounts."""

    knocks: list[PairingRequest] = field(default_factory=list[PairingRequest])
    guests: list[PairedAccount] = field(default_factory=list[PairedAccount])


class PairingFile:
    """The pairing file. Several processes can share it; each rereads the file when it changes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = CachedFile(path, lambda path: read_json(path, PairingRecords) or PairingRecords())

    def is_paired(self, surface: str, person: str) -> bool:
        """Return whether the owner approved this account."""
        return any((account.surface, account.person) == (surface, person) for account in self.records.guests)

    def request_pairing(self, surface: str, author: Author, code: str) -> str:
        """Record a request from an unknown account. Return the request's code, which is stable until it expires."""
        with self._locked_update() as records:
            now = time.time()
            records.knocks = [request for request in records.knocks if now - request.at < CODE_SECONDS]
            for request in records.knocks:
                if (request.surface, request.person) == (surface, author.id):
                    return request.code
            # Strangers choose this name, and the owner's terminal shows it.
            name = shorten(to_one_line(author.name), NAME_CHARACTERS)
            records.knocks = [*records.knocks, PairingRequest(surface, author.id, name, code, now)][-MAX_REQUESTS:]
        return code

    def approve(self, code: str) -> PairedAccount | None:
        """Pair the account with this code. Return None if the code is unknown or has expired."""
        with self._locked_update() as records:
            now = time.time()
            for request in records.knocks:
                if request.code == code.strip().upper() and now - request.at < CODE_SECONDS:
                    account = PairedAccount(request.surface, request.person, request.name)
                    records.knocks.remove(request)
                    records.guests.append(account)
                    return account
        return None

    def revoke(self, id_or_name: str) -> list[PairedAccount]:
        """Remove the paired accounts with this id or name, and return them."""
        with self._locked_update() as records:
            removed = [
                account
                for account in records.guests
                if id_or_name in (account.person, f"{account.surface}:{account.person}", account.name)
            ]
            records.guests = [account for account in records.guests if account not in removed]
        return removed

    @property
    def records(self) -> PairingRecords:
        """The current contents of the file. If the file is missing, damaged or unreadable, no account is paired."""
        try:
            return self._file.read()
        except OSError:
            return PairingRecords()

    @contextmanager
    def _locked_update(self) -> Generator[PairingRecords]:
        with lock_file(self._path.with_suffix(".lock")):
            records = read_json(self._path, PairingRecords) or PairingRecords()
            yield records
            replace_file(self._path, msgspec.json.encode(records))
            self._file.invalidate()
