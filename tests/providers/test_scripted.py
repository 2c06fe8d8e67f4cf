import asyncio

import pytest

from hark.protocol.messages import UserMessage
from hark.protocol.provider import CallChunk, Chunk, EndChunk, ProviderError, Request, TextChunk, TransientProviderError
from hark.providers.scripted import Fail, Hang, Pause, ScriptedProvider

REQUEST = Request("be brief", [UserMessage("1", "hi")])


async def collect_chunks(provider: ScriptedProvider, request: Request = REQUEST) -> list[Chunk]:
    return [chunk async for chunk in provider.stream(request)]


async def test_each_request_gets_the_next_reply_and_is_recorded() -> None:
    provider = ScriptedProvider([["one"], [TextChunk("two")]])
    other = Request("", [])
    assert await collect_chunks(provider) == [TextChunk("one"), EndChunk("stop")]
    assert await collect_chunks(provider, other) == [TextChunk("two"), EndChunk("stop")]
    assert provider.requests == [REQUEST, other]


async def test_a_reply_with_calls_has_the_end_reason_calls() -> None:
    call = CallChunk(0, "c1", "look", "{}")
    assert await collect_chunks(ScriptedProvider([["so", call]])) == [TextChunk("so"), call, EndChunk("calls")]


async def test_no_end_chunk_is_added_to_a_scripted_reply_that_has_one() -> None:
    assert await collect_chunks(ScriptedProvider([["cut", EndChunk("length")]])) == [
        TextChunk("cut"),
        EndChunk("length"),
    ]


async def test_a_request_after_the_last_scripted_reply_raises_an_error() -> None:
    with pytest.raises(ProviderError, match="0 replies, but this is request 1") as raised:
        await collect_chunks(ScriptedProvider([]))
    assert raised.value.code == "script_ended"


async def test_a_reply_can_be_computed_from_its_request() -> None:
    provider = ScriptedProvider([lambda request: [request.system]])
    assert await collect_chunks(provider) == [TextChunk("be brief"), EndChunk("stop")]


async def test_a_scripted_failure_is_raised_after_the_earlier_chunks() -> None:
    stream = ScriptedProvider([["half", Fail(TransientProviderError("gone"))]]).stream(REQUEST)
    assert await anext(stream) == TextChunk("half")
    with pytest.raises(TransientProviderError, match="gone"):
        await anext(stream)


async def test_a_scripted_pause_takes_the_given_time() -> None:
    start = asyncio.get_running_loop().time()
    await collect_chunks(ScriptedProvider([[Pause(0.02)]]))
    assert asyncio.get_running_loop().time() - start >= 0.02


async def test_a_scripted_hang_sets_its_events_when_reached_and_when_cancelled() -> None:
    hang = Hang()
    task = asyncio.create_task(collect_chunks(ScriptedProvider([["a", hang]])))
    await hang.reached.wait()
    assert not hang.closed.is_set()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert hang.closed.is_set()
