import json
from typing import Any

import pytest

from hark.protocol.outcomes import Usage
from hark.protocol.provider import (
    CallChunk,
    Chunk,
    ContentRefused,
    ContextTooLong,
    EndChunk,
    ProviderError,
    RateLimited,
    ReasoningChunk,
    ReasoningEnd,
    TextChunk,
    TransientProviderError,
    UsageChunk,
)
from hark.providers.openai.responses_reply import ResponsesDecoder
from hark.providers.reply_parser import ReplyParser
from tests.fakes.models.responses_events import response, usage_fields
from tests.linear_time import assert_linear

Wire = dict[str, Any]
CALL: Wire = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": ""}
REASONING: Wire = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xyz"}


def encode_events(*events: Wire) -> list[bytes]:
    return [json.dumps(event).encode() for event in events]


def make_end_event(status: str = "completed", **fields: Any) -> Wire:
    return {"type": f"response.{status}", "response": response(status, **fields)}


def make_item_added(item: Wire, index: int = 0) -> Wire:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def make_item_done(item: Wire, index: int = 0) -> Wire:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def parse_chunks(*events: Wire, end: Wire | None = None) -> list[Chunk]:
    reply = ReplyParser(ResponsesDecoder())
    chunks = reply.parse_events(encode_events(*events, end or make_end_event()))
    assert reply.draft.error is None
    assert reply.draft.is_done
    return chunks + reply.finish()


def parse_error(*events: Wire) -> ProviderError:
    reply = ReplyParser(ResponsesDecoder())
    reply.parse_events(encode_events(*events))
    assert reply.draft.error is not None
    return reply.draft.error


@pytest.mark.parametrize(
    ("reason", "expected"),
    [("max_output_tokens", "length"), ("content_filter", "refusal"), ("something_new", "length")],
)
def test_the_reason_of_an_incomplete_response_is_mapped_to_an_end_reason(reason: str, expected: str) -> None:
    assert parse_chunks(end=make_end_event("incomplete", incomplete_details={"reason": reason})) == [EndChunk(expected)]


def test_a_refusal_is_shown_and_becomes_the_end_reason() -> None:
    pieces = [{"type": "response.refusal.delta", "delta": delta} for delta in ("I", " won't")]
    assert parse_chunks(*pieces) == [TextChunk("I"), TextChunk(" won't"), EndChunk("refusal")]


def test_a_refusal_in_a_complete_response_becomes_the_end_reason() -> None:
    reply = ReplyParser(ResponsesDecoder())
    refused: Wire = {"type": "message", "content": [{"type": "refusal", "refusal": "I won't"}]}
    chunks = reply.parse_reply(encode_events(response("completed", output=[refused]))[0])
    assert chunks + reply.finish() == [TextChunk("I won't"), EndChunk("refusal")]


