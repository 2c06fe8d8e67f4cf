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
from hark.providers.anthropic.reply import AnthropicDialect
from hark.providers.reply_fold import ReplyFold
from tests.fakes.models.anthropic_events import closed, ended, message, opened, piece

Wire = dict[str, Any]
STOP = {"type": "message_stop"}
THINKING = {"type": "thinking", "thinking": "", "signature": ""}


def encoded(*events: Wire) -> list[bytes]:
    return [json.dumps(event).encode() for event in events]


def fold(*events: Wire, reason: str = "end_turn") -> list[Chunk]:
    reply = ReplyFold(AnthropicDialect())
    end = {"type": "message_delta", "delta": {"stop_reason": reason}}
    chunks = reply.take(encoded(*events, end, STOP))
    assert reply.draft.error is None
    assert reply.draft.is_done
    return chunks + reply.end()


@pytest.mark.parametrize(
    ("reason", "ours"),
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
def test_a_stop_reason(reason: str, ours: str) -> None:
    assert fold(reason=reason) == [EndChunk(ours)]


def test_thinking_that_is_cut_before_its_signature_is_not_kept() -> None:
    chunks = fold(opened(0, THINKING), piece(0, "thinking_delta", thinking="hm"), closed(0), reason="max_tokens")
    assert chunks == [ReasoningChunk("hm"), EndChunk("length")]


def test_a_signature_is_kept_only_once_its_block_is_closed() -> None:
    events = [opened(0, THINKING), piece(0, "thinking_delta", thinking="hm")]
    signed = [piece(0, "signature_delta", signature="ab"), piece(0, "signature_delta", signature="cd")]
    assert fold(*events, *signed) == [ReasoningChunk("hm"), EndChunk("stop")]
    assert fold(*events, *signed, closed(0)) == [
        ReasoningChunk("hm"),
        ReasoningEnd(Reasoning("hm", "abcd")),
        EndChunk("stop"),
    ]


def test_thinking_whose_text_is_hidden_is_kept_by_its_signature() -> None:
    chunks = fold(opened(0, THINKING), piece(0, "signature_delta", signature="s"), closed(0))
    assert chunks == [ReasoningEnd(Reasoning("", "s")), EndChunk("stop")]


def test_pings_and_what_is_not_known_mean_nothing() -> None:
    unknown = [
        {"type": "ping"},
        {"type": "something_new", "index": 3},
        opened(0, {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"a": 1}}),
        piece(0, "input_json_delta", partial_json="{}"),
        piece(1, "citations_delta", citation={"type": "char_location"}),
        closed(0),
    ]
    assert fold(*unknown) == [EndChunk("stop")]


def test_an_input_that_comes_with_its_block_is_the_arguments() -> None:
    block = {"type": "tool_use", "id": "t", "name": "look", "input": {"at": 1}}
    assert fold(opened(0, block), closed(0)) == [CallChunk(0, "t", "look", '{"at":1}'), EndChunk("calls")]


def test_a_call_that_the_limit_cut_is_told_as_that() -> None:
    block: Wire = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
    assert fold(opened(0, block), reason="max_tokens")[-1] == EndChunk("length")


def test_a_call_without_a_name_is_an_error() -> None:
    reply = ReplyFold(AnthropicDialect())
    assert reply.take(encoded(opened(0, {"type": "tool_use", "id": "t"}))) == []
    assert reply.draft.error is not None
    assert reply.draft.error.code == "bad_stream"


def test_what_was_cached_counts_as_input_and_the_last_figures_win() -> None:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20, "output_tokens": 1}
    start = {"type": "message_start", "message": message(usage=usage)}
    late = {"type": "message_delta", "delta": {"stop_reason": None}, "usage": {"output_tokens": 9}}
    assert fold(start, late) == [UsageChunk(Usage(125, 9, 100)), EndChunk("stop")]


def test_an_error_event_ends_the_reply_behind_what_came_before() -> None:
    reply = ReplyFold(AnthropicDialect())
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    chunks = reply.take(encoded(opened(0, {"type": "text", "text": "so"}), error, *ended("end_turn", Usage())))
    assert chunks == [TextChunk("so")]
    assert isinstance(reply.draft.error, Overloaded)
    assert "Overloaded" in str(reply.draft.error)


def test_an_error_in_the_place_of_a_whole_message_is_one() -> None:
    reply = ReplyFold(AnthropicDialect())
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}
    assert reply.take_whole(json.dumps(error).encode()) == []
    assert isinstance(reply.draft.error, BadRequest)


def test_a_reason_without_the_last_event_is_a_good_end() -> None:
    reply = ReplyFold(AnthropicDialect())
    reply.take(encoded(*ended("end_turn", Usage())[:1]))
    assert reply.is_complete
    assert not reply.draft.is_done
    assert reply.end() == [UsageChunk(Usage()), EndChunk("stop")]
