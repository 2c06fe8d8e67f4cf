import random

import pytest

from hark.providers.sse import EventTooLong, SseParser
from tests.linear_time import assert_linear

STREAM = (
    b"\xef\xbb\xbfdata: one\n\n"
    b": a comment\r\n\r\n"
    b"event: message\r\nid: 7\r\ndata:two\r\n\r\n"
    b"data: three\ndata:  and more\n\n"
    b"data:\n\ndatum: not ours\n\n"
    b'data: {"text": "\xc3\xa9"}\r\n\n'
    b"data: last"
)
EVENTS = [b"one", b"two", b"three\n and more", b'{"text": "\xc3\xa9"}', b"last"]


def parse_pieces(*pieces: bytes) -> list[bytes]:
    stream = SseParser()
    events = [event for piece in pieces for event in stream.feed(piece)]
    return events + stream.finish()


def test_the_data_lines_of_an_event_are_joined() -> None:
    assert parse_pieces(STREAM) == EVENTS


def test_a_stream_split_at_any_two_positions_is_parsed_the_same() -> None:
    for first in range(len(STREAM) + 1):
        for second in range(first, len(STREAM) + 1):
            assert parse_pieces(STREAM[:first], STREAM[first:second], STREAM[second:]) == EVENTS


def test_a_stream_that_arrives_byte_by_byte_is_parsed_the_same() -> None:
    assert parse_pieces(*(bytes([byte]) for byte in STREAM)) == EVENTS


def test_an_event_is_returned_as_soon_as_its_terminating_empty_line_arrives() -> None:
    stream = SseParser()
    assert stream.feed(b"data: now\n") == []
    assert stream.feed(b"\n") == [b"now"]


def test_comment_lines_in_a_stream_are_skipped() -> None:
    stream = SseParser()
    assert stream.feed(b": ping\n\n") == []
    assert stream.feed(b"data: a\n: ping\ndata: b\n\n") == [b"a\nb"]


def test_finish_returns_nothing_after_a_complete_event() -> None:
    stream = SseParser()
    assert stream.feed(b"data: all\n\n") == [b"all"]
    assert stream.finish() == []


def feed_repeatedly(piece: bytes) -> None:
    stream = SseParser(max_event_bytes=1000)
    for _ in range(20):
        assert stream.feed(piece) == []


@pytest.mark.parametrize("piece", [b"x" * 100, b"data: " + b"x" * 100, b"data:\n" * 20, b"data: x\n" * 20])
def test_an_endless_event_is_rejected_at_the_size_limit(piece: bytes) -> None:
    with pytest.raises(EventTooLong):
        feed_repeatedly(piece)


def test_the_size_limit_does_not_apply_to_several_events_together() -> None:
    assert len(SseParser(max_event_bytes=1000).feed(b"data: fine\n\n" * 500)) == 500


