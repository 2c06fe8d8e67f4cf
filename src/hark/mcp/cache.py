"""What servers offered the last time, on disk: their tools are known before they are up."""

import contextlib
import os
from pathlib import Path

import msgspec

from hark.mcp.offer import Offer
from hark.mcp.settings import ServerSettings


class _Kept(msgspec.Struct, frozen=True):
    fingerprint: str
    offer: Offer


class OfferCache:
    """One file for each server. What can't be read or written is as if it was never there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, name: str, settings: ServerSettings) -> Offer | None:
        """Return what the server offered with these very settings."""
        try:
            kept = msgspec.json.decode(self._file(name).read_bytes(), type=_Kept)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None
        return kept.offer if kept.fingerprint == settings.fingerprint else None

    def save(self, name: str, settings: ServerSettings, offer: Offer) -> None:
        """Keep what the server offers."""
        file = self._file(name)
        draft = file.with_name(f".{file.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            draft.write_bytes(msgspec.json.encode(_Kept(settings.fingerprint, offer)))
            draft.replace(file)

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.json"
