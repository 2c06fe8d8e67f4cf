"""The last look at each workspace: what is untouched since needn't be read again, by the next process either."""

from pathlib import Path

import msgspec

from hark.tools.undo.blobs import Blobs, digest_of
from hark.tools.undo.manifest import Manifest, ManifestEntry
from hark.tools.undo.retention import generation
from hark.tools.undo.steps import write_whole


class LastLooks:
    """Known in memory, and on disk by the digest of a manifest. Only with the store's lock held."""

    def __init__(self, folder: Path, blobs: Blobs) -> None:
        self._folder = folder
        self._blobs = blobs
        self._entries: dict[bytes, dict[bytes, ManifestEntry]] = {}
        self._generation = generation(folder)

    def at(self, root: bytes) -> dict[bytes, ManifestEntry]:
        """Return what was seen of a workspace, as far as its contents are kept."""
        now = generation(self._folder)
        if now != self._generation:  # a sweep, maybe by another process, may have removed contents
            self._entries.clear()
            self._generation = now
        if root not in self._entries:
            try:
                digest = bytes.fromhex(self._pointer(root).read_text())
                self._entries[root] = msgspec.msgpack.decode(self._blobs.read(digest), type=Manifest).entries
            except (OSError, ValueError, msgspec.DecodeError):
                self._entries[root] = {}
        return self._entries[root]

    def remember(self, root: bytes, entries: dict[bytes, ManifestEntry]) -> None:
        """Take in a newer look, for this process."""
        self._entries[root] = entries

    def write(self, root: bytes, digest: bytes) -> None:
        """Write down where the look is kept, for the next process.

        Raises:
            OSError: It can't be written.
        """
        pointer = self._pointer(root)
        pointer.parent.mkdir(mode=0o700, exist_ok=True)
        write_whole(pointer, digest.hex().encode())

    def _pointer(self, root: bytes) -> Path:
        return self._folder / "roots" / digest_of(root).hex()[:32]