# The cases of the HTML standard and of web-platform-tests (eventsource/format-*), in our words. The parser returns only
# data, so events without data are skipped, and the fields id, event and retry have no effect.
STANDARD_CASES: list[tuple[str, bytes, list[bytes]]] = [
    ("byte order mark", b"\xef\xbb\xbfdata:1\n\n\xef\xbb\xbfdata:2\n\ndata:3\n\n", [b"1", b"3"]),
    ("two byte order marks", b"\xef\xbb\xbf\xef\xbb\xbfdata:1\n\ndata:2\n\n", [b"2"]),
    ("LF", b"data:1\ndata:2\n\ndata:3\n\n", [b"1\n2", b"3"]),
    ("CR", b"data:1\rdata:2\r\rdata:3\r\r", [b"1\n2", b"3"]),
    ("CRLF", b"data:1\r\ndata:2\r\n\r\ndata:3\r\n\r\n", [b"1\n2", b"3"]),
    ("mixed line ends", b"data:1\r\n\ndata:2\n\rdata:3\r\n\rdata:4\r\r\n", [b"1", b"2", b"3", b"4"]),
    ("LF after CR is one line end", b"data:1\r\ndata:2\r\r", [b"1\n2"]),
    ("comments", b"data:1\r:\0\n:\r\ndata:2\n:" + b"x" * 3000 + b"\rdata:3\n\n", [b"1\n2\n3"]),
    ("field without a colon", b"data\n\ndata\ndata\n\ndata:1\n\n", [b"\n", b"1"]),
    ("data without a value between lines", b"data:1\ndata\ndata:2\n\n", [b"1\n\n2"]),
    ("one leading space", b"data: 1\n\ndata:  2\n\ndata:\t3\n\n", [b"1", b" 2", b"\t3"]),
    ("trailing space and colons", b"data:1 \n\ndata::2\n\ndata: a: b\n\n", [b"1 ", b":2", b"a: b"]),
    ("space before the name", b" data:1\n\n\tdata:2\n\ndata :3\n\ndata:4\n\n", [b"4"]),
    ("names are case-sensitive", b"Data:1\n\nDATA:2\n\ndata:3\n\n", [b"3"]),
    ("unknown fields", b"data:1\nx\ny:z\n:\ndatas:2\nda:3\n\n", [b"1"]),
    ("NUL in an id", b"id:a\0b\ndata:1\n\nid\ndata:2\n\n", [b"1", b"2"]),
    ("NUL in data", b"data:\0\n\n", [b"\0"]),
    ("retry", b"retry:3000\n\nretry:1000x\ndata:1\n\nretry\n\n", [b"1"]),
    ("event", b"event:ping\n\nevent:a\nevent:b\ndata:1\n\ndata:2\n\n", [b"1", b"2"]),
    ("empty data", b"data:\n\ndata: \n\ndata:1\n\n", [b"1"]),
    ("NEL and other Unicode line ends", "data:1\u0085\u2028\v\f2\n\n".encode(), ["1\u0085\u2028\v\f2".encode()]),
    ("incomplete last event", b"data:1\n\ndata:2\n", [b"1"]),
    ("incomplete last line", b"data:1\n\ndata:2", [b"1"]),
]


@pytest.mark.parametrize(
    ("stream", "expected"), [case[1:] for case in STANDARD_CASES], ids=[c[0] for c in STANDARD_CASES]
)
def test_a_stream_is_parsed_as_the_standard_requires_however_it_is_split(stream: bytes, expected: list[bytes]) -> None:
    splits = [[len(stream)], [1] * len(stream)]
    rng = random.Random(len(stream))
    splits += [[rng.randint(0, 5) for _ in range(len(stream))] for _ in range(50)]
    for sizes in splits:
        parser = SseParser()
        events: list[bytes] = []
        position = 0
        for size in [*sizes, len(stream)]:
            events += parser.feed(stream[position : position + size])
            position += size
        assert events == expected, sizes


@pytest.mark.parametrize("line_end", [b"\n", b"\r", b"\r\n"])
def test_an_event_is_returned_at_the_first_byte_of_its_last_line_end(line_end: bytes) -> None:
    parser = SseParser()
    assert parser.feed(b"data:1" + line_end + line_end[:1]) == [b"1"]
    assert parser.feed(line_end[1:] + b"data:2" + line_end * 2) == [b"2"]


def test_finish_returns_a_last_event_that_lacks_its_empty_line() -> None:
    """The standard discards it, but some servers end their stream with `data: [DONE]` and nothing else."""
    for end in (b"", b"\n", b"\r", b"\r\n"):
        parser = SseParser()
        assert parser.feed(b"data:1\n\ndata:2" + end) == [b"1"]
        assert parser.finish() == [b"2"]


@pytest.mark.parametrize("piece", [b"data:x\n\n", b"data:x\n", b"x", b":\r\n", b"\r", b"data\n"])
@pytest.mark.parametrize("read_bytes", [1, 4096])
def test_a_stream_is_parsed_in_linear_time(piece: bytes, read_bytes: int) -> None:
    def parse(stream: bytes) -> None:
        parser = SseParser(max_event_bytes=len(stream))
        for position in range(0, len(stream), read_bytes):
            parser.feed(stream[position : position + read_bytes])

    assert_linear(lambda size: piece * (size // len(piece)), parse, 20_000 if read_bytes == 1 else 400_000)
