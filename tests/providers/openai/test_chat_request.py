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


def wire(messages: Sequence[Message], system: str = "") -> list[dict[str, Any]]:
    body = json.loads(encode_request(Request(system, messages), ENDPOINT))
    check_openai_chat(body)
    return body["messages"]


def test_a_conversation_keeps_its_order_and_every_message_is_its_own() -> None:
    calls = (Call("c1", "look", '{"at": 1}'), Call("c2", "look"))
    results = [CallResult(c.id, c.name, f"saw {c.id}", Effect.COMPLETED) for c in calls]
    messages = [UserMessage("1", "go"), AssistantMessage("ok", calls), *results, Note("[cut]"), UserMessage("2", "on")]
    tool_calls = [
        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}},
        {"id": "c2", "type": "function", "function": {"name": "look", "arguments": "{}"}},
    ]
    assert wire(messages, "be kind") == [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "ok", "tool_calls": tool_calls},
        {"role": "tool", "tool_call_id": "c1", "content": "saw c1"},
        {"role": "tool", "tool_call_id": "c2", "content": "saw c2"},
        {"role": "user", "content": "[cut]"},
        {"role": "user", "content": "on"},
    ]


def test_an_assistant_message_with_calls_alone_has_null_content() -> None:
    messages = [AssistantMessage(calls=(Call("c", "look"),)), CallResult("c", "look", "", Effect.UNKNOWN)]
    assert wire(messages)[0]["content"] is None


def test_an_assistant_message_with_nothing_to_send_is_left_out() -> None:
    thought = AssistantMessage(reasoning=(Reasoning("hm"),), is_partial=True)
    assert [message["role"] for message in wire([UserMessage("1", "a"), thought, UserMessage("2", "b")])] == [
        "user",
        "user",
    ]


def test_pictures_are_sent_and_other_files_are_named() -> None:
    picture = Attachment("image/png", data="QUJD")
    file = Attachment("application/pdf", name="plan.pdf", path="/files/plan.pdf")
    (message,) = wire([UserMessage("1", "see", attachments=(picture, file))])
    assert message["content"] == [
        {"type": "text", "text": "see\n[attached: plan.pdf (application/pdf) at /files/plan.pdf]"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
    ]


def test_a_file_alone_leaves_the_content_a_text() -> None:
    (message,) = wire([UserMessage("1", "see", attachments=(Attachment("text/plain", name="a.txt"),))])
    assert message["content"] == "see\n[attached: a.txt (text/plain)]"


def test_a_picture_without_words_has_no_empty_text_part() -> None:
    (message,) = wire([UserMessage("1", "", attachments=(Attachment("image/png", data="QUJD"),))])
    assert [part["type"] for part in message["content"]] == ["image_url"]


def test_an_author_is_named_in_the_letters_that_the_api_takes() -> None:
    (message,) = wire([UserMessage("1", "hi", author="Zoë B. " + "x" * 80)])
    assert message["name"] == ("Zo__B__" + "x" * 80)[:64]


def test_half_a_surrogate_pair_is_replaced_and_a_whole_one_joined() -> None:
    (message,) = wire([UserMessage("1", "a\ud83d b \ud83d\ude00")])
    assert message["content"] == "a\ufffd b \U0001f600"


def test_tools_and_the_limit_are_told() -> None:
    spec = ToolSpec("look", "Look around.", {"type": "object", "properties": {"at": {"type": "string"}}})
    body = json.loads(encode_request(Request("", [UserMessage("1", "a")], [spec], max_tokens=7), ENDPOINT))
    function = {"name": "look", "description": "Look around.", "parameters": spec.parameters}
    assert body["tools"] == [{"type": "function", "function": function}]
    assert body["max_tokens"] == 7


def test_openai_itself_gets_the_limit_under_its_new_name() -> None:
    endpoint = Endpoint("https://api.openai.com/v1", "small")
    body = json.loads(encode_request(Request("", [UserMessage("1", "a")], max_tokens=7), endpoint))
    assert (body.get("max_completion_tokens"), body.get("max_tokens")) == (7, None)


def test_usage_is_asked_for_only_in_a_stream() -> None:
    request = Request("", [UserMessage("1", "a")])
    streamed = json.loads(encode_request(request, ENDPOINT))
    whole = json.loads(encode_request(request, Endpoint("http://127.0.0.1/v1", "small", stream=False)))
    assert (streamed["stream"], streamed["stream_options"]) == (True, {"include_usage": True})
    assert (whole["stream"], "stream_options" in whole, "tools" in whole) == (False, False, False)


def test_a_picture_that_a_call_returned_is_shown_behind_the_batch() -> None:
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
    assert wire(messages)[2:] == [*tools, shown]
    assert wire([*messages, UserMessage("2", "on")])[2:] == [*tools, shown, {"role": "user", "content": "on"}]


def test_a_file_that_a_call_returned_is_named() -> None:
    file = Attachment("application/pdf", name="plan.pdf")
    result = CallResult("c", "look", "saw", Effect.COMPLETED, attachments=(file,))
    messages = wire([UserMessage("1", "go"), AssistantMessage("", (Call("c", "look"),)), result])
    assert messages[2:] == [
        {"role": "tool", "tool_call_id": "c", "content": "saw\n[attached: plan.pdf (application/pdf)]"}
    ]
