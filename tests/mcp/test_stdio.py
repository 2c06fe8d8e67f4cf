"""The stdio transport reads complete lines, however the server's writes are split."""

import pytest

from hark.mcp.retry_policy import ServerFailure
from hark.mcp.transports import stdio
from hark.mcp.transports.stdio import LineSplitter


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_lines_do_not_depend_on_how_they_are_split(size: int) -> None:
    data = b'{"id": 1}\n\n{"id": 2}\n{"unfinished"'
    splitter = LineSplitter()
    lines = [line for start in range(0, len(data), size) for line in splitter.feed(data[start : start + size])]
    assert lines == [b'{"id": 1}', b"", b'{"id": 2}']


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "MAX_MESSAGE_BYTES", 10)
    splitter = LineSplitter()
    assert list(splitter.feed(b"12345\n123456")) == [b"12345"]
    with pytest.raises(ServerFailure, match="more than"):
        list(splitter.feed(b"78901"))
