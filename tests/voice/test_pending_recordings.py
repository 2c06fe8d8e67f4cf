"""Stored recordings are found again in order of arrival, whatever other files are in the folder."""

from pathlib import Path

from hark.protocol.speech import Audio
from hark.protocol.voice_messages import VoiceNote
from hark.voice.pending_recordings import PendingRecordings


def voice_note(id_: str, media_type: str = "audio/ogg; codecs=opus") -> VoiceNote:
    return VoiceNote(id_, "line", Audio(id_.encode(), media_type), {"author": id_})


def test_stored_recordings_are_returned_in_order_of_arrival(tmp_path: Path) -> None:
    recordings = PendingRecordings(tmp_path / "voice")
    assert list(recordings.unfinished_notes()) == []
    kept = [recordings.store(voice_note(name), arrived) for name, arrived in (("c", 3), ("a", 1), ("b", 2))]
    assert {file.suffix for file in kept} == {".ogg"}
    assert [left.id for left in PendingRecordings(tmp_path / "voice").unfinished_notes()] == ["a", "b", "c"]
    assert next(iter(recordings.unfinished_notes())) == voice_note("a")


def test_deleted_recording_is_removed_and_recording_without_metadata_remains_as_a_file(tmp_path: Path) -> None:
    recordings = PendingRecordings(tmp_path)
    recordings.store(voice_note("done"), 1)
    aside = recordings.store(voice_note("aside", "image/strange"), 2)
    recordings.delete(voice_note("done"))
    recordings.delete(voice_note("done"))
    recordings.delete_metadata(voice_note("aside", "image/strange"))
    assert list(recordings.unfinished_notes()) == []
    assert list(tmp_path.iterdir()) == [aside]
    assert aside.read_bytes() == b"aside"


def test_incomplete_files_left_by_a_crash_are_ignored(tmp_path: Path) -> None:
    recordings = PendingRecordings(tmp_path)
    recordings.store(voice_note("whole"), 1)
    (tmp_path / "x.json").write_text('{"id": "x"')
    (tmp_path / "y.json.part").write_text("{}")
    (tmp_path / "z.json").write_text(
        '{"id": "z", "line": "l", "media_type": "", "recording": "../../etc/passwd", "arrived": 0, "about": {}}'
    )
    assert [left.id for left in recordings.unfinished_notes()] == ["whole"]


def test_recording_with_any_message_id_is_stored_inside_the_folder(tmp_path: Path) -> None:
    recordings = PendingRecordings(tmp_path / "voice")
    for id_ in ("../../escape", "/etc/passwd", "x" * 5000, "a\0b", "😀"):
        assert recordings.store(voice_note(id_), 1).parent == tmp_path / "voice"
    assert list(tmp_path.iterdir()) == [tmp_path / "voice"]
