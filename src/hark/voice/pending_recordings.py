"""Recordings that are not yet words, in files: what a crash leaves of them is gone on with."""

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from hark.disk.private_files import replace_private, sync_folder
from hark.protocol.speech import Audio
from hark.protocol.voice_messages import VoiceNote
from hark.voice.audio_files import ending


class _Slip(msgspec.Struct):
    """What is written beside a recording; as long as it is there, the recording waits to be heard."""

    id: str
    line: str
    media_type: str
    recording: str
    arrived: int
    about: dict[str, str]


class PendingRecordings:
    """A folder of recordings. Its calls block for as long as the disk takes: run them in a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, note: VoiceNote, arrived: int) -> Path:
        """Write a recording so that it survives a crash, and return where it is. `arrived` is its place in the order.

        Raises:
            OSError: It can't be written.
        """
        recording = self._recording(note)
        replace_private(recording, note.audio.data)
        slip = _Slip(note.id, note.line, note.audio.media_type, recording.name, arrived, dict(note.about))
        replace_private(self._slip(note), msgspec.json.encode(slip))
        sync_folder(self._folder)
        return recording

    def drop(self, note: VoiceNote) -> None:
        """Forget a recording: its words are known, or nobody wants them any more."""
        self.lay_aside(note)
        with contextlib.suppress(OSError):
            self._recording(note).unlink(missing_ok=True)

    def lay_aside(self, note: VoiceNote) -> None:
        """Leave the recording where it is, and don't hear it again."""
        with contextlib.suppress(OSError):
            self._slip(note).unlink(missing_ok=True)

    def left(self) -> Iterator[VoiceNote]:
        """Yield what an earlier process had taken and not ended, in the order in which it arrived."""
        slips: list[_Slip] = []
        for file in self._folder.glob("*.json"):
            with contextlib.suppress(OSError, msgspec.MsgspecError):
                slips.append(msgspec.json.decode(file.read_bytes(), type=_Slip))
        for told in sorted(slips, key=lambda slip: slip.arrived):
            with contextlib.suppress(OSError):
                data = (self._folder / Path(told.recording).name).read_bytes()
                yield VoiceNote(told.id, told.line, Audio(data, told.media_type), told.about)

    def _slip(self, note: VoiceNote) -> Path:
        return self._folder / f"{_name(note)}.json"

    def _recording(self, note: VoiceNote) -> Path:
        return self._folder / f"{_name(note)}{ending(note.audio.media_type) or '.audio'}"


def _name(note: VoiceNote) -> str:
    # Ids come from outside: as a hash they are neither paths nor too long, and the same one is the same file.
    return hashlib.sha256(f"{note.line}\0{note.id}".encode()).hexdigest()[:32]
