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


def read(*pieces: bytes) -> list[bytes]:
    stream = SseParser()
    events = [event for piece in pieces for event in stream.feed(piece)]
    return events + stream.finish()


def test_an_event_is_its_data_lines() -> None:
    assert read(STREAM) == EVENTS


def test_a_split_at_any_two_places_changes_nothing() -> None:
    for first in range(len(STREAM) + 1):
        for second in range(first, len(STREAM) + 1):
            assert read(STREAM[:first], STREAM[first:second], STREAM[second:]) == EVENTS


def test_a_stream_that_comes_byte_by_byte_is_the_same() -> None:
    assert read(*(bytes([byte]) for byte in STREAM)) == EVENTS


def test_an_event_comes_out_as_soon_as_its_blank_line_is_there() -> None:
    stream = SseParser()
    assert stream.feed(b"data: now\n") == []
    assert stream.feed(b"\n") == [b"now"]


def test_a_comment_yields_nothing_and_breaks_nothing() -> None:
    stream = SseParser()
    assert stream.feed(b": ping\n\n") == []
    assert stream.feed(b"data: a\n: ping\ndata: b\n\n") == [b"a\nb"]


def test_a_stream_that_ended_well_has_nothing_left() -> None:
    stream = SseParser()
    assert stream.feed(b"data: all\n\n") == [b"all"]
    assert stream.finish() == []


def feed_often(piece: bytes) -> None:
    stream = SseParser(max_event_bytes=1000)
    for _ in range(20):
        assert stream.feed(piece) == []


@pytest.mark.parametrize("piece", [b"x" * 100, b"data: " + b"x" * 100, b"data:\n" * 20, b"data: x\n" * 20])
def test_an_event_without_end_does_not_eat_the_memory(piece: bytes) -> None:
    with pytest.raises(EventTooLong):
        feed_often(piece)


def test_many_events_are_not_too_long_together() -> None:
    assert len(SseParser(max_event_bytes=1000).feed(b"data: fine\n\n" * 500)) == 500
