"""Streams that rest: each has its turn, one at a time, and a stop takes nobody's turn away."""

import asyncio

import pytest

from hark.protocol.provider import AliveChunk, TextChunk
from hark.providers import http_provider
from hark.providers.http_provider import ReadThrottle, joined


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two streams are many."""
    monkeypatch.setattr(http_provider, "FREE_STREAMS", 0)
    monkeypatch.setattr(http_provider, "LEAST_SECONDS", 0.0)


async def test_few_streams_never_rest() -> None:
    some = ReadThrottle()
    with some.stream():
        assert some.seconds == 0


@pytest.mark.usefixtures("many")
async def test_streams_that_are_due_together_are_woken_one_by_one_with_others_in_between() -> None:
    crowd = ReadThrottle()
    woken: list[str] = []

    async def stream(name: str) -> None:
        with crowd.stream():
            await crowd.rest()
            woken.append(name)
            asyncio.get_running_loop().call_soon(woken.append, "other")

    await asyncio.gather(*(stream(name) for name in "abc"))
    assert "".join(name for name in woken if name != "other") == "abc"
    assert woken[:5] == ["a", "other", "b", "other", "c"]
    assert crowd.seconds == 0


@pytest.mark.usefixtures("many")
async def test_a_stream_that_is_stopped_while_it_rests_holds_nobody_up() -> None:
    crowd = ReadThrottle()

    async def stream() -> None:
        with crowd.stream():
            await crowd.rest()

    first, second = asyncio.create_task(stream()), asyncio.create_task(stream())
    await asyncio.sleep(0)
    first.cancel()
    await second
    assert first.cancelled()
    await stream()  # and the next ones have their turns as well


def test_neighbouring_texts_are_put_together() -> None:
    chunks = [TextChunk("a"), TextChunk("b"), AliveChunk(), TextChunk("c")]
    assert joined(chunks) == [TextChunk("ab"), AliveChunk(), TextChunk("c")]