def test_arguments_sent_in_one_piece_are_yielded_once() -> None:
    complete_call = {**CALL, "arguments": "{}"}
    expected = [CallChunk(0, "call_1", "look"), CallChunk(0, arguments="{}"), EndChunk("calls")]
    assert parse_chunks(make_item_added(CALL), make_item_done(complete_call)) == expected
    assert parse_chunks(make_item_done(complete_call)) == expected
    delta = {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{}"}
    assert parse_chunks(make_item_added(CALL), delta, make_item_done(complete_call)) == expected


def test_arguments_for_an_unknown_call_are_ignored() -> None:
    assert parse_chunks({"type": "response.function_call_arguments.delta", "output_index": 4, "delta": "{}"}) == [
        EndChunk("stop")
    ]


def test_a_call_without_a_name_is_reported_as_an_error() -> None:
    assert parse_error(make_item_added({**CALL, "name": ""})).code == "bad_stream"


@pytest.mark.parametrize("missing", [{"encrypted_content": None}, {"id": None}, {"status": "incomplete"}])
def test_reasoning_that_cannot_be_sent_back_is_not_stored(missing: Wire) -> None:
    assert parse_chunks(make_item_done({**REASONING, **missing})) == [EndChunk("stop")]


def test_completed_reasoning_is_stored_without_its_status() -> None:
    assert parse_chunks(make_item_added(REASONING)) == [EndChunk("stop")]
    (stored, _) = parse_chunks(
        make_item_done({**REASONING, "status": "completed", "content": [{"type": "reasoning_text", "text": "hm"}]})
    )
    assert isinstance(stored, ReasoningEnd)
    content = [{"type": "reasoning_text", "text": "hm"}]
    assert json.loads(stored.reasoning.data) == {**REASONING, "content": content}


def test_plain_text_reasoning_from_an_open_model_is_shown() -> None:
    assert parse_chunks({"type": "response.reasoning_text.delta", "delta": "hm"})[0] == ReasoningChunk("hm")


def test_the_usage_is_yielded_before_the_end() -> None:
    assert parse_chunks(end=make_end_event(usage=usage_fields(Usage(9, 3, 5)))) == [
        UsageChunk(Usage(9, 3, 5)),
        EndChunk("stop"),
    ]


def test_events_after_the_end_are_ignored() -> None:
    reply = ReplyParser(ResponsesDecoder())
    assert reply.parse_events([*encode_events(make_end_event()), b"[DONE]", b"nonsense"]) == []
    assert reply.draft.error is None


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": "server_error", "message": "it broke"}, TransientProviderError),
        ({"code": "rate_limit_exceeded", "message": "it broke"}, RateLimited),
        ({"code": "invalid_prompt", "message": "it broke"}, ContentRefused),
        ({"code": "context_length_exceeded", "message": "it broke"}, ContextTooLong),
        (None, TransientProviderError),
    ],
)
def test_a_failed_response_is_reported_with_its_reason(error: Wire | None, kind: type[ProviderError]) -> None:
    reported = parse_error(make_end_event("failed", error=error))
    assert type(reported) is kind
    assert ("it broke" if error else "no reason given") in str(reported)


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "rate_limit_exceeded", "message": "slow down", "param": None},
        {"type": "error", "error": {"code": "rate_limit_exceeded", "message": "slow down"}},
        {"error": {"code": "rate_limit_exceeded", "message": "slow down"}},
    ],
)
def test_an_error_event_in_any_form_is_reported(event: Wire) -> None:
    reported = parse_error(event)
    assert isinstance(reported, RateLimited)
    assert "slow down" in str(reported)


def make_text_delta(index: int, text: str, kind: str = "output_text") -> Wire:
    return {"type": f"response.{kind}.delta", "output_index": index, "delta": text}


def test_messages_of_one_response_are_separated_by_a_blank_line() -> None:
    chunks = parse_chunks(
        make_item_added({"type": "message"}),
        make_text_delta(0, "Looking"),
        make_text_delta(0, "."),
        make_item_added({"type": "message"}, 1),
        make_text_delta(1, "# Result"),
        make_text_delta(1, " 1"),
    )
    assert "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk)) == "Looking.\n\n# Result 1"


def test_messages_of_a_complete_response_are_separated_by_a_blank_line() -> None:
    messages: list[Wire] = [
        {"type": "message", "content": [{"type": "output_text", "text": text}, {"type": "output_text", "text": "."}]}
        for text in ("Looking", "# Result")
    ]
    reply = ReplyParser(ResponsesDecoder())
    chunks = reply.parse_reply(
        encode_events(response("completed", output=[REASONING, messages[0], CALL, messages[1]]))[0]
    )
    assert "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk)) == "Looking.\n\n# Result."


def test_one_message_after_other_items_does_not_begin_with_a_blank_line() -> None:
    assert parse_chunks(make_item_done(CALL), make_text_delta(1, "a"))[-2] == TextChunk("a")


def test_numbers_in_other_types_are_accepted() -> None:
    end = make_end_event(usage={"input_tokens": 9.0, "output_tokens": "3"})
    delta = {"type": "response.output_text.delta", "output_index": "1", "delta": "a"}
    assert parse_chunks(delta, end=end) == [TextChunk("a"), UsageChunk(Usage(9, 3, 0)), EndChunk("stop")]
    assert parse_chunks(end=make_end_event(usage={"input_tokens": []})) == [EndChunk("stop")]


def test_a_reply_is_parsed_in_linear_time() -> None:
    def make(size: int) -> list[bytes]:
        return encode_events(*(make_text_delta(number, "x" * 50) for number in range(size)))

    def parse(payloads: list[bytes]) -> None:
        ReplyParser(ResponsesDecoder()).parse_events(payloads)

    assert_linear(make, parse, 2_000)
