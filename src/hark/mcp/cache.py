"""What servers offered the last time, on disk: their tools are known before they are up."""

import contextlib
import os
from pathlib import Path

import msgspec

from hark.mcp.offer import ServerOffer
from hark.mcp.settings import ServerSettings


class _Kept(msgspec.Struct, frozen=True):
    fingerprint: str
    offer: ServerOffer | None = None  # None: it kept everybody waiting in vain


class OfferCache:
    """One file for each server. What can't be read or written is as if it was never there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, name: str, settings: ServerSettings) -> ServerOffer | None:
        """Return what the server offered with these very settings."""
        kept = self._kept(name, settings)
        return kept.offer if kept else None

    def was_late(self, name: str, settings: ServerSettings) -> bool:
        """Tell whether it kept everybody waiting in vain the last time."""
        kept = self._kept(name, settings)
        return kept is not None and kept.offer is None

    def _kept(self, name: str, settings: ServerSettings) -> _Kept | None:
        try:
            kept = msgspec.json.decode(self._file(name).read_bytes(), type=_Kept)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None
        return kept if kept.fingerprint == settings.fingerprint else None

    def save(self, name: str, settings: ServerSettings, offer: ServerOffer | None) -> None:
        """Keep what the server offers; None when it was waited for in vain."""
        file = self._file(name)
        draft = file.with_name(f".{file.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            draft.write_bytes(msgspec.json.encode(_Kept(settings.fingerprint, offer)))
            draft.replace(file)

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.json"
