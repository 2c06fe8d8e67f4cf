"""Interleaved reasoning is sent back at its position, and an interrupted reply never ends with reasoning."""

import json
from typing import Any

import pytest

from hark.engine.turn.reply import ReplyBuilder
from hark.protocol.messages import AssistantMessage, CallResult, Effect, Message, Reasoning, UserMessage
from hark.protocol.provider import CallChunk, Chunk, EndChunk, ReasoningEnd, Request, TextChunk
from hark.providers.anthropic import provider as anthropic_api
from hark.providers.endpoint import Endpoint
from hark.providers.openai import responses as responses_api
from tests.fakes.models.history_rules import check_anthropic, check_responses

ENDPOINT = Endpoint("http://x/v1", "some-model")
ITEM = '{"type":"reasoning","id":"rs_%d","summary":[],"encrypted_content":"e"}'


def make_interleaved_chunks(*reasoning: Reasoning) -> list[Chunk]:
    first, second, third = reasoning
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


def build_reply(parts: list[Chunk]) -> ReplyBuilder:
    reply = ReplyBuilder()
    for part in parts:
        reply.add(part)
    return reply


def make_history(reply: AssistantMessage) -> list[Message]:
    results = [CallResult(call.id, call.name, "seen", Effect.COMPLETED) for call in reply.calls]
    return [UserMessage("1", "go"), reply, *results, UserMessage("2", "on")]


def encode_for_anthropic(reply: AssistantMessage) -> dict[str, Any]:
    return json.loads(anthropic_api.encode_request(Request("", make_history(reply)), ENDPOINT))


def encode_for_responses(reply: AssistantMessage) -> dict[str, Any]:
    return json.loads(responses_api.encode_request(Request("", make_history(reply)), ENDPOINT))


def test_anthropic_gets_each_piece_of_reasoning_back_at_its_position() -> None:
    parts = make_interleaved_chunks(*(Reasoning(f"t{n}", signature=f"s{n}") for n in range(3)))
    body = encode_for_anthropic(build_reply(parts).finish((), lambda: "new"))
    check_anthropic(body)
    blocks = body["messages"][1]["content"]
    kinds = [block["type"] for block in blocks]
    assert kinds == ["thinking", "text", "thinking", "text", "thinking", "tool_use"]
    assert [block["text"] for block in blocks if block["type"] == "text"] == ["Let me look. ", "Twice."]
    assert [block["signature"] for block in blocks if block["type"] == "thinking"] == ["s0", "s1", "s2"]


def test_responses_gets_each_piece_of_reasoning_back_at_its_position() -> None:
    parts = make_interleaved_chunks(*(Reasoning(data=ITEM % n) for n in range(3)))
    body = encode_for_responses(build_reply(parts).finish((), lambda: "new"))
    check_responses(body)
    kinds = [item["type"] for item in body["input"][1:-1]]
    assert kinds[:6] == ["reasoning", "message", "reasoning", "message", "reasoning", "function_call"]


def test_reasoning_from_another_api_does_not_split_the_text() -> None:
    parts = make_interleaved_chunks(*(Reasoning(data=ITEM % n) for n in range(3)))
    blocks = encode_for_anthropic(build_reply(parts).finish((), lambda: "new"))["messages"][1]["content"]
    assert [block.get("text") for block in blocks] == ["Let me look. Twice.", None]


@pytest.mark.parametrize("shown", [None, 0, 4, 13, 14, 20])
def test_an_interruption_after_any_chunk_leaves_a_valid_history(shown: int | None) -> None:
    signed = make_interleaved_chunks(*(Reasoning(f"t{n}", signature=f"s{n}") for n in range(3)))
    encrypted = make_interleaved_chunks(*(Reasoning(data=ITEM % n) for n in range(3)))
    for count in range(len(signed)):
        partial = build_reply(signed[:count]).partial(shown)
        check_anthropic(encode_for_anthropic(partial))
        assert all(reasoning.behind_characters < len(partial.text) for reasoning in partial.reasoning)
        check_responses(encode_for_responses(build_reply(encrypted[:count]).partial(shown)))
