"""Process output that has not been read yet."""

from pathlib import Path

from hark.processes.output import MAX_BUFFERED_CHARACTERS, MAX_READ_CHARACTERS, OutputFile, UnreadOutput


async def test_each_chunk_of_output_is_read_once() -> None:
    output = UnreadOutput(OutputFile(None))
    output.receive("één ".encode()[:1])
    output.receive("één ".encode()[1:])
    assert output.peek() == output.read() == "één "
    output.receive(b"two\0")
    assert output.unread_count == 4
    assert output.read() == "two␀"
    assert output.read() == ""


async def test_output_that_was_read_is_not_returned_again_when_the_line_changes() -> None:
    output = UnreadOutput(OutputFile(None))
    output.receive(b"start\n10%")
    assert output.unread_count == len("start\n10%")
    assert output.read() == "start\n10%"
    output.receive(b"\r20%\r3")
    output.receive(b"0%")
    assert output.peek() == output.read() == "30%"


async def test_endless_progress_needs_bounded_memory() -> None:
    output = UnreadOutput(OutputFile(None))
    for number in range(10_000):
        output.receive(b"\r%d" % number)
    assert output.unread_count == 4
    assert output.read() == "9999"


async def test_endless_output_is_buffered_in_bounded_memory(tmp_path: Path) -> None:
    output = UnreadOutput(OutputFile(tmp_path / "file", small_bytes=0))
    for _ in range(100):
        output.receive(b"x" * 10_000)
    output.close()
    assert output.unread_count == 1_000_000
    assert MAX_BUFFERED_CHARACTERS <= len(output.peek()) < MAX_BUFFERED_CHARACTERS + 10_000
    text = output.read()
    assert len(text) < MAX_READ_CHARACTERS + 200
    assert f"[... 970,000 characters omitted; the full output is in {tmp_path}/file ...]" in text
    assert output.unread_count == 0
