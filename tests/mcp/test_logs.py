"""The log of a server: kept, bounded, harmless."""

from pathlib import Path

from hark.mcp.logs import FILE_BYTES, ServerLog


def test_what_is_written_is_kept_and_bounded(tmp_path: Path) -> None:
    log = ServerLog(tmp_path / "logs" / "mcp-one.log")
    for _ in range(50):
        log.write(b"x" * 100_000)
    log.note("the end")
    files = list((tmp_path / "logs").iterdir())
    assert sum(file.stat().st_size for file in files) < 3 * FILE_BYTES
    assert "the end" in log.file.read_text()
    assert log.file.stat().st_mode & 0o077 == 0


def test_a_note_to_a_log_that_cannot_be_written_is_dropped_without_an_error(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file is in the way")
    log = ServerLog(tmp_path / "logs" / "mcp-one.log")
    log.note("lost")
    assert not log.file.exists()
    assert (tmp_path / "logs").read_text() == "a file is in the way"
