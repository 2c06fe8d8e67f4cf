"""Requests validate against the vendors' SDK types, without unknown fields."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError
from pydantic_core import SchemaValidator

from hark.protocol.messages import AssistantMessage, Attachment, Call, CallResult, Effect, Note, Reasoning, UserMessage
from hark.protocol.provider import Request
from hark.protocol.tool import ToolSpec
from hark.providers.anthropic import provider as anthropic
from hark.providers.endpoint import Endpoint
from hark.providers.openai import chat, responses
from tests.providers.vendor_types import load_vendor_type

Encode = Callable[[Request, Endpoint], bytes]
ITEM = '{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"xyz"}'
REASONING = (Reasoning("hm", "sig"), Reasoning(data="EREDACTED"), Reasoning("hm", data=ITEM))
MESSAGES = [
    UserMessage("1", "see", "Zoë", (Attachment("image/png", data="QUJD"), Attachment("text/plain", name="a.txt"))),
    AssistantMessage("ok", (Call("c1", "look", '{"at": [1, {"b": null}]}'), Call("c2", "look")), REASONING),
    CallResult("c1", "look", "saw", Effect.COMPLETED, attachments=(Attachment("image/png", data="QUJD"),)),
    CallResult("c2", "look", "", Effect.CANCELLED, is_error=True),
    Note("[cut]"),
    AssistantMessage("half", reasoning=REASONING, is_partial=True),
    UserMessage("2", "go on"),
]
SPEC = ToolSpec("look", "Look around.", {"type": "object", "properties": {"at": {"type": "array"}}, "required": []})
REQUESTS = [Request("be brief", MESSAGES, [SPEC], 100), Request("", [UserMessage("1", "hi")])]
APIS: list[tuple[Encode, str]] = [
    (chat.encode_request, "openai.types.chat.completion_create_params.CompletionCreateParamsStreaming"),
    (
        responses.encode_request,
        "openai.types.responses.response_create_params.ResponseCreateParamsStreaming",
    ),
    (anthropic.encode_request, "anthropic.types.message_create_params.MessageCreateParamsStreaming"),
]


def encode_to_object(encode: Encode, request: Request) -> Any:
    return json.loads(encode(request, Endpoint("https://127.0.0.1/v1", "gpt-5", stream=True)))


def with_eager_lists(schema: Any) -> Any:
    """Return a schema that validates lists immediately. Iterables would be accepted without validating their items."""
    match schema:
        case {"type": "generator"}:
            return {**with_eager_lists({**schema, "type": ""}), "type": "list"}
        case dict():
            return {key: with_eager_lists(value) for key, value in schema.items()}  # pyright: ignore[reportUnknownVariableType]
        case list():
            return [with_eager_lists(value) for value in schema]  # pyright: ignore[reportUnknownVariableType]
        case tuple():
            return tuple(with_eager_lists(value) for value in schema)  # pyright: ignore[reportUnknownVariableType]
        case _:
            return schema


def validate(params: str, body: Any) -> Any:
    """Return the body as parsed by the vendor's SDK type."""
    return SchemaValidator(with_eager_lists(load_vendor_type(params).core_schema)).validate_python(body, extra="forbid")


@pytest.mark.parametrize("request_", REQUESTS)
@pytest.mark.parametrize(("encode", "params"), APIS)
def test_a_request_validates_unchanged_against_the_vendors_sdk_type(
    encode: Encode, params: str, request_: Request
) -> None:
    body = encode_to_object(encode, request_)
    assert validate(params, body) == body


@pytest.mark.parametrize(("encode", "params"), APIS)
def test_the_vendors_sdk_types_reject_a_deeply_nested_unknown_field(encode: Encode, params: str) -> None:
    body = encode_to_object(encode, REQUESTS[0])
    messages = body.get("messages") or body["input"]
    first = next(message for message in messages if message["role"] == "user")
    first["content"][0]["more"] = "an unknown field"
    with pytest.raises(ValidationError):
        validate(params, body)
