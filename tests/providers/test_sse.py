import pytest

from hark.providers.sse import EventTooLong, SseParser

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
