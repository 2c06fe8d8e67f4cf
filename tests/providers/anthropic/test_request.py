import json
from collections.abc import Sequence
from typing import Any

import pytest

from hark.protocol.messages import (
    AssistantMessage,
    Attachment,
    Call,
    CallResult,
    Effect,
    Message,
    Note,
    Reasoning,
    UserMessage,
)
from hark.protocol.provider import Request
from hark.protocol.tool import ToolSpec
from hark.providers.anthropic.provider import encode_request
from hark.providers.endpoint import Endpoint
from tests.fakes.models.history_rules import check_anthropic

ENDPOINT = Endpoint("https://127.0.0.1/v1", "claude-next")
CACHED = {"type": "ephemeral"}
GO = UserMessage("1", "go")


def body_of(request: Request, model: str = "claude-next") -> dict[str, Any]:
    body = json.loads(encode_request(request, Endpoint("https://127.0.0.1/v1", model)))
    check_anthropic(body)
    return body


def wire(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return body_of(Request("", messages))["messages"]


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def test_neighbours_of_one_side_are_one_message_with_the_results_first() -> None:
    calls = (Call("c1", "look", '{"at": 1}'), Call("c2", "look"))
    first = CallResult("c1", "look", "saw", Effect.COMPLETED)
    second = CallResult("c2", "look", "cut", Effect.UNKNOWN, is_error=True)
    messages = [GO, UserMessage("2", "now"), AssistantMessage("ok ", calls), first, Note("[n]"), second, GO]
    assert wire(messages) == [
        {"role": "user", "content": [words("go"), words("now")]},
        {
            "role": "assistant",
            "content": [
                words("ok"),
                {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": 1}},
                {"type": "tool_use", "id": "c2", "name": "look", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "saw"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "cut", "is_error": True},
                words("[n]"),
                {**words("go"), "cache_control": CACHED},
            ],
        },
    ]


def test_signed_thinking_stands_unchanged_before_what_it_led_to() -> None:
    thoughts = (Reasoning(" hm\n", "sig"), Reasoning(data="ERED"), Reasoning("unsigned"), Reasoning("", "empty"))
    blocks = wire([GO, AssistantMessage("so", reasoning=thoughts), GO])[1]["content"]
    assert blocks == [
        {"type": "thinking", "thinking": " hm\n", "signature": "sig"},
        {"type": "redacted_thinking", "data": "ERED"},
        {"type": "thinking", "thinking": "", "signature": "empty"},
        words("so"),
    ]


def test_thinking_of_another_api_is_not_sent() -> None:
    foreign = Reasoning("hm", data='{"type":"reasoning","id":"rs_1"}')
    assert wire([GO, AssistantMessage("so", reasoning=(foreign,)), GO])[1]["content"] == [words("so")]


@pytest.mark.parametrize("text", ["", " \n"])
def test_a_reply_that_says_nothing_is_left_out_with_its_thinking(text: str) -> None:
    messages = wire([GO, AssistantMessage(text, reasoning=(Reasoning("hm", "sig"),)), UserMessage("2", "on")])
    assert messages == [{"role": "user", "content": [words("go"), {**words("on"), "cache_control": CACHED}]}]


def test_a_call_behind_blank_words_has_no_text_block() -> None:
    result = CallResult("c", "look", " ", Effect.COMPLETED)
    messages = wire([GO, AssistantMessage("\n", (Call("c", "look"),)), result])
    assert [block["type"] for block in messages[1]["content"]] == ["tool_use"]
    assert messages[2]["content"] == [{"type": "tool_result", "tool_use_id": "c", "cache_control": CACHED}]


def test_a_message_without_words_is_still_one() -> None:
    (message,) = wire([UserMessage("1", " ")])
    assert message["content"][0]["text"] == "[a message without words]"


def test_pictures_are_blocks_and_other_files_are_named() -> None:
    picture = Attachment("image/png", data="QUJD")
    drawing = Attachment("image/svg+xml", name="a.svg", data="QUJD")
    (message,) = wire([UserMessage("1", "see", "Zoë", (picture, drawing))])
    source = {"type": "base64", "media_type": "image/png", "data": "QUJD"}
    assert message["content"] == [
        {"type": "image", "source": source},
        {**words("Zoë: see\n[attached: a.svg (image/svg+xml)]"), "cache_control": CACHED},
    ]


def test_a_picture_without_words_stands_alone() -> None:
    (message,) = wire([UserMessage("1", "", attachments=(Attachment("image/png", data="QUJD"),))])
    assert [block["type"] for block in message["content"]] == ["image"]


def test_the_id_of_another_servers_call_is_put_into_letters_that_are_taken() -> None:
    calls = (Call("functions.look:0", "look"), Call("functions.look:1", "look"))
    results = [CallResult(call.id, "look", "saw", Effect.COMPLETED) for call in calls]
    messages = wire([GO, AssistantMessage("", calls), *results])
    ids = [block["id"] for block in messages[1]["content"]]
    assert [block["tool_use_id"] for block in messages[2]["content"]] == ids
    assert len(set(ids)) == 2


def test_the_system_prompt_is_a_block_that_is_cached() -> None:
    assert body_of(Request("be kind", [GO]))["system"] == [{**words("be kind"), "cache_control": CACHED}]
    assert "system" not in body_of(Request(" ", [GO]))


def test_tools_are_told() -> None:
    spec = ToolSpec("look", "Look around.", {"type": "object", "properties": {"at": {"type": "string"}}})
    tool = {"name": "look", "description": "Look around.", "input_schema": spec.parameters}
    assert body_of(Request("", [GO], [spec]))["tools"] == [tool]
    assert "tools" not in body_of(Request("", [GO]))


@pytest.mark.parametrize(
    ("model", "limit"),
    [
        ("claude-next", 32_000),
        ("claude-3-5-haiku-latest", 8192),
        ("anthropic/claude-3-opus-20240229", 4096),
        ("claude-3-7-sonnet-latest", 32_000),
    ],
)
def test_the_limit_is_the_familys_unless_the_request_has_one(model: str, limit: int) -> None:
    assert body_of(Request("", [GO]), model)["max_tokens"] == limit
    assert body_of(Request("", [GO], max_tokens=7), model)["max_tokens"] == 7


def test_half_a_surrogate_pair_is_replaced() -> None:
    (message,) = wire([UserMessage("1", "a\ud83d b")])
    assert message["content"][0]["text"] == "a\ufffd b"


def test_a_picture_that_a_call_returned_is_in_its_result() -> None:
    picture = Attachment("image/png", data="QUJD")
    calls = (Call("c1", "see"), Call("c2", "see"), Call("c3", "see"))
    results = [
        CallResult("c1", "see", "a cat", Effect.COMPLETED, attachments=(picture,)),
        CallResult("c2", "see", " ", Effect.COMPLETED, attachments=(picture,)),
        CallResult("c3", "see", "broken", Effect.UNKNOWN, is_error=True, attachments=(picture,)),
    ]
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}
    assert wire([GO, AssistantMessage("", calls), *results])[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": [words("a cat"), image]},
        {"type": "tool_result", "tool_use_id": "c2", "content": [image]},
        {"type": "tool_result", "tool_use_id": "c3", "content": "broken", "is_error": True, "cache_control": CACHED},
    ]
