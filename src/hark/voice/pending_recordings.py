"""Recordings that have not yet been transcribed, stored in files so that they survive a crash."""

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from hark.disk.private_files import replace_file
from hark.protocol.speech import Audio
from hark.protocol.voice_messages import VoiceNote
from hark.voice.audio_files import file_extension


class _RecordingMetadata(msgspec.Struct):
    """The metadata file of a recording. As long as the file exists, the recording still has to be transcribed."""

    id: str
    line: str
    media_type: str
    recording: str
    arrived: int
    about: dict[str, str]


class PendingRecordings:
    """A folder of recordings. The methods block on disk access; run them in a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def store(self, note: VoiceNote, arrived_at_ns: int) -> Path:
        """Store a recording durably and return its path. Recordings are ordered by `arrived_at_ns`.

        Raises:
            OSError: The recording can't be written.
        """
        recording = self._recording_path(note)
        replace_file(recording, note.audio.data)
        media_type, about = note.audio.media_type, dict(note.about)
        metadata = _RecordingMetadata(note.id, note.conversation, media_type, recording.name, arrived_at_ns, about)
        replace_file(self._metadata_path(note), msgspec.json.encode(metadata))
        return recording

    def delete(self, note: VoiceNote) -> None:
        """Delete a recording that was transcribed or withdrawn."""
        self.delete_metadata(note)
        with contextlib.suppress(OSError):
            self._recording_path(note).unlink(missing_ok=True)

    def delete_metadata(self, note: VoiceNote) -> None:
        """Delete only the metadata. The recording stays on disk and is not transcribed again."""
        with contextlib.suppress(OSError):
            self._metadata_path(note).unlink(missing_ok=True)

    def unfinished_notes(self) -> Iterator[VoiceNote]:
        """Yield the recordings that an earlier process stored but did not finish, in order of arrival."""
        entries: list[_RecordingMetadata] = []
        for file in self._folder.glob("*.json"):
            with contextlib.suppress(OSError, msgspec.MsgspecError):
                entries.append(msgspec.json.decode(file.read_bytes(), type=_RecordingMetadata))
        for entry in sorted(entries, key=lambda slip: slip.arrived):
            with contextlib.suppress(OSError):
                data = (self._folder / Path(entry.recording).name).read_bytes()
                yield VoiceNote(entry.id, entry.line, Audio(data, entry.media_type), entry.about)

    def _metadata_path(self, note: VoiceNote) -> Path:
        return self._folder / f"{_file_stem(note)}.json"

    def _recording_path(self, note: VoiceNote) -> Path:
        return self._folder / f"{_file_stem(note)}{file_extension(note.audio.media_type) or '.audio'}"


def _file_stem(note: VoiceNote) -> str:
    # Ids come from outside. As hashes they can't be paths or too long, and equal ids share a file.
    return hashlib.sha256(f"{note.conversation}\0{note.id}".encode()).hexdigest()[:32]
