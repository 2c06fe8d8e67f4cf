"""Every request check rejects a violation of its rule."""

from typing import Any

import pytest

from tests.fakes.models.history_rules import check_anthropic, check_openai_chat, check_request, check_responses

Wire = dict[str, Any]
Cases = list[tuple[list[Wire], str]]


def user(text: str = "go") -> Wire:
    return {"role": "user", "content": text}


def chat_calls(*ids: str, arguments: str = "{}") -> Wire:
    function = {"name": "look", "arguments": arguments}
    return {"role": "assistant", "content": None, "tool_calls": [_function(i, function) for i in ids]}


def _function(call_id: str, function: Wire) -> Wire:
    return {"id": call_id, "type": "function", "function": function}


def chat_result(call_id: str) -> Wire:
    return {"role": "tool", "tool_call_id": call_id, "content": "seen"}


def test_a_valid_chat_history_passes() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    history = [{"role": "system", "content": "be"}, {"role": "user", "content": [picture]}, chat_calls("a", "b")]
    check_openai_chat(
        {"messages": [*history, chat_result("b"), chat_result("a"), user(), chat_calls("c"), chat_result("c")]}
    )


BROKEN_CHAT: Cases = [
    ([], "messages is empty"),
    ([{"role": "bot", "content": "x"}], "unknown role 'bot'"),
    ([user(), chat_result("a")], "which no open call has"),
    ([user(), chat_calls("a"), user()], "have no tool message before this user message"),
    ([user(), chat_calls("a", "b"), chat_result("a")], "have no tool message at the end"),
    ([user(), chat_calls("a"), chat_result("a"), chat_result("a")], "which no open call has"),
    ([user(), chat_calls("a"), chat_result("a"), chat_calls("a"), chat_result("a")], "used twice"),
    ([user(), chat_calls(""), chat_result("")], "empty id"),
    ([user(), chat_calls("a", arguments='{"x": '), chat_result("a")], "not the text of a JSON object"),
    ([user(), chat_calls("a", arguments="[1]"), chat_result("a")], "not the text of a JSON object"),
    ([user(), {"role": "assistant", "content": ""}, user()], "needs a text or tool_calls"),
    ([user(), {"role": "assistant", "content": "x", "tool_calls": []}, user()], "tool_calls is empty"),
    ([user(), {"role": "assistant", "content": [{"type": "text"}]}, user()], "content must be a text or null"),
    ([{"role": "user", "content": None}], "content must be a text or a list"),
    ([{"role": "user", "content": []}], "content has no parts"),
    ([{"role": "user", "content": [{"type": "sound"}]}], "unknown part 'sound'"),
    ([{"role": "user", "content": [{"type": "text"}]}], "a text part without text"),
    ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "AA"}}]}], "no usable url"),
    ([user(), chat_calls("a"), {"role": "tool", "tool_call_id": "a", "content": None}], "must be a text"),
]


@pytest.mark.parametrize(("messages", "reason"), BROKEN_CHAT)
def test_an_invalid_chat_history_is_refused(messages: list[Wire], reason: str) -> None:
    with pytest.raises(AssertionError, match=reason):
        check_openai_chat({"messages": messages})


def function_call(call_id: str, arguments: str = "{}") -> Wire:
    return {"type": "function_call", "call_id": call_id, "name": "look", "arguments": arguments}


def function_output(call_id: str) -> Wire:
    return {"type": "function_call_output", "call_id": call_id, "output": "seen"}


REASONING: Wire = {"type": "reasoning", "id": "r1", "summary": []}


def test_a_valid_responses_input_passes() -> None:
    said = {"role": "assistant", "content": [{"type": "output_text", "text": "so"}]}
    check_responses(
        {
            "input": [
                user(),
                REASONING,
                function_call("a"),
                function_call("b"),
                function_output("b"),
                function_output("a"),
                REASONING,
                said,
            ]
        }
    )


BROKEN_RESPONSES: Cases = [
    ([], "input is empty"),
    ([{"type": "thing"}], "unknown type 'thing'"),
    ([{"role": "bot", "content": "x"}], "unknown role 'bot'"),
    ([user(), function_output("a")], "which no open call has"),
    ([user(), function_call("a"), user()], "have no output before this message"),
    ([user(), function_call("a")], "have no output at the end"),
    ([user(), function_call("a"), function_output("a"), function_call("a"), function_output("a")], "used twice"),
    ([user(), function_call("a", "nothing"), function_output("a")], "not the text of a JSON object"),
    ([user(), REASONING, user()], "not followed by its item"),
    ([user(), REASONING], "reasoning without its item"),
    ([user(), {"type": "reasoning"}, function_call("a"), function_output("a")], "needs its id"),
    ([user(), {"role": "assistant", "content": ""}], "an empty assistant message"),
    ([user(), {"role": "assistant", "content": []}], "content has no parts"),
    ([user(), {"role": "assistant", "content": [{"type": "input_text"}]}], "can't have a part 'input_text'"),
    ([{"role": "user", "content": [{"type": "output_text"}]}], "can't have a part 'output_text'"),
    ([user(), function_call("a"), {"type": "function_call_output", "call_id": "a"}], "the output must be a text"),
    ([user(), function_call("a"), {**function_output("a"), "output": []}], "the output has no parts"),
    (
        [user(), function_call("a"), {**function_output("a"), "output": [{"type": "image"}]}],
        "can't have a part 'image'",
    ),
    ([user(), function_call("a"), {**function_output("a"), "output": [{"type": "input_image"}]}], "no usable url"),
]


