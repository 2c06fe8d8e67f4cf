"""Which folder each session of an editor works in."""

from pathlib import Path

from hark.app.sessions.editor_folders import EditorSessions


def test_the_last_folder_of_a_session_counts(tmp_path: Path) -> None:
    sessions = EditorSessions(tmp_path)
    assert sessions.folders() == {}
    sessions.add("a", "/one")
    sessions.add("b", "/two")
    sessions.add("a", "/three")
    assert EditorSessions(tmp_path).folders() == {"a": "/three", "b": "/two"}


def test_half_a_line_is_passed_over(tmp_path: Path) -> None:
    sessions = EditorSessions(tmp_path)
    sessions.add("a", "/one")
    file = tmp_path / "editor-sessions.jsonl"
    file.write_bytes(file.read_bytes() + b'{"session": "b", "fol\n')
    assert sessions.folders() == {"a": "/one"}
