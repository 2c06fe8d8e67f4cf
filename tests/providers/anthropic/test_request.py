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


def encode_body(request: Request, model: str = "claude-next") -> dict[str, Any]:
    body = json.loads(encode_request(request, Endpoint("https://127.0.0.1/v1", model)))
    check_anthropic(body)
    return body


def encode_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return encode_body(Request("", messages))["messages"]


def make_text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def test_consecutive_user_messages_are_merged_with_results_first() -> None:
    calls = (Call("c1", "look", '{"at": 1}'), Call("c2", "look"))
    first = CallResult("c1", "look", "saw", Effect.COMPLETED)
    second = CallResult("c2", "look", "cut", Effect.UNKNOWN, is_error=True)
    messages = [GO, UserMessage("2", "now"), AssistantMessage("ok ", calls), first, Note("[n]"), second, GO]
    assert encode_messages(messages) == [
        {"role": "user", "content": [make_text_block("go"), make_text_block("now")]},
        {
            "role": "assistant",
            "content": [
                make_text_block("ok"),
                {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": 1}},
                {"type": "tool_use", "id": "c2", "name": "look", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "saw"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "cut", "is_error": True},
                make_text_block("[n]"),
                {**make_text_block("go"), "cache_control": CACHED},
            ],
        },
    ]


def test_signed_reasoning_is_sent_unchanged_before_the_text() -> None:
    reasoning = (Reasoning(" hm\n", "sig"), Reasoning(data="ERED"), Reasoning("unsigned"), Reasoning("", "empty"))
    blocks = encode_messages([GO, AssistantMessage("so", reasoning=reasoning), GO])[1]["content"]
    assert blocks == [
        {"type": "thinking", "thinking": " hm\n", "signature": "sig"},
        {"type": "redacted_thinking", "data": "ERED"},
        {"type": "thinking", "thinking": "", "signature": "empty"},
        make_text_block("so"),
    ]


def test_reasoning_from_another_api_is_not_sent() -> None:
    foreign = Reasoning("hm", data='{"type":"reasoning","id":"rs_1"}')
    assert encode_messages([GO, AssistantMessage("so", reasoning=(foreign,)), GO])[1]["content"] == [
        make_text_block("so")
    ]


@pytest.mark.parametrize("text", ["", " \n"])
def test_a_reply_without_text_and_calls_is_omitted_with_its_reasoning(text: str) -> None:
    messages = encode_messages(
        [GO, AssistantMessage(text, reasoning=(Reasoning("hm", "sig"),)), UserMessage("2", "on")]
    )
    assert messages == [
        {"role": "user", "content": [make_text_block("go"), {**make_text_block("on"), "cache_control": CACHED}]}
    ]


def test_a_call_after_whitespace_text_has_no_text_block() -> None:
    result = CallResult("c", "look", " ", Effect.COMPLETED)
    messages = encode_messages([GO, AssistantMessage("\n", (Call("c", "look"),)), result])
    assert [block["type"] for block in messages[1]["content"]] == ["tool_use"]
    assert messages[2]["content"] == [{"type": "tool_result", "tool_use_id": "c", "cache_control": CACHED}]


def test_an_empty_message_is_sent_as_a_placeholder() -> None:
    (message,) = encode_messages([UserMessage("1", " ")])
    assert message["content"][0]["text"] == "[empty message]"


def test_images_are_sent_as_content_blocks_and_other_files_as_file_names() -> None:
    picture = Attachment("image/png", data="QUJD")
    drawing = Attachment("image/svg+xml", name="a.svg", data="QUJD")
    (message,) = encode_messages([UserMessage("1", "see", "Zoë", (picture, drawing))])
    source = {"type": "base64", "media_type": "image/png", "data": "QUJD"}
    assert message["content"] == [
        {"type": "image", "source": source},
        {**make_text_block("Zoë: see\n[attached: a.svg (image/svg+xml)]"), "cache_control": CACHED},
    ]


def test_an_image_without_text_is_sent_without_a_text_block() -> None:
    (message,) = encode_messages([UserMessage("1", "", attachments=(Attachment("image/png", data="QUJD"),))])
    assert [block["type"] for block in message["content"]] == ["image"]


def test_call_ids_with_invalid_characters_are_replaced_consistently() -> None:
    calls = (Call("functions.look:0", "look"), Call("functions.look:1", "look"))
    results = [CallResult(call.id, "look", "saw", Effect.COMPLETED) for call in calls]
    messages = encode_messages([GO, AssistantMessage("", calls), *results])
    ids = [block["id"] for block in messages[1]["content"]]
    assert [block["tool_use_id"] for block in messages[2]["content"]] == ids
    assert len(set(ids)) == 2


def test_the_system_prompt_is_a_cached_block() -> None:
    assert encode_body(Request("be kind", [GO]))["system"] == [{**make_text_block("be kind"), "cache_control": CACHED}]
    assert "system" not in encode_body(Request(" ", [GO]))


def test_tools_are_sent_with_their_schema() -> None:
    spec = ToolSpec("look", "Look around.", {"type": "object", "properties": {"at": {"type": "string"}}})
    tool = {"name": "look", "description": "Look around.", "input_schema": spec.parameters}
    assert encode_body(Request("", [GO], [spec]))["tools"] == [tool]
    assert "tools" not in encode_body(Request("", [GO]))


@pytest.mark.parametrize(
    ("model", "limit"),
    [
        ("claude-next", 32_000),
        ("claude-3-5-haiku-latest", 8192),
        ("anthropic/claude-3-opus-20240229", 4096),
        ("claude-3-7-sonnet-latest", 32_000),
    ],
)
def test_the_default_token_limit_depends_on_the_model_family(model: str, limit: int) -> None:
    assert encode_body(Request("", [GO]), model)["max_tokens"] == limit
    assert encode_body(Request("", [GO], max_tokens=7), model)["max_tokens"] == 7


def test_an_unpaired_surrogate_is_replaced() -> None:
    (message,) = encode_messages([UserMessage("1", "a\ud83d b")])
    assert message["content"][0]["text"] == "a\ufffd b"


def test_images_returned_by_a_call_are_part_of_its_result() -> None:
    picture = Attachment("image/png", data="QUJD")
    calls = (Call("c1", "see"), Call("c2", "see"), Call("c3", "see"))
    results = [
        CallResult("c1", "see", "a cat", Effect.COMPLETED, attachments=(picture,)),
        CallResult("c2", "see", " ", Effect.COMPLETED, attachments=(picture,)),
        CallResult("c3", "see", "broken", Effect.UNKNOWN, is_error=True, attachments=(picture,)),
    ]
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}
    assert encode_messages([GO, AssistantMessage("", calls), *results])[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": [make_text_block("a cat"), image]},
        {"type": "tool_result", "tool_use_id": "c2", "content": [image]},
        {"type": "tool_result", "tool_use_id": "c3", "content": "broken", "is_error": True, "cache_control": CACHED},
    ]
