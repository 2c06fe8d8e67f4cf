import json
from typing import Any

import pytest

from hark.protocol.messages import Reasoning
from hark.protocol.outcomes import Usage
from hark.protocol.provider import (
    BadRequest,
    CallChunk,
    Chunk,
    EndChunk,
    Overloaded,
    ReasoningChunk,
    ReasoningEnd,
    TextChunk,
    UsageChunk,
)
from hark.providers.anthropic.reply import AnthropicDecoder
from hark.providers.reply_parser import ReplyParser
from tests.fakes.models.anthropic_events import block_delta, block_start, block_stop, message, message_end
from tests.linear_time import assert_linear

Wire = dict[str, Any]
STOP = {"type": "message_stop"}
THINKING = {"type": "thinking", "thinking": "", "signature": ""}


def encode_events(*events: Wire) -> list[bytes]:
    return [json.dumps(event).encode() for event in events]


def parse_chunks(*events: Wire, stop_reason: str = "end_turn") -> list[Chunk]:
    reply = ReplyParser(AnthropicDecoder())
    end = {"type": "message_delta", "delta": {"stop_reason": stop_reason}}
    chunks = reply.parse_events(encode_events(*events, end, STOP))
    assert reply.draft.error is None
    assert reply.draft.is_done
    return chunks + reply.finish()


@pytest.mark.parametrize(
    ("stop_reason", "expected"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refusal"),
        ("something_new", "stop"),
    ],
)
def test_a_stop_reason_is_mapped_to_an_end_reason(stop_reason: str, expected: str) -> None:
    assert parse_chunks(stop_reason=stop_reason) == [EndChunk(expected)]


def test_reasoning_that_ends_before_its_signature_is_not_stored() -> None:
    chunks = parse_chunks(
        block_start(0, THINKING),
        block_delta(0, "thinking_delta", thinking="hm"),
        block_stop(0),
        stop_reason="max_tokens",
    )
    assert chunks == [ReasoningChunk("hm"), EndChunk("length")]


def test_signed_reasoning_is_stored_only_when_its_block_is_closed() -> None:
    events = [block_start(0, THINKING), block_delta(0, "thinking_delta", thinking="hm")]
    signed = [block_delta(0, "signature_delta", signature="ab"), block_delta(0, "signature_delta", signature="cd")]
    assert parse_chunks(*events, *signed) == [ReasoningChunk("hm"), EndChunk("stop")]
    assert parse_chunks(*events, *signed, block_stop(0)) == [
        ReasoningChunk("hm"),
        ReasoningEnd(Reasoning("hm", "abcd")),
        EndChunk("stop"),
    ]


def test_reasoning_without_visible_text_is_stored_if_it_has_a_signature() -> None:
    chunks = parse_chunks(block_start(0, THINKING), block_delta(0, "signature_delta", signature="s"), block_stop(0))
    assert chunks == [ReasoningEnd(Reasoning("", "s")), EndChunk("stop")]


def test_pings_and_unknown_events_are_ignored() -> None:
    unknown = [
        {"type": "ping"},
        {"type": "something_new", "index": 3},
        block_start(0, {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"a": 1}}),
        block_delta(0, "input_json_delta", partial_json="{}"),
        block_delta(1, "citations_delta", citation={"type": "char_location"}),
        block_stop(0),
    ]
    assert parse_chunks(*unknown) == [EndChunk("stop")]


def test_input_in_a_block_start_event_becomes_the_calls_arguments() -> None:
    block = {"type": "tool_use", "id": "t", "name": "look", "input": {"at": 1}}
    assert parse_chunks(block_start(0, block), block_stop(0)) == [
        CallChunk(0, "t", "look", '{"at":1}'),
        EndChunk("calls"),
    ]


def test_a_reply_whose_call_is_truncated_by_the_token_limit_has_the_end_reason_length() -> None:
    block: Wire = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
    assert parse_chunks(block_start(0, block), stop_reason="max_tokens")[-1] == EndChunk("length")


def test_a_call_without_a_name_is_reported_as_an_error() -> None:
    reply = ReplyParser(AnthropicDecoder())
    assert reply.parse_events(encode_events(block_start(0, {"type": "tool_use", "id": "t"}))) == []
    assert reply.draft.error is not None
    assert reply.draft.error.code == "bad_stream"


def test_cached_tokens_count_as_input_and_the_last_token_counts_are_used() -> None:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20, "output_tokens": 1}
    start = {"type": "message_start", "message": message(usage=usage)}
    late = {"type": "message_delta", "delta": {"stop_reason": None}, "usage": {"output_tokens": 9}}
    assert parse_chunks(start, late) == [UsageChunk(Usage(125, 9, 100)), EndChunk("stop")]


def test_an_error_event_ends_the_reply_after_the_earlier_chunks() -> None:
    reply = ReplyParser(AnthropicDecoder())
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    chunks = reply.parse_events(
        encode_events(block_start(0, {"type": "text", "text": "so"}), error, *message_end("end_turn", Usage()))
    )
    assert chunks == [TextChunk("so")]
    assert isinstance(reply.draft.error, Overloaded)
    assert "Overloaded" in str(reply.draft.error)


def test_an_error_instead_of_a_complete_message_is_reported() -> None:
    reply = ReplyParser(AnthropicDecoder())
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}
    assert reply.parse_reply(json.dumps(error).encode()) == []
    assert isinstance(reply.draft.error, BadRequest)


def test_a_reply_with_a_stop_reason_is_complete_without_the_last_event() -> None:
    reply = ReplyParser(AnthropicDecoder())
    reply.parse_events(encode_events(*message_end("end_turn", Usage())[:1]))
    assert reply.is_complete
    assert not reply.draft.is_done
    assert reply.finish() == [UsageChunk(Usage()), EndChunk("stop")]


def test_token_counts_and_indexes_in_other_types_are_accepted() -> None:
    start = {"type": "message_start", "message": {"usage": {"input_tokens": 9.0, "output_tokens": "1"}}}
    text = {"type": "content_block_delta", "index": "0", "delta": {"type": "text_delta", "text": "a"}}
    assert parse_chunks(start, text) == [TextChunk("a"), UsageChunk(Usage(9, 1, 0)), EndChunk("stop")]
    invalid = {"type": "message_start", "message": {"usage": {"input_tokens": "many"}}}
    assert parse_chunks(invalid, text) == [TextChunk("a"), EndChunk("stop")]


@pytest.mark.parametrize(("stop_reason", "arguments"), [("max_tokens", ""), ("tool_use", '{"command":"ls"}')])
def test_the_last_call_of_a_complete_reply_has_no_arguments_when_the_reply_was_cut(
    stop_reason: str, arguments: str
) -> None:
    block = {"type": "tool_use", "id": "a", "name": "shell", "input": {"command": "ls"}}
    reply = ReplyParser(AnthropicDecoder())
    chunks = reply.parse_reply(encode_events({"content": [block], "stop_reason": stop_reason})[0])
    assert chunks == [CallChunk(0, "a", "shell", arguments)]


def test_a_reply_is_parsed_in_linear_time() -> None:
    def make(size: int) -> list[bytes]:
        return encode_events(block_start(0, THINKING), *[block_delta(0, "thinking_delta", thinking="x" * 50)] * size)

    def parse(payloads: list[bytes]) -> None:
        ReplyParser(AnthropicDecoder()).parse_events(payloads)

    assert_linear(make, parse, 2_000)
