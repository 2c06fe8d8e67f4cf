"""The working directory of each editor session."""

from pathlib import Path

from hark.app.sessions.editor_session_file import EditorSessionFile


def test_the_last_folder_recorded_for_a_session_is_used(tmp_path: Path) -> None:
    sessions = EditorSessionFile(tmp_path)
    assert sessions.folders() == {}
    sessions.add("a", "/one")
    sessions.add("b", "/two")
    sessions.add("a", "/three")
    assert EditorSessionFile(tmp_path).folders() == {"a": "/three", "b": "/two"}


def test_a_partial_line_in_the_session_file_is_skipped(tmp_path: Path) -> None:
    sessions = EditorSessionFile(tmp_path)
    sessions.add("a", "/one")
    file = tmp_path / "editor-sessions.jsonl"
    file.write_bytes(file.read_bytes() + b'{"session": "b", "fol\n')
    assert sessions.folders() == {"a": "/one"}
