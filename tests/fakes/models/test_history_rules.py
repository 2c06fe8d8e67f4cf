"""Each rule of the wire checks bites."""

from typing import Any

import pytest

from tests.fakes.models.history_rules import check_anthropic, check_openai_chat, check_request, check_responses

Wire = dict[str, Any]
Cases = list[tuple[list[Wire], str]]


def user(text: str = "go") -> Wire:
    return {"role": "user", "content": text}


def asks(*ids: str, arguments: str = "{}") -> Wire:
    function = {"name": "look", "arguments": arguments}
    return {"role": "assistant", "content": None, "tool_calls": [_function(i, function) for i in ids]}


def _function(call_id: str, function: Wire) -> Wire:
    return {"id": call_id, "type": "function", "function": function}


def says(call_id: str) -> Wire:
    return {"role": "tool", "tool_call_id": call_id, "content": "seen"}


def test_a_good_chat_history_passes() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    history = [{"role": "system", "content": "be"}, {"role": "user", "content": [picture]}, asks("a", "b")]
    check_openai_chat({"messages": [*history, says("b"), says("a"), user(), asks("c"), says("c")]})


BROKEN_CHAT: Cases = [
    ([], "messages is empty"),
    ([{"role": "bot", "content": "x"}], "unknown role 'bot'"),
    ([user(), says("a")], "which no open call has"),
    ([user(), asks("a"), user()], "have no tool message before this user message"),
    ([user(), asks("a", "b"), says("a")], "have no tool message at the end"),
    ([user(), asks("a"), says("a"), says("a")], "which no open call has"),
    ([user(), asks("a"), says("a"), asks("a"), says("a")], "used twice"),
    ([user(), asks(""), says("")], "empty id"),
    ([user(), asks("a", arguments='{"x": '), says("a")], "not the text of a JSON object"),
    ([user(), asks("a", arguments="[1]"), says("a")], "not the text of a JSON object"),
    ([user(), {"role": "assistant", "content": ""}, user()], "needs a text or tool_calls"),
    ([user(), {"role": "assistant", "content": "x", "tool_calls": []}, user()], "tool_calls is empty"),
    ([user(), {"role": "assistant", "content": [{"type": "text"}]}, user()], "content must be a text or null"),
    ([{"role": "user", "content": None}], "content must be a text or a list"),
    ([{"role": "user", "content": []}], "content has no parts"),
    ([{"role": "user", "content": [{"type": "sound"}]}], "unknown part 'sound'"),
    ([{"role": "user", "content": [{"type": "text"}]}], "a text part without text"),
    ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "AA"}}]}], "no usable url"),
    ([user(), asks("a"), {"role": "tool", "tool_call_id": "a", "content": None}], "must be a text"),
]


@pytest.mark.parametrize(("messages", "words"), BROKEN_CHAT)
def test_a_broken_chat_history_is_refused(messages: list[Wire], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_openai_chat({"messages": messages})


def fcall(call_id: str, arguments: str = "{}") -> Wire:
    return {"type": "function_call", "call_id": call_id, "name": "look", "arguments": arguments}


def fout(call_id: str) -> Wire:
    return {"type": "function_call_output", "call_id": call_id, "output": "seen"}


REASONING: Wire = {"type": "reasoning", "id": "r1", "summary": []}


def test_a_good_responses_input_passes() -> None:
    said = {"role": "assistant", "content": [{"type": "output_text", "text": "so"}]}
    check_responses({"input": [user(), REASONING, fcall("a"), fcall("b"), fout("b"), fout("a"), REASONING, said]})


BROKEN_RESPONSES: Cases = [
    ([], "input is empty"),
    ([{"type": "thing"}], "unknown type 'thing'"),
    ([{"role": "bot", "content": "x"}], "unknown role 'bot'"),
    ([user(), fout("a")], "which no open call has"),
    ([user(), fcall("a"), user()], "have no output before this message"),
    ([user(), fcall("a")], "have no output at the end"),
    ([user(), fcall("a"), fout("a"), fcall("a"), fout("a")], "used twice"),
    ([user(), fcall("a", "nothing"), fout("a")], "not the text of a JSON object"),
    ([user(), REASONING, user()], "not followed by its item"),
    ([user(), REASONING], "reasoning without its item"),
    ([user(), {"type": "reasoning"}, fcall("a"), fout("a")], "needs its id"),
    ([user(), {"role": "assistant", "content": ""}], "an empty assistant message"),
    ([user(), {"role": "assistant", "content": []}], "content has no parts"),
    ([user(), {"role": "assistant", "content": [{"type": "input_text"}]}], "can't have a part 'input_text'"),
    ([{"role": "user", "content": [{"type": "output_text"}]}], "can't have a part 'output_text'"),
    ([user(), fcall("a"), {"type": "function_call_output", "call_id": "a"}], "the output must be a text"),
    ([user(), fcall("a"), {**fout("a"), "output": []}], "the output has no parts"),
    ([user(), fcall("a"), {**fout("a"), "output": [{"type": "image"}]}], "can't have a part 'image'"),
    ([user(), fcall("a"), {**fout("a"), "output": [{"type": "input_image"}]}], "no usable url"),
]


@pytest.mark.parametrize(("items", "words"), BROKEN_RESPONSES)
def test_a_broken_responses_input_is_refused(items: list[Wire], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_responses({"input": items})


def uses(*ids: str) -> Wire:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": i, "name": "look", "input": {}} for i in ids]}


def results(*ids: str, text: str = "") -> Wire:
    blocks: list[Wire] = [{"type": "tool_result", "tool_use_id": i, "content": "seen"} for i in ids]
    return {"role": "user", "content": [*blocks, {"type": "text", "text": text}] if text else blocks}


THOUGHT: Wire = {"type": "thinking", "thinking": "hm", "signature": "s"}
REDACTED: Wire = {"type": "redacted_thinking", "data": "x"}


def said(text: str) -> Wire:
    return {"role": "assistant", "content": text}


def test_a_good_anthropic_history_passes() -> None:
    asked = {"role": "assistant", "content": [THOUGHT, *uses("a", "b")["content"]]}
    check_anthropic({"messages": [user(), user("more"), asked, results("a"), results("b", text="and"), said("so")]})


def result_with(block: Wire, **fields: Any) -> Wire:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [block], **fields}]}


