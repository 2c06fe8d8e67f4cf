"""Recordings in files: what was kept is found again, in its order, whatever else lies there."""

from pathlib import Path

from hark.protocol.speech import Audio
from hark.protocol.voice_messages import VoiceNote
from hark.voice.pending_recordings import PendingRecordings


def note(id_: str, media_type: str = "audio/ogg; codecs=opus") -> VoiceNote:
    return VoiceNote(id_, "line", Audio(id_.encode(), media_type), {"author": id_})


def test_what_was_kept_comes_back_in_the_order_of_arrival(tmp_path: Path) -> None:
    shelf = PendingRecordings(tmp_path / "voice")
    assert list(shelf.left()) == []
    kept = [shelf.keep(note(name), arrived) for name, arrived in (("c", 3), ("a", 1), ("b", 2))]
    assert {file.suffix for file in kept} == {".ogg"}
    assert [left.id for left in PendingRecordings(tmp_path / "voice").left()] == ["a", "b", "c"]
    assert next(iter(shelf.left())) == note("a")


def test_what_is_done_is_gone_and_what_is_laid_aside_stays_as_a_file(tmp_path: Path) -> None:
    shelf = PendingRecordings(tmp_path)
    shelf.keep(note("done"), 1)
    aside = shelf.keep(note("aside", "image/strange"), 2)
    shelf.drop(note("done"))
    shelf.drop(note("done"))
    shelf.lay_aside(note("aside", "image/strange"))
    assert list(shelf.left()) == []
    assert list(tmp_path.iterdir()) == [aside]
    assert aside.read_bytes() == b"aside"


def test_what_a_crash_left_half_written_is_passed_over(tmp_path: Path) -> None:
    shelf = PendingRecordings(tmp_path)
    shelf.keep(note("whole"), 1)
    (tmp_path / "x.json").write_text('{"id": "x"')
    (tmp_path / "y.json.part").write_text("{}")
    (tmp_path / "z.json").write_text(
        '{"id": "z", "line": "l", "media_type": "", "recording": "../../etc/passwd", "arrived": 0, "about": {}}'
    )
    assert [left.id for left in shelf.left()] == ["whole"]


def test_a_message_with_any_id_is_one_file_in_the_folder(tmp_path: Path) -> None:
    shelf = PendingRecordings(tmp_path / "voice")
    for id_ in ("../../escape", "/etc/passwd", "x" * 5000, "a\0b", "😀"):
        assert shelf.keep(note(id_), 1).parent == tmp_path / "voice"
    assert list(tmp_path.iterdir()) == [tmp_path / "voice"]
