"""The log file of an MCP server: private, limited in size, and tolerant of failed writes."""

from pathlib import Path

from hark.mcp.logs import MAX_FILE_BYTES, ServerLog


def test_the_log_is_private_and_limited_in_size(tmp_path: Path) -> None:
    log = ServerLog(tmp_path / "logs" / "mcp-one.log")
    for _ in range(50):
        log.write(b"x" * 100_000)
    log.note("the end")
    files = list((tmp_path / "logs").iterdir())
    assert sum(file.stat().st_size for file in files) < 3 * MAX_FILE_BYTES
    assert "the end" in log.file.read_text()
    assert log.file.stat().st_mode & 0o077 == 0


def test_a_log_entry_is_dropped_when_the_log_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file is in the way")
    log = ServerLog(tmp_path / "logs" / "mcp-one.log")
    log.note("lost")
    assert not log.file.exists()
    assert (tmp_path / "logs").read_text() == "a file is in the way"
