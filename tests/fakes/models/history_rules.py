"""Validates a request's history as strictly as the vendors do."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

Wire = dict[str, Any]
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def check_request(path: str, headers: Mapping[str, str], body: Wire) -> None:
    """Raise AssertionError unless the vendor whose API is at this path would accept the request."""
    match path.removeprefix("/v1"):
        case "/chat/completions":
            check_openai_chat(body)
        case "/responses":
            assert body.get("store") is False, "store must be false: nothing may stay with the server"
            check_responses(body)
        case "/messages":
            assert headers.get("anthropic-version"), "anthropic-version: header is required"
            assert isinstance(body.get("max_tokens"), int), "max_tokens: field required"
            check_anthropic(body)
        case _:
            raise AssertionError(f"there is no API at {path}")
    assert body.get("model"), "model: field required"


def check_openai_chat(body: Wire) -> None:
    """Raise AssertionError unless OpenAI's chat completions API would accept these messages."""
    messages = _get_list(body, "messages")
    assert messages, "messages is empty"
    used: set[str] = set()
    open_ids: list[str] = []
    for number, message in enumerate(messages):
        where = f"messages[{number}]"
        role = message.get("role")
        assert role in {"system", "developer", "user", "assistant", "tool"}, f"{where}: unknown role {role!r}"
        if role == "tool":
            call_id = message.get("tool_call_id")
            assert call_id in open_ids, f"{where}: tool message for {call_id!r}, which no open call has"
            assert isinstance(message.get("content"), str), f"{where}: the content of a tool message must be a text"
            open_ids.remove(call_id)
            continue
        assert not open_ids, f"{where}: calls {open_ids} have no tool message before this {role} message"
        if role == "assistant":
            open_ids = _check_chat_assistant(message, where, used)
        else:
            _check_chat_content(message.get("content"), where)
    assert not open_ids, f"calls {open_ids} have no tool message at the end"


def _check_chat_assistant(message: Wire, where: str, used: set[str]) -> list[str]:
    content = message.get("content")
    calls = _get_list(message, "tool_calls") if "tool_calls" in message else []
    assert content is None or isinstance(content, str), f"{where}: content must be a text or null"
    assert content or calls, f"{where}: an assistant message needs a text or tool_calls"
    assert "tool_calls" not in message or calls, f"{where}: tool_calls is empty"
    ids: list[str] = []
    for call in calls:
        assert call.get("type") == "function", f"{where}: a call's type must be function"
        _check_name_and_arguments(call["function"], where)
        ids.append(_check_new_id(call.get("id"), where, used))
    return ids


def _check_chat_content(content: Any, where: str) -> None:
    assert isinstance(content, str | list), f"{where}: content must be a text or a list of parts"
    parts: list[Wire] = (
        cast("list[Wire]", content) if isinstance(content, list) else [{"type": "text", "text": content}]
    )
    assert parts, f"{where}: content has no parts"
    for part in parts:
        assert part.get("type") in {"text", "image_url"}, f"{where}: unknown part {part.get('type')!r}"
        if part["type"] == "image_url":
            url = part["image_url"]["url"]
            assert url.startswith(("data:image/", "https://", "http://")), f"{where}: the image has no usable url"
        else:
            assert isinstance(part.get("text"), str), f"{where}: a text part without text"


def check_responses(body: Wire) -> None:
    """Raise AssertionError unless OpenAI's Responses API would accept this input."""
    items = _get_list(body, "input")
    assert items, "input is empty"
    used: set[str] = set()
    open_ids: list[str] = []
    for number, item in enumerate(items):
        where = f"input[{number}]"
        kind = item.get("type", "message")
        if number and items[number - 1].get("type") == "reasoning":
            is_matching_item = kind in {"function_call", "reasoning"} or item.get("role") == "assistant"
            assert is_matching_item, f"{where}: the reasoning before it was not followed by its item"
        match kind:
            case "message":
                assert not open_ids, f"{where}: calls {open_ids} have no output before this message"
                _check_responses_message(item, where)
            case "reasoning":
                assert item.get("id"), f"{where}: a reasoning item needs its id"
                is_readable = item.get("encrypted_content") or body.get("store", True)
                assert is_readable, f"{where}: reasoning {item['id']!r} not found: items are not persisted"
            case "function_call":
                _check_name_and_arguments(item, where)
                open_ids.append(_check_new_id(item.get("call_id"), where, used))
            case "function_call_output":
                call_id = item.get("call_id")
                assert call_id in open_ids, f"{where}: output for {call_id!r}, which no open call has"
                _check_responses_output(item, where)
                open_ids.remove(call_id)
            case _:
                raise AssertionError(f"{where}: unknown type {kind!r}")
    assert not open_ids, f"calls {open_ids} have no output at the end"
    assert items[-1].get("type") != "reasoning", "the last item is reasoning without its item"


def _check_responses_message(item: Wire, where: str) -> None:
    role = item.get("role")
    assert role in {"system", "developer", "user", "assistant"}, f"{where}: unknown role {role!r}"
    content = item.get("content")
    if isinstance(content, str):
        assert content or role != "assistant", f"{where}: an empty assistant message"
        return
    known = {"output_text", "refusal"} if role == "assistant" else {"input_text", "input_image", "input_file"}
    parts = _get_list(item, "content")
    assert parts, f"{where}: content has no parts"
    for part in parts:
        assert part.get("type") in known, f"{where}: a {role} message can't have a part {part.get('type')!r}"