BROKEN_ANTHROPIC: Cases = [
    ([], "messages is empty"),
    ([said("hello")], "the first message must be the user's"),
    ([{"role": "system", "content": "be"}], "unknown role 'system'"),
    ([user(), uses("a"), user("no")], "has no tool_result right behind it"),
    ([user(), uses("a", "b"), results("a")], "has no tool_result right behind it"),
    ([user(), uses("a"), user("first"), results("a")], "must come before other blocks"),
    ([user(), uses("a"), results("a"), said("x"), results("a")], "did not ask for"),
    ([user(), uses("a")], "has no tool_result at the end"),
    ([user(), uses("a"), result_with({"type": "image_url"})], "can't have a block 'image_url'"),
    ([user(), uses("a"), result_with({"type": "text", "text": ""})], "an empty text block"),
    ([user(), uses("a"), result_with({"type": "image"}, is_error=True)], "all content must be text"),
    ([user(), uses("a"), result_with({"type": "image", "source": {}})], "an image without data"),
    ([user(), uses("a"), result_with({"type": "image", "source": {"data": "AA=="}})], "an image without its type"),
    ([user(), uses("a"), results("a"), uses("a"), results("a")], "used twice"),
    ([user("")], "an empty text block"),
    ([user(), said(" ")], "an empty text block"),
    ([user(), said("so "), user(), said("so ")], "ends with whitespace"),
    ([user(), {"role": "assistant", "content": []}, user()], "no content"),
    ([user(), {"role": "assistant", "content": [{"type": "sound"}]}], "unknown block 'sound'"),
    ([user(), {"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}]}], "without its signature"),
    (
        [user(), {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "x", "input": "{}"}]}],
        "must be an object",
    ),
    ([{"role": "user", "content": [{"type": "tool_use"}]}], "unknown block 'tool_use'"),
    ([user(), uses("a.b:0"), results("a.b:0")], "other letters than it may"),
    ([user(), {"role": "assistant", "content": [THOUGHT]}, user()], "final block .* cannot be thinking"),
    ([user(), {"role": "assistant", "content": [REDACTED]}, user()], "final block .* cannot be redacted_thinking"),
]


@pytest.mark.parametrize(("messages", "words"), BROKEN_ANTHROPIC)
def test_a_broken_anthropic_history_is_refused(messages: list[Wire], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_anthropic({"messages": messages})


MESSAGES: Wire = {"model": "m", "messages": [user()], "max_tokens": 1}
VERSION = {"anthropic-version": "2023-06-01"}


def test_a_good_request_passes_at_each_path() -> None:
    check_request("/v1/chat/completions", {}, MESSAGES)
    check_request("/v1/responses", {}, {"model": "m", "input": [user()], "store": False})
    check_request("/v1/messages", VERSION, MESSAGES)


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/v1/else", MESSAGES, "no API is at /v1/else"),
        ("/v1/messages", {**MESSAGES, "max_tokens": None}, "max_tokens: field required"),
        ("/v1/messages", {**MESSAGES, "messages": []}, "messages is empty"),
        ("/v1/chat/completions", {**MESSAGES, "messages": []}, "messages is empty"),
        ("/v1/chat/completions", {**MESSAGES, "model": ""}, "model: field required"),
        ("/v1/responses", {"model": "m", "input": [user()]}, "store must be false"),
        ("/v1/responses", {"model": "m", "input": [REASONING, said("x")], "store": False}, "items are not persisted"),
    ],
)
def test_a_request_that_its_vendor_would_refuse_is_refused(path: str, body: Wire, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_request(path, VERSION, body)


def test_a_request_without_its_version_is_refused() -> None:
    with pytest.raises(AssertionError, match="anthropic-version: header is required"):
        check_request("/v1/messages", {}, MESSAGES)
