"""Throttled streams are resumed one at a time, and a cancelled stream doesn't delay the others."""

import asyncio

import pytest

from hark.protocol.provider import KeepAliveChunk, TextChunk
from hark.providers import http_provider
from hark.providers.http_provider import ReadThrottle, merge_text_chunks


@pytest.fixture
def always_throttled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Throttle all streams, including the first one."""
    monkeypatch.setattr(http_provider, "UNTHROTTLED_STREAMS", 0)
    monkeypatch.setattr(http_provider, "MIN_PAUSE_SECONDS", 0.0)


async def test_few_streams_are_not_throttled() -> None:
    throttle = ReadThrottle()
    with throttle.count_stream():
        assert throttle.pause_seconds == 0


@pytest.mark.usefixtures("always_throttled")
async def test_streams_that_are_due_together_are_resumed_one_per_loop_iteration() -> None:
    throttle = ReadThrottle()
    resumed: list[str] = []

    async def stream(name: str) -> None:
        with throttle.count_stream():
            await throttle.wait()
            resumed.append(name)
            asyncio.get_running_loop().call_soon(resumed.append, "other")

    await asyncio.gather(*(stream(name) for name in "abc"))
    assert "".join(name for name in resumed if name != "other") == "abc"
    assert resumed[:5] == ["a", "other", "b", "other", "c"]
    assert throttle.pause_seconds == 0


@pytest.mark.usefixtures("always_throttled")
async def test_a_stream_cancelled_during_its_pause_does_not_delay_others() -> None:
    throttle = ReadThrottle()

    async def stream() -> None:
        with throttle.count_stream():
            await throttle.wait()

    first, second = asyncio.create_task(stream()), asyncio.create_task(stream())
    await asyncio.sleep(0)
    first.cancel()
    await second
    assert first.cancelled()
    await stream()  # later streams are resumed as well


def test_neighbouring_text_chunks_are_merged() -> None:
    chunks = [TextChunk("a"), TextChunk("b"), KeepAliveChunk(), TextChunk("c")]
    assert merge_text_chunks(chunks) == [TextChunk("ab"), KeepAliveChunk(), TextChunk("c")]
