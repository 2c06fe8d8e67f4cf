import asyncio

import pytest

from hark.protocol.messages import UserMessage
from hark.protocol.provider import CallChunk, Chunk, EndChunk, ProviderError, Request, TextChunk, TransientProviderError
from hark.providers.scripted import Fail, Hang, Pause, ScriptedProvider

REQUEST = Request("be brief", [UserMessage("1", "hi")])


async def reply(provider: ScriptedProvider, request: Request = REQUEST) -> list[Chunk]:
    return [chunk async for chunk in provider.stream(request)]


async def test_each_request_gets_the_next_reply_and_is_kept() -> None:
    provider = ScriptedProvider([["one"], [TextChunk("two")]])
    other = Request("", [])
    assert await reply(provider) == [TextChunk("one"), EndChunk("stop")]
    assert await reply(provider, other) == [TextChunk("two"), EndChunk("stop")]
    assert provider.requests == [REQUEST, other]


async def test_a_reply_with_calls_ends_for_them() -> None:
    call = CallChunk(0, "c1", "look", "{}")
    assert await reply(ScriptedProvider([["so", call]])) == [TextChunk("so"), call, EndChunk("calls")]


async def test_a_scripted_end_is_the_only_one() -> None:
    assert await reply(ScriptedProvider([["cut", EndChunk("length")]])) == [TextChunk("cut"), EndChunk("length")]


async def test_a_script_that_ran_out_says_so() -> None:
    with pytest.raises(ProviderError, match="0 replies and this is request 1") as raised:
        await reply(ScriptedProvider([]))
    assert raised.value.code == "script_ended"


async def test_a_reply_can_be_made_of_its_request() -> None:
    provider = ScriptedProvider([lambda request: [request.system]])
    assert await reply(provider) == [TextChunk("be brief"), EndChunk("stop")]


async def test_a_failing_step_raises_after_what_came_before_it() -> None:
    stream = ScriptedProvider([["half", Fail(TransientProviderError("gone"))]]).stream(REQUEST)
    assert await anext(stream) == TextChunk("half")
    with pytest.raises(TransientProviderError, match="gone"):
        await anext(stream)


async def test_a_pause_takes_its_time() -> None:
    start = asyncio.get_running_loop().time()
    await reply(ScriptedProvider([[Pause(0.02)]]))
    assert asyncio.get_running_loop().time() - start >= 0.02


async def test_a_hang_tells_when_it_is_reached_and_when_it_is_cut() -> None:
    hang = Hang()
    task = asyncio.create_task(reply(ScriptedProvider([["a", hang]])))
    await hang.reached.wait()
    assert not hang.closed.is_set()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert hang.closed.is_set()
