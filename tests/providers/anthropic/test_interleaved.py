"""Thinking between text and calls goes back in its place, and a cut leaves no thought without what it led to."""

import json
from typing import Any

import pytest

from hark.engine.turn.reply import Reply
from hark.protocol.messages import AssistantMessage, CallResult, Effect, Message, Reasoning, UserMessage
from hark.protocol.provider import CallChunk, Chunk, EndChunk, ReasoningEnd, Request, TextChunk
from hark.providers.anthropic import provider as anthropic_api
from hark.providers.endpoint import Endpoint
from hark.providers.openai import responses as responses_api
from tests.fakes.models.history_rules import check_anthropic, check_responses

ENDPOINT = Endpoint("http://x/v1", "some-model")
ITEM = '{"type":"reasoning","id":"rs_%d","summary":[],"encrypted_content":"e"}'


def chunks(*thoughts: Reasoning) -> list[Chunk]:
    first, second, third = thoughts
    return [
        ReasoningEnd(first),
        TextChunk("Let me "),
        TextChunk("look. "),
        ReasoningEnd(second),
        TextChunk("Twice. "),
        ReasoningEnd(third),
        CallChunk(0, "c1", "look", "{}"),
        EndChunk("calls"),
    ]


def folded(parts: list[Chunk]) -> Reply:
    reply = Reply()
    for part in parts:
        reply.add(part)
    return reply


def history(reply: AssistantMessage) -> list[Message]:
    results = [CallResult(call.id, call.name, "seen", Effect.COMPLETED) for call in reply.calls]
    return [UserMessage("1", "go"), reply, *results, UserMessage("2", "on")]


def anthropic(reply: AssistantMessage) -> dict[str, Any]:
    return json.loads(anthropic_api.encode_request(Request("", history(reply)), ENDPOINT))


def responses(reply: AssistantMessage) -> dict[str, Any]:
    return json.loads(responses_api.encode_request(Request("", history(reply)), ENDPOINT))


def test_anthropic_gets_each_thought_back_in_its_place() -> None:
    parts = chunks(*(Reasoning(f"t{n}", signature=f"s{n}") for n in range(3)))
    body = anthropic(folded(parts).whole((), lambda: "new"))
    check_anthropic(body)
    blocks = body["messages"][1]["content"]
    kinds = [block["type"] for block in blocks]
    assert kinds == ["thinking", "text", "thinking", "text", "thinking", "tool_use"]
    assert [block["text"] for block in blocks if block["type"] == "text"] == ["Let me look. ", "Twice."]
    assert [block["signature"] for block in blocks if block["type"] == "thinking"] == ["s0", "s1", "s2"]


def test_responses_gets_each_thought_back_in_its_place() -> None:
    parts = chunks(*(Reasoning(data=ITEM % n) for n in range(3)))
    body = responses(folded(parts).whole((), lambda: "new"))
    check_responses(body)
    kinds = [item["type"] for item in body["input"][1:-1]]
    assert kinds[:6] == ["reasoning", "message", "reasoning", "message", "reasoning", "function_call"]


def test_thoughts_of_another_api_leave_the_text_whole() -> None:
    parts = chunks(*(Reasoning(data=ITEM % n) for n in range(3)))
    blocks = anthropic(folded(parts).whole((), lambda: "new"))["messages"][1]["content"]
    assert [block.get("text") for block in blocks] == ["Let me look. Twice.", None]


@pytest.mark.parametrize("shown", [None, 0, 4, 13, 14, 20])
def test_a_cut_at_every_chunk_leaves_a_valid_history(shown: int | None) -> None:
    signed = chunks(*(Reasoning(f"t{n}", signature=f"s{n}") for n in range(3)))
    kept = chunks(*(Reasoning(data=ITEM % n) for n in range(3)))
    for count in range(len(signed)):
        partial = folded(signed[:count]).partial(shown)
        check_anthropic(anthropic(partial))
        assert all(thought.behind_characters < len(partial.text) for thought in partial.reasoning)
        check_responses(responses(folded(kept[:count]).partial(shown)))
