import json
from collections.abc import Sequence
from typing import Any

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
from hark.providers.openai.chat import encode_request
from tests.fakes.models.history_rules import check_openai_chat

ENDPOINT = Endpoint("http://127.0.0.1/v1", "small")


def encode_messages(messages: Sequence[Message], system: str = "") -> list[dict[str, Any]]:
    body = json.loads(encode_request(Request(system, messages), ENDPOINT))
    check_openai_chat(body)
    return body["messages"]


def test_messages_are_encoded_separately_and_in_order() -> None:
    calls = (Call("c1", "look", '{"at": 1}'), Call("c2", "look"))
    results = [CallResult(c.id, c.name, f"saw {c.id}", Effect.COMPLETED) for c in calls]
    messages = [UserMessage("1", "go"), AssistantMessage("ok", calls), *results, Note("[cut]"), UserMessage("2", "on")]
    tool_calls = [
        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}},
        {"id": "c2", "type": "function", "function": {"name": "look", "arguments": "{}"}},
    ]
    assert encode_messages(messages, "be kind") == [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "ok", "tool_calls": tool_calls},
        {"role": "tool", "tool_call_id": "c1", "content": "saw c1"},
        {"role": "tool", "tool_call_id": "c2", "content": "saw c2"},
        {"role": "user", "content": "[cut]"},
        {"role": "user", "content": "on"},
    ]


def test_an_assistant_message_with_only_calls_has_null_content() -> None:
    messages = [AssistantMessage(calls=(Call("c", "look"),)), CallResult("c", "look", "", Effect.UNKNOWN)]
    assert encode_messages(messages)[0]["content"] is None


def test_an_assistant_message_without_text_and_calls_is_omitted() -> None:
    only_reasoning = AssistantMessage(reasoning=(Reasoning("hm"),), is_partial=True)
    assert [
        message["role"] for message in encode_messages([UserMessage("1", "a"), only_reasoning, UserMessage("2", "b")])
    ] == [
        "user",
        "user",
    ]


def test_images_are_sent_as_content_parts_and_other_files_as_file_names() -> None:
    picture = Attachment("image/png", data="QUJD")
    file = Attachment("application/pdf", name="plan.pdf", path="/files/plan.pdf")
    (message,) = encode_messages([UserMessage("1", "see", attachments=(picture, file))])
    assert message["content"] == [
        {"type": "text", "text": "see\n[attached: plan.pdf (application/pdf) at /files/plan.pdf]"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
    ]


def test_content_is_a_plain_string_when_no_image_is_attached() -> None:
    (message,) = encode_messages([UserMessage("1", "see", attachments=(Attachment("text/plain", name="a.txt"),))])
    assert message["content"] == "see\n[attached: a.txt (text/plain)]"


def test_an_image_without_text_has_no_empty_text_part() -> None:
    (message,) = encode_messages([UserMessage("1", "", attachments=(Attachment("image/png", data="QUJD"),))])
    assert [part["type"] for part in message["content"]] == ["image_url"]


def test_invalid_characters_in_an_author_name_are_replaced() -> None:
    (message,) = encode_messages([UserMessage("1", "hi", author="Zoë B. " + "x" * 80)])
    assert message["name"] == ("Zo__B__" + "x" * 80)[:64]


def test_an_unpaired_surrogate_is_replaced_and_a_surrogate_pair_is_joined() -> None:
    (message,) = encode_messages([UserMessage("1", "a\ud83d b \ud83d\ude00")])
    assert message["content"] == "a\ufffd b \U0001f600"


def test_tools_and_the_token_limit_are_sent() -> None:
    spec = ToolSpec("look", "Look around.", {"type": "object", "properties": {"at": {"type": "string"}}})
    body = json.loads(encode_request(Request("", [UserMessage("1", "a")], [spec], max_tokens=7), ENDPOINT))
    function = {"name": "look", "description": "Look around.", "parameters": spec.parameters}
    assert body["tools"] == [{"type": "function", "function": function}]
    assert body["max_tokens"] == 7


def test_openai_gets_the_token_limit_under_its_new_parameter_name() -> None:
    endpoint = Endpoint("https://api.openai.com/v1", "small")
    body = json.loads(encode_request(Request("", [UserMessage("1", "a")], max_tokens=7), endpoint))
    assert (body.get("max_completion_tokens"), body.get("max_tokens")) == (7, None)


def test_usage_is_requested_only_for_streams() -> None:
    request = Request("", [UserMessage("1", "a")])
    streamed = json.loads(encode_request(request, ENDPOINT))
    unstreamed = json.loads(encode_request(request, Endpoint("http://127.0.0.1/v1", "small", stream=False)))
    assert (streamed["stream"], streamed["stream_options"]) == (True, {"include_usage": True})
    assert (unstreamed["stream"], "stream_options" in unstreamed, "tools" in unstreamed) == (False, False, False)


def test_images_returned_by_calls_are_sent_after_all_results() -> None:
    calls = (Call("c1", "see"), Call("c2", "look"))
    picture = Attachment("image/png", data="QUJD")
    seen = CallResult("c1", "see", "a cat", Effect.COMPLETED, attachments=(picture,))
    other = CallResult("c2", "look", "saw", Effect.COMPLETED)
    shown = {
        "role": "user",
        "content": [
            {"type": "text", "text": "[pictures returned by see, call c1]"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
        ],
    }
    tools = [
        {"role": "tool", "tool_call_id": "c1", "content": "a cat"},
        {"role": "tool", "tool_call_id": "c2", "content": "saw"},
    ]
    messages = [UserMessage("1", "go"), AssistantMessage("", calls), seen, other]
    assert encode_messages(messages)[2:] == [*tools, shown]
    assert encode_messages([*messages, UserMessage("2", "on")])[2:] == [
        *tools,
        shown,
        {"role": "user", "content": "on"},
    ]


def test_a_file_returned_by_a_call_is_sent_as_its_file_name() -> None:
    file = Attachment("application/pdf", name="plan.pdf")
    result = CallResult("c", "look", "saw", Effect.COMPLETED, attachments=(file,))
    messages = encode_messages([UserMessage("1", "go"), AssistantMessage("", (Call("c", "look"),)), result])
    assert messages[2:] == [
        {"role": "tool", "tool_call_id": "c", "content": "saw\n[attached: plan.pdf (application/pdf)]"}
    ]
