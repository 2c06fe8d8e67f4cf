"""A reply that is cut at any chunk leaves a history that every vendor takes, whichever one made it."""

from collections.abc import Iterator, Sequence

import pytest

from hark.engine.turn.reply import Reply
from hark.protocol.messages import AssistantMessage, CallResult, Effect, Message, Note, UserMessage
from hark.protocol.provider import Chunk, Request
from tests.fakes.models.behaviours import text, thinking
from tests.providers.provider_fixture import APIS, Api, each_api, hear, hear_one, talk

GO = UserMessage("1", "go")
ON = [Note("[This turn was interrupted: user.]"), UserMessage("2", "go on")]
CUT_TEXTS = (None, 0, 1, 7)


def replies(chunks: Sequence[Chunk]) -> Iterator[AssistantMessage]:
    """Yield what the engine keeps of the reply: cut behind each chunk, with less of it shown, and whole."""
    for count in range(len(chunks)):
        reply = Reply()
        for chunk in chunks[:count]:
            reply.add(chunk)
        for shown in CUT_TEXTS:
            yield reply.partial(shown)
    reply = Reply()
    for chunk in chunks:
        reply.add(chunk)
    yield reply.whole((), lambda: "new")


def history(reply: AssistantMessage) -> list[Message]:
    results = [CallResult(call.id, call.name, "[not started]", Effect.NOT_STARTED, True) for call in reply.calls]
    return [GO, reply, *results, *ON]


@each_api
@pytest.mark.parametrize("next_api", APIS)
async def test_a_cut_at_every_chunk_leaves_a_request_that_is_accepted(api: Api, next_api: Api) -> None:
    chunks = (await hear_one(thinking(2), api=api)).chunks
    kept = list(replies(chunks))
    assert len(kept) > 4 * len(CUT_TEXTS)
    assert len(kept[-1].calls) == 2
    async with talk(next_api, *[text(["ok"])] * len(kept)) as (provider, _):
        for reply in kept:
            heard = await hear(provider, Request("be brief", history(reply)))
            assert heard.error is None, (reply, heard.error)


@each_api
async def test_many_cuts_in_one_conversation_leave_a_request_that_is_accepted(api: Api) -> None:
    messages: list[Message] = []
    for _ in range(3):
        for reply in replies((await hear_one(thinking(2), api=api)).chunks):
            messages += history(reply)
    async with talk(api, text(["ok"])) as (provider, _):
        assert (await hear(provider, Request("", messages))).error is None


@each_api
async def test_finished_thinking_is_sent_back_as_it_came_and_unfinished_is_not(api: Api) -> None:
    chunks = (await hear_one(thinking(0), api=api)).chunks
    kept = list(replies(chunks))
    async with talk(api, *[text(["ok"])] * len(kept)) as (provider, server):
        for reply in kept:
            await hear(provider, Request("", history(reply)))
    has_thought = ["signature" in str(seen.body) for seen in server.requests]
    assert has_thought == [bool(reply.reasoning) for reply in kept]
    assert has_thought[-1] is (api is not APIS[0])