@pytest.mark.parametrize(("items", "reason"), BROKEN_RESPONSES)
def test_an_invalid_responses_input_is_refused(items: list[Wire], reason: str) -> None:
    with pytest.raises(AssertionError, match=reason):
        check_responses({"input": items})


def tool_uses(*ids: str) -> Wire:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": i, "name": "look", "input": {}} for i in ids]}


def tool_results(*ids: str, text: str = "") -> Wire:
    blocks: list[Wire] = [{"type": "tool_result", "tool_use_id": i, "content": "seen"} for i in ids]
    return {"role": "user", "content": [*blocks, {"type": "text", "text": text}] if text else blocks}


THOUGHT: Wire = {"type": "thinking", "thinking": "hm", "signature": "s"}
REDACTED: Wire = {"type": "redacted_thinking", "data": "x"}


def assistant(text: str) -> Wire:
    return {"role": "assistant", "content": text}


def test_a_valid_anthropic_history_passes() -> None:
    asked = {"role": "assistant", "content": [THOUGHT, *tool_uses("a", "b")["content"]]}
    check_anthropic(
        {"messages": [user(), user("more"), asked, tool_results("a"), tool_results("b", text="and"), assistant("so")]}
    )


def result_with(block: Wire, **fields: Any) -> Wire:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [block], **fields}]}


BROKEN_ANTHROPIC: Cases = [
    ([], "messages is empty"),
    ([assistant("hello")], "the first message must be the user's"),
    ([{"role": "system", "content": "be"}], "unknown role 'system'"),
    ([user(), tool_uses("a"), user("no")], "has no tool_result directly after it"),
    ([user(), tool_uses("a", "b"), tool_results("a")], "has no tool_result directly after it"),
    ([user(), tool_uses("a"), user("first"), tool_results("a")], "must come before other blocks"),
    ([user(), tool_uses("a"), tool_results("a"), assistant("x"), tool_results("a")], "did not ask for"),
    ([user(), tool_uses("a")], "has no tool_result at the end"),
    ([user(), tool_uses("a"), result_with({"type": "image_url"})], "can't have a block 'image_url'"),
    ([user(), tool_uses("a"), result_with({"type": "text", "text": ""})], "an empty text block"),
    ([user(), tool_uses("a"), result_with({"type": "image"}, is_error=True)], "all content must be text"),
    ([user(), tool_uses("a"), result_with({"type": "image", "source": {}})], "an image without data"),
    ([user(), tool_uses("a"), result_with({"type": "image", "source": {"data": "AA=="}})], "an image without its type"),
    ([user(), tool_uses("a"), tool_results("a"), tool_uses("a"), tool_results("a")], "used twice"),
    ([user("")], "an empty text block"),
    ([user(), assistant(" ")], "an empty text block"),
    ([user(), assistant("so "), user(), assistant("so ")], "ends with whitespace"),
    ([user(), {"role": "assistant", "content": []}, user()], "no content"),
    ([user(), {"role": "assistant", "content": [{"type": "sound"}]}], "unknown block 'sound'"),
    ([user(), {"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}]}], "without its signature"),
    (
        [user(), {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "x", "input": "{}"}]}],
        "must be an object",
    ),
    ([{"role": "user", "content": [{"type": "tool_use"}]}], "unknown block 'tool_use'"),
    ([user(), tool_uses("a.b:0"), tool_results("a.b:0")], "contains invalid characters"),
    ([user(), {"role": "assistant", "content": [THOUGHT]}, user()], "final block .* cannot be thinking"),
    ([user(), {"role": "assistant", "content": [REDACTED]}, user()], "final block .* cannot be redacted_thinking"),
]


@pytest.mark.parametrize(("messages", "reason"), BROKEN_ANTHROPIC)
def test_an_invalid_anthropic_history_is_refused(messages: list[Wire], reason: str) -> None:
    with pytest.raises(AssertionError, match=reason):
        check_anthropic({"messages": messages})


MESSAGES: Wire = {"model": "m", "messages": [user()], "max_tokens": 1}
VERSION = {"anthropic-version": "2023-06-01"}


def test_a_valid_request_passes_at_each_path() -> None:
    check_request("/v1/chat/completions", {}, MESSAGES)
    check_request("/v1/responses", {}, {"model": "m", "input": [user()], "store": False})
    check_request("/v1/messages", VERSION, MESSAGES)


@pytest.mark.parametrize(
    ("path", "body", "reason"),
    [
        ("/v1/else", MESSAGES, "there is no API at /v1/else"),
        ("/v1/messages", {**MESSAGES, "max_tokens": None}, "max_tokens: field required"),
        ("/v1/messages", {**MESSAGES, "messages": []}, "messages is empty"),
        ("/v1/chat/completions", {**MESSAGES, "messages": []}, "messages is empty"),
        ("/v1/chat/completions", {**MESSAGES, "model": ""}, "model: field required"),
        ("/v1/responses", {"model": "m", "input": [user()]}, "store must be false"),
        (
            "/v1/responses",
            {"model": "m", "input": [REASONING, assistant("x")], "store": False},
            "items are not persisted",
        ),
    ],
)
def test_a_request_that_the_vendor_would_refuse_is_refused(path: str, body: Wire, reason: str) -> None:
    with pytest.raises(AssertionError, match=reason):
        check_request(path, VERSION, body)


def test_an_anthropic_request_without_a_version_header_is_refused() -> None:
    with pytest.raises(AssertionError, match="anthropic-version: header is required"):
        check_request("/v1/messages", {}, MESSAGES)
