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
from hark.providers.endpoint import Endpoint
from hark.providers.openai.responses import encode_request
from tests.fakes.models.history_rules import check_responses

GO = UserMessage("1", "go")
ITEM: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xyz"}
REASONING = Reasoning("hm", data=json.dumps(ITEM))


def encode_body(request: Request, model: str = "gpt-next", stream: bool = True) -> dict[str, Any]:
    body = json.loads(encode_request(request, Endpoint("https://127.0.0.1/v1", model, stream=stream)))
    check_responses(body)
    return body


def encode_input(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return encode_body(Request("", messages))["input"]


def make_message_item(role: str, content: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": content}


def test_items_are_encoded_in_order_with_reasoning_before_the_text() -> None:
    result = CallResult("c1", "look", "saw", Effect.COMPLETED)
    reply = AssistantMessage("ok", (Call("c1", "look", '{"at": 1}'),), (REASONING,))
    assert encode_input([GO, reply, result, Note("[n]"), AssistantMessage("half", is_partial=True), GO]) == [
        make_message_item("user", "go"),
        ITEM,
        make_message_item("assistant", "ok"),
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at": 1}'},
        {"type": "function_call_output", "call_id": "c1", "output": "saw"},
        make_message_item("user", "[n]"),
        make_message_item("assistant", "half"),
        make_message_item("user", "go"),
    ]


def test_a_reply_with_only_reasoning_is_omitted() -> None:
    assert encode_input([GO, AssistantMessage(reasoning=(REASONING,)), GO]) == [make_message_item("user", "go")] * 2


@pytest.mark.parametrize(
    "reasoning", [Reasoning("hm", "sig"), Reasoning(data="EREDACTED"), Reasoning(data='{"id": 1}')]
)
def test_reasoning_from_another_api_is_not_sent(reasoning: Reasoning) -> None:
    assert encode_input([GO, AssistantMessage("so", reasoning=(reasoning,))])[1:] == [
        make_message_item("assistant", "so")
    ]


def test_images_are_sent_as_content_parts_and_other_files_as_file_names() -> None:
    picture = Attachment("image/png", data="QUJD")
    file = Attachment("text/plain", name="a.txt", path="/files/a.txt")
    (message,) = encode_input([UserMessage("1", "see", "Zoë", (picture, file))])
    assert message["content"] == [
        {"type": "input_text", "text": "Zoë: see\n[attached: a.txt (text/plain) at /files/a.txt]"},
        {"type": "input_image", "image_url": "data:image/png;base64,QUJD", "detail": "auto"},
    ]


def test_an_image_without_text_has_no_text_part() -> None:
    (message,) = encode_input([UserMessage("1", "", attachments=(Attachment("image/png", data="QUJD"),))])
    assert [part["type"] for part in message["content"]] == ["input_image"]


def test_the_server_is_asked_to_store_nothing_and_to_send_encrypted_reasoning() -> None:
    body = encode_body(Request("be kind", [GO], max_tokens=70))
    assert (body["store"], body["include"]) == (False, ["reasoning.encrypted_content"])
    assert (body["instructions"], body["max_output_tokens"], body["stream"]) == ("be kind", 70, True)
    plain = encode_body(Request("", [GO]), stream=False)
    assert plain["stream"] is False
    assert not {"instructions", "max_output_tokens", "tools"} & plain.keys()


@pytest.mark.parametrize("model", ["gpt-4o", "openai/gpt-4.1-mini", "chatgpt-4o-latest"])
def test_a_model_without_reasoning_is_not_asked_for_encrypted_reasoning(model: str) -> None:
    assert "include" not in encode_body(Request("", [GO]), model)


def test_tools_are_sent_without_strict_mode() -> None:
    spec = ToolSpec("look", "Look around.", {"type": "object", "properties": {"at": {"type": "string"}}})
    (tool,) = encode_body(Request("", [GO], [spec]))["tools"]
    expected = {"name": "look", "description": "Look around.", "parameters": spec.parameters}
    assert tool == {"type": "function", **expected, "strict": False}


def test_images_returned_by_a_call_are_part_of_its_output() -> None:
    picture = Attachment("image/png", data="QUJD")
    result = CallResult("c1", "see", "a cat", Effect.COMPLETED, attachments=(picture,))
    assert encode_input([GO, AssistantMessage("", (Call("c1", "see"),)), result])[-1] == {
        "type": "function_call_output",
        "call_id": "c1",
        "output": [
            {"type": "input_text", "text": "a cat"},
            {"type": "input_image", "image_url": "data:image/png;base64,QUJD", "detail": "auto"},
        ],
    }