def _check_responses_output(item: Wire, where: str) -> None:
    output = item.get("output")
    assert isinstance(output, str | list), f"{where}: the output must be a text or a list of parts"
    if isinstance(output, str):
        return
    parts = _get_list(item, "output")
    assert parts, f"{where}: the output has no parts"
    for part in parts:
        kind = part.get("type")
        assert kind in {"input_text", "input_image", "input_file"}, f"{where}: an output can't have a part {kind!r}"
        if kind == "input_image":
            url = str(part.get("image_url"))
            assert url.startswith(("data:image/", "https://", "http://")), f"{where}: the image has no usable url"


def check_anthropic(body: Wire) -> None:
    """Raise AssertionError unless Anthropic's Messages API would accept these messages."""
    turns = _merge_roles(_get_list(body, "messages"))
    assert turns, "messages is empty"
    assert turns[0][0] == "user", "the first message must be the user's"
    used: set[str] = set()
    open_ids: list[str] = []
    for number, (role, blocks) in enumerate(turns):
        where = f"turn {number} ({role})"
        assert blocks, f"{where}: no content"
        if role == "user":
            _check_anthropic_user(blocks, where, open_ids)
            open_ids = []
        else:
            open_ids = _check_anthropic_assistant(blocks, where, used)
            last = str(blocks[-1].get("type"))
            assert "thinking" not in last, f"{where}: the final block in an assistant message cannot be {last}"
    assert not open_ids, f"tool_use {open_ids} has no tool_result at the end"
    role, blocks = turns[-1]
    if role == "assistant" and blocks[-1].get("type") == "text":
        text = str(blocks[-1]["text"])
        assert text == text.rstrip(), "the final assistant text ends with whitespace"


def _merge_roles(messages: Sequence[Wire]) -> list[tuple[str, list[Wire]]]:
    """Merge consecutive messages with the same role, as the API does. Plain text becomes a text block."""
    turns: list[tuple[str, list[Wire]]] = []
    for number, message in enumerate(messages):
        role = message.get("role")
        assert role in {"user", "assistant"}, f"messages[{number}]: unknown role {role!r}"
        content = message.get("content")
        blocks: list[Wire] = (
            [{"type": "text", "text": content}] if isinstance(content, str) else _get_list(message, "content")
        )
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        else:
            turns.append((role, list(blocks)))
    return turns


def _check_anthropic_user(blocks: Sequence[Wire], where: str, open_ids: Sequence[str]) -> None:
    unanswered = list(open_ids)
    has_other = False
    for block in blocks:
        kind = block.get("type")
        assert kind in {"text", "image", "document", "tool_result"}, f"{where}: unknown block {kind!r}"
        if kind != "tool_result":
            has_other = True
            _check_not_empty(block, where)
            continue
        call_id = block.get("tool_use_id")
        assert not has_other, f"{where}: the tool_result for {call_id!r} must come before other blocks"
        assert call_id in unanswered, f"{where}: tool_result for {call_id!r}, which the turn before did not ask for"
        unanswered.remove(call_id)
        _check_anthropic_result(block, where)
    assert not unanswered, f"{where}: tool_use {unanswered} has no tool_result directly after it"


def _check_anthropic_result(block: Wire, where: str) -> None:
    content = block.get("content", "")
    if isinstance(content, str):
        return
    parts = _get_list(block, "content")
    for part in parts:
        kind = part.get("type")
        assert kind in {"text", "image", "document"}, f"{where}: a tool_result can't have a block {kind!r}"
        assert kind == "text" or not block.get("is_error"), f"{where}: all content must be text if is_error is true"
        _check_not_empty(part, where)
        if kind == "image":
            source = part.get("source", {})
            assert source.get("data"), f"{where}: an image without data"
            assert str(source.get("media_type")).startswith("image/"), f"{where}: an image without its type"


def _check_anthropic_assistant(blocks: Sequence[Wire], where: str, used: set[str]) -> list[str]:
    ids: list[str] = []
    for block in blocks:
        kind = block.get("type")
        assert kind in {"text", "thinking", "redacted_thinking", "tool_use"}, f"{where}: unknown block {kind!r}"
        _check_not_empty(block, where)
        if kind == "thinking":
            assert block.get("signature"), f"{where}: thinking without its signature"
        if kind == "tool_use":
            assert block.get("name"), f"{where}: a call without a name"
            assert isinstance(block.get("input"), dict), f"{where}: the input of a tool_use must be an object"
            ids.append(_check_new_id(block.get("id"), where, used))
            assert _CALL_ID.fullmatch(ids[-1]), f"{where}: the call id {ids[-1]!r} contains invalid characters"
    return ids


def _check_not_empty(block: Wire, where: str) -> None:
    if block.get("type") == "text":
        text = block.get("text")
        assert isinstance(text, str), f"{where}: a text block without text"
        assert text.strip(), f"{where}: an empty text block"


def _get_list(body: Wire, name: str) -> list[Wire]:
    value = body.get(name)
    assert isinstance(value, list), f"{name} must be a list"
    for item in cast("list[Any]", value):
        assert isinstance(item, dict), f"{name} must hold objects"
    return cast("list[Wire]", value)


def _check_name_and_arguments(function: Wire, where: str) -> None:
    assert function.get("name"), f"{where}: a call without a name"
    arguments = function.get("arguments")
    try:
        parsed = json.loads(arguments) if isinstance(arguments, str) else None
    except ValueError:
        parsed = None
    assert isinstance(parsed, dict), f"{where}: the arguments {arguments!r} are not the text of a JSON object"


def _check_new_id(call_id: Any, where: str, used: set[str]) -> str:
    assert isinstance(call_id, str), f"{where}: a call without an id"
    assert call_id, f"{where}: a call with an empty id"
    assert call_id not in used, f"{where}: the call id {call_id!r} is used twice"
    used.add(call_id)
    return call_id
