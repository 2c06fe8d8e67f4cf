"""An interrupted reply leaves a history that every vendor accepts, whichever API produced it."""

from collections.abc import Iterator, Sequence

import pytest

from hark.engine.turn.reply import ReplyBuilder
from hark.protocol.messages import AssistantMessage, CallResult, Effect, Message, Note, UserMessage
from hark.protocol.provider import Chunk, Request
from tests.fakes.models.behaviours import text, thinking
from tests.providers.provider_fixture import APIS, Api, collect_reply, collect_reply_to, each_api, open_provider

GO = UserMessage("1", "go")
ON = [Note("[This turn was interrupted: user.]"), UserMessage("2", "go on")]
SHOWN_CHARACTERS = (None, 0, 1, 7)


def make_partial_replies(chunks: Sequence[Chunk]) -> Iterator[AssistantMessage]:
    """Yield the replies that can be stored: interrupted after each chunk with different amounts shown, and complete."""
    for count in range(len(chunks)):
        reply = ReplyBuilder()
        for chunk in chunks[:count]:
            reply.add(chunk)
        for shown in SHOWN_CHARACTERS:
            yield reply.partial(shown)
    reply = ReplyBuilder()
    for chunk in chunks:
        reply.add(chunk)
    yield reply.finish((), lambda: "new")


def make_history(reply: AssistantMessage) -> list[Message]:
    results = [CallResult(call.id, call.name, "[not started]", Effect.NOT_STARTED, True) for call in reply.calls]
    return [GO, reply, *results, *ON]


@each_api
@pytest.mark.parametrize("next_api", APIS)
async def test_an_interruption_after_any_chunk_leaves_a_history_that_all_vendors_accept(
    api: Api, next_api: Api
) -> None:
    chunks = (await collect_reply_to(thinking(2), api=api)).chunks
    replies = list(make_partial_replies(chunks))
    assert len(replies) > 4 * len(SHOWN_CHARACTERS)
    assert len(replies[-1].calls) == 2
    async with open_provider(next_api, *[text(["ok"])] * len(replies)) as (provider, _):
        for reply in replies:
            collected = await collect_reply(provider, Request("be brief", make_history(reply)))
            assert collected.error is None, (reply, collected.error)


@each_api
async def test_many_interruptions_in_one_conversation_leave_a_history_that_all_vendors_accept(api: Api) -> None:
    messages: list[Message] = []
    for _ in range(3):
        for reply in make_partial_replies((await collect_reply_to(thinking(2), api=api)).chunks):
            messages += make_history(reply)
    async with open_provider(api, text(["ok"])) as (provider, _):
        assert (await collect_reply(provider, Request("", messages))).error is None


@each_api
async def test_only_complete_reasoning_is_sent_back(api: Api) -> None:
    chunks = (await collect_reply_to(thinking(0), api=api)).chunks
    replies = list(make_partial_replies(chunks))
    async with open_provider(api, *[text(["ok"])] * len(replies)) as (provider, server):
        for reply in replies:
            await collect_reply(provider, Request("", make_history(reply)))
    has_reasoning = ["signature" in str(seen.body) for seen in server.requests]
    assert has_reasoning == [bool(reply.reasoning) for reply in replies]
    assert has_reasoning[-1] is (api is not APIS[0])
