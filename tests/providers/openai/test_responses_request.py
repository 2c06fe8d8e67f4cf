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
THOUGHT = Reasoning("hm", data=json.dumps(ITEM))


def body_of(request: Request, model: str = "gpt-next", stream: bool = True) -> dict[str, Any]:
    body = json.loads(encode_request(request, Endpoint("https://127.0.0.1/v1", model, stream=stream)))
    check_responses(body)
    return body


def wire(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return body_of(Request("", messages))["input"]


def says(role: str, content: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": content}


def test_a_conversation_keeps_its_order_with_reasoning_before_what_it_led_to() -> None:
    result = CallResult("c1", "look", "saw", Effect.COMPLETED)
    asked = AssistantMessage("ok", (Call("c1", "look", '{"at": 1}'),), (THOUGHT,))
    assert wire([GO, asked, result, Note("[n]"), AssistantMessage("half", is_partial=True), GO]) == [
        says("user", "go"),
        ITEM,
        says("assistant", "ok"),
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at": 1}'},
        {"type": "function_call_output", "call_id": "c1", "output": "saw"},
        says("user", "[n]"),
        says("assistant", "half"),
        says("user", "go"),
    ]


def test_reasoning_alone_is_left_out() -> None:
    assert wire([GO, AssistantMessage(reasoning=(THOUGHT,)), GO]) == [says("user", "go")] * 2


@pytest.mark.parametrize("thought", [Reasoning("hm", "sig"), Reasoning(data="EREDACTED"), Reasoning(data='{"id": 1}')])
def test_thinking_of_another_api_is_not_sent(thought: Reasoning) -> None:
    assert wire([GO, AssistantMessage("so", reasoning=(thought,))])[1:] == [says("assistant", "so")]


def test_pictures_are_parts_and_other_files_are_named() -> None:
    picture = Attachment("image/png", data="QUJD")
    file = Attachment("text/plain", name="a.txt", path="/files/a.txt")
    (message,) = wire([UserMessage("1", "see", "Zoë", (picture, file))])
    assert message["content"] == [
        {"type": "input_text", "text": "Zoë: see\n[attached: a.txt (text/plain) at /files/a.txt]"},
        {"type": "input_image", "image_url": "data:image/png;base64,QUJD", "detail": "auto"},
    ]


def test_a_picture_without_words_has_no_text_part() -> None:
    (message,) = wire([UserMessage("1", "", attachments=(Attachment("image/png", data="QUJD"),))])
    assert [part["type"] for part in message["content"]] == ["input_image"]


def test_nothing_stays_with_the_server_and_reasoning_is_asked_for() -> None:
    body = body_of(Request("be kind", [GO], max_tokens=70))
    assert (body["store"], body["include"]) == (False, ["reasoning.encrypted_content"])
    assert (body["instructions"], body["max_output_tokens"], body["stream"]) == ("be kind", 70, True)
    plain = body_of(Request("", [GO]), stream=False)
    assert plain["stream"] is False
    assert not {"instructions", "max_output_tokens", "tools"} & plain.keys()


@pytest.mark.parametrize("model", ["gpt-4o", "openai/gpt-4.1-mini", "chatgpt-4o-latest"])
def test_a_model_that_can_not_reason_is_not_asked_for_it(model: str) -> None:
    assert "include" not in body_of(Request("", [GO]), model)


def test_tools_are_told_and_not_strict() -> None:
    spec = ToolSpec("look", "Look around.", {"type": "object", "properties": {"at": {"type": "string"}}})
    (tool,) = body_of(Request("", [GO], [spec]))["tools"]
    told = {"name": "look", "description": "Look around.", "parameters": spec.parameters}
    assert tool == {"type": "function", **told, "strict": False}


def test_a_picture_that_a_call_returned_is_in_its_output() -> None:
    picture = Attachment("image/png", data="QUJD")
    result = CallResult("c1", "see", "a cat", Effect.COMPLETED, attachments=(picture,))
    assert wire([GO, AssistantMessage("", (Call("c1", "see"),)), result])[-1] == {
        "type": "function_call_output",
        "call_id": "c1",
        "output": [
            {"type": "input_text", "text": "a cat"},
            {"type": "input_image", "image_url": "data:image/png;base64,QUJD", "detail": "auto"},
        ],
    }
