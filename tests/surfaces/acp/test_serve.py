"""Lines as they come in."""

import asyncio

from hark.surfaces.acp.serve import TOO_LONG, Incoming


async def lines(source: Incoming) -> list[bytes]:
    found: list[bytes] = []
    while (line := await source.line()) is not None:
        found.append(line)
    return found


async def test_lines_are_whole_however_they_were_cut() -> None:
    source = Incoming()
    for piece in (b"on", b"e\n\ntw", b"o\r\nthree"):
        source.data_received(piece)
    source.eof_received()
    assert await lines(source) == [b"one", b"two\r", b"three"]


async def test_a_reader_that_waits_is_woken_by_a_line_and_by_the_end() -> None:
    source = Incoming()
    reading = asyncio.create_task(lines(source))
    await asyncio.sleep(0)
    source.data_received(b"one\n")
    await asyncio.sleep(0)
    source.connection_lost(None)
    assert await reading == [b"one"]


async def test_what_has_come_is_not_read_any_more_after_an_end() -> None:
    source = Incoming()
    source.data_received(b"one\ntwo\n")
    source.end()
    source.data_received(b"three\n")
    assert await lines(source) == []


async def test_a_line_without_bounds_is_let_go() -> None:
    source = Incoming(longest_bytes=10)
    source.data_received(b"x" * 8)
    source.data_received(b"x" * 8 + b"\nshort\n")
    source.eof_received()
    assert await lines(source) == [TOO_LONG, b"short"]
