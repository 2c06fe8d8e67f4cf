"""Converts a Chat Completions history to the other two wire protocols, so that their rules are checked too."""

import json
from typing import Any

from tests.fakes.models.history_rules import Wire, check_anthropic, check_openai_chat, check_responses


def check_for_all_protocols(body: Wire) -> None:
    """Raise AssertionError unless all three protocols would accept this history."""
    check_openai_chat(body)
    messages: list[Wire] = [message for message in body["messages"] if message["role"] != "system"]
    check_anthropic({"messages": [_to_anthropic(message) for message in messages]})
    check_responses({"input": [item for message in messages for item in _to_responses(message)]})


def _to_anthropic(message: Wire) -> Wire:
    if message["role"] == "tool":
        block = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}
        return {"role": "user", "content": [block]}
    blocks: list[Wire] = [{"type": "text", "text": message["content"]}] if message["content"] else []
    for call in message.get("tool_calls", ()):
        function: Any = call["function"]
        arguments = json.loads(function["arguments"])
        blocks.append({"type": "tool_use", "id": call["id"], "name": function["name"], "input": arguments})
    return {"role": message["role"], "content": blocks}


def _to_responses(message: Wire) -> list[Wire]:
    if message["role"] == "tool":
        return [{"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]}]
    items: list[Wire] = [{"role": message["role"], "content": message["content"]}] if message["content"] else []
    calls: list[Wire] = message.get("tool_calls", [])
    return items + [{"type": "function_call", "call_id": call["id"], **call["function"]} for call in calls]
