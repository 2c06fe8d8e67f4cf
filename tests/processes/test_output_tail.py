"""What a process printed and nobody read yet."""

from pathlib import Path

from hark.processes.output import KEPT_CHARACTERS, READ_CHARACTERS, Unread, WholeOutput


async def test_each_piece_is_taken_once() -> None:
    output = Unread(WholeOutput(None))
    output.receive("één ".encode()[:1])
    output.receive("één ".encode()[1:])
    assert output.peek() == output.take() == "één "
    output.receive(b"two\0")
    assert output.count == 4
    assert output.take() == "two␀"
    assert output.take() == ""


async def test_endless_output_takes_no_more_memory_than_is_kept(tmp_path: Path) -> None:
    output = Unread(WholeOutput(tmp_path / "file", short_bytes=0))
    for _ in range(100):
        output.receive(b"x" * 10_000)
    output.close()
    assert output.count == 1_000_000
    assert KEPT_CHARACTERS <= len(output.peek()) < KEPT_CHARACTERS + 10_000
    text = output.take()
    assert len(text) < READ_CHARACTERS + 200
    assert f"[... 970,000 characters left out; the whole output is in {tmp_path}/file ...]" in text
    assert output.count == 0
