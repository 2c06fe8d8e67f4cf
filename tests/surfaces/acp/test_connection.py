"""Splitting the editor's input into lines."""

import asyncio

from hark.surfaces.acp.connection import TOO_LONG, LineReader


async def read_all_lines(reader: LineReader) -> list[bytes]:
    found: list[bytes] = []
    while (line := await reader.next_line()) is not None:
        found.append(line)
    return found


async def test_lines_are_complete_even_if_the_input_arrives_in_pieces() -> None:
    reader = LineReader()
    for piece in (b"on", b"e\n\ntw", b"o\r\nthree"):
        reader.data_received(piece)
    reader.eof_received()
    assert await read_all_lines(reader) == [b"one", b"two\r", b"three"]


async def test_waiting_reader_is_woken_by_a_line_and_by_the_end_of_input() -> None:
    reader = LineReader()
    reading = asyncio.create_task(read_all_lines(reader))
    await asyncio.sleep(0)
    reader.data_received(b"one\n")
    await asyncio.sleep(0)
    reader.connection_lost(None)
    assert await reading == [b"one"]


async def test_stopped_reader_returns_no_more_lines() -> None:
    reader = LineReader()
    reader.data_received(b"one\ntwo\n")
    reader.stop()
    reader.data_received(b"three\n")
    assert await read_all_lines(reader) == []


async def test_line_above_the_length_limit_is_discarded() -> None:
    reader = LineReader(max_line_bytes=10)
    reader.data_received(b"x" * 8)
    reader.data_received(b"x" * 8 + b"\nshort\n")
    reader.eof_received()
    assert await read_all_lines(reader) == [TOO_LONG, b"short"]
