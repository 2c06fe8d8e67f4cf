import json
from typing import Any

import pytest

from hark.protocol.outcomes import Usage
from hark.protocol.provider import CallChunk, Chunk, EndChunk, ReasoningChunk, TextChunk, UsageChunk
from hark.providers.openai.chat_reply import ChatDecoder
from hark.providers.reply_parser import ReplyParser
from tests.fakes.models.behaviours import call, call_part, delta, usage
from tests.linear_time import assert_linear


def parse_chunks(*events: Any) -> list[Chunk]:
    reply = ReplyParser(ChatDecoder())
    chunks = reply.parse_events([*(json.dumps(event).encode() for event in events), b"[DONE]"])
    assert reply.draft.error is None
    return chunks + reply.finish()


def select_call_chunks(chunks: list[Chunk]) -> list[CallChunk]:
    return [chunk for chunk in chunks if isinstance(chunk, CallChunk)]


def make_complete_call(call_id: str, name: str) -> dict[str, Any]:
    return {"id": call_id, "function": {"name": name, "arguments": "{}"}}


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "refusal"),
        ("tool_calls", "stop"),
        ("eos", "stop"),
    ],
)
def test_a_finish_reason_without_calls_is_mapped_to_an_end_reason(finish: str, reason: str) -> None:
    assert parse_chunks(delta(finish)) == [EndChunk(reason)]


@pytest.mark.parametrize(
    ("finish", "reason"),
    [("tool_calls", "calls"), ("function_call", "calls"), ("stop", "calls"), ("length", "length")],
)
def test_a_finish_reason_with_calls_is_mapped_to_an_end_reason(finish: str, reason: str) -> None:
    assert parse_chunks(delta(tool_calls=[call(0, "a", "look", "{}")]), delta(finish))[-1] == EndChunk(reason)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_separate_from_the_text(field: str) -> None:
    events = [delta(**{field: "hm", "content": None}), delta(**{field: None, "content": "so"}), delta("stop")]
    assert parse_chunks(*events) == [ReasoningChunk("hm"), TextChunk("so"), EndChunk("stop")]


def test_a_refusal_is_shown_and_becomes_the_end_reason() -> None:
    assert parse_chunks(delta(refusal="I"), delta(refusal=" won't"), delta("stop")) == [
        TextChunk("I"),
        TextChunk(" won't"),
        EndChunk("refusal"),
    ]


def test_nulls_missing_choices_and_unknown_fields_are_ignored() -> None:
    null_choice = {"choices": [{"delta": None, "finish_reason": None, "logprobs": None}], "usage": None, "error": None}
    null_delta = delta(role="assistant", content=None, tool_calls=None, refusal=None, annotations=[])
    assert parse_chunks({}, {"choices": None}, {"choices": []}, null_choice, null_delta, delta("stop")) == [
        EndChunk("stop")
    ]


def test_only_the_last_usage_report_counts() -> None:
    first = {**delta(content="a"), "usage": {"prompt_tokens": 5, "completion_tokens": None}}
    assert parse_chunks(first, delta("stop"), usage(5, 9, 3)) == [
        TextChunk("a"),
        UsageChunk(Usage(5, 9, 3)),
        EndChunk("stop"),
    ]


def test_complete_calls_without_an_index_are_separate_calls() -> None:
    chunks = select_call_chunks(
        parse_chunks(
            delta(tool_calls=[make_complete_call("a", "look"), make_complete_call("b", "look")]), delta("stop")
        )
    )
    assert chunks == [CallChunk(0, "a", "look", "{}"), CallChunk(1, "b", "look", "{}")]


def test_calls_with_the_same_index_are_separated_by_their_ids() -> None:
    chunks = select_call_chunks(
        parse_chunks(delta(tool_calls=[call(0, "a", "look", "{}")]), delta(tool_calls=[call(0, "b", "see", "{}")]))
    )
    assert chunks == [CallChunk(0, "a", "look", "{}"), CallChunk(1, "b", "see", "{}")]


def test_a_repeated_id_and_name_continue_the_same_call() -> None:
    chunks = select_call_chunks(
        parse_chunks(delta(tool_calls=[call(0, "a", "look", '{"x"')]), delta(tool_calls=[call(0, "a", "look", ": 1}")]))
    )
    assert chunks == [CallChunk(0, "a", "look", '{"x"'), CallChunk(0, arguments=": 1}")]


def test_arguments_without_an_index_belong_to_the_last_call() -> None:
    part = {"function": {"arguments": "{}"}}
    chunks = select_call_chunks(
        parse_chunks(delta(tool_calls=[make_complete_call("a", "look") | {"index": 3}]), delta(tool_calls=[part]))
    )
    assert [chunk.index for chunk in chunks] == [0, 0]


@pytest.mark.parametrize("call_id", [None, ""])
def test_calls_without_an_id_get_unique_ids(call_id: str | None) -> None:
    calls_without_id = [{"id": call_id, "function": {"name": "look", "arguments": "{}"}}] * 2
    first, second = select_call_chunks(parse_chunks(delta(tool_calls=calls_without_id)))
    again = select_call_chunks(parse_chunks(delta(tool_calls=calls_without_id)))
    ids = {first.id, second.id, *(chunk.id for chunk in again)}
    assert len(ids) == 4
    assert all(new_id.startswith("call_") and len(new_id) > 5 for new_id in ids)


def test_a_repeated_call_id_is_replaced() -> None:
    both = [call(0, "same", "look", "{}"), call(1, "same", "look", "{}")]
    first, second = select_call_chunks(parse_chunks(delta(tool_calls=both)))
    assert (first.id, first.index, second.index) == ("same", 0, 1)
    assert second.id != "same"


def test_interleaved_arguments_are_assigned_to_their_calls() -> None:
    opening = [delta(tool_calls=[call(1, "b", "see", "")]), delta(tool_calls=[call(0, "a", "look", "")])]
    parts = [delta(tool_calls=[call_part(1, "1"), call_part(0, "0")])]
    assert select_call_chunks(parse_chunks(*opening, *parts)) == [
        CallChunk(0, "b", "see"),
        CallChunk(1, "a", "look"),
        CallChunk(0, arguments="1"),
        CallChunk(1, arguments="0"),
    ]


def test_arguments_sent_as_an_object_are_encoded_as_json() -> None:
    eager = {"id": "a", "function": {"name": "look", "arguments": {"at": [1, 2]}}}
    assert select_call_chunks(parse_chunks(delta(tool_calls=[eager]))) == [CallChunk(0, "a", "look", '{"at":[1,2]}')]


@pytest.mark.parametrize("end", [delta("tool_calls"), b"[DONE]"])
def test_a_call_that_never_gets_a_name_is_reported_as_an_error(end: Any) -> None:
    reply = ReplyParser(ChatDecoder())
    events = [json.dumps(delta(tool_calls=[call_part(0, "{}")])).encode()]
    events.append(end if isinstance(end, bytes) else json.dumps(end).encode())
    assert reply.parse_events(events) == []
    assert reply.draft.error is not None
    assert reply.draft.error.code == "bad_stream"


def make_parts(thinking: Any, text: str) -> list[dict[str, Any]]:
    return [{"type": "thinking", "thinking": thinking, "closed": True}, {"type": "text", "text": text}]


THOUGHT = [{"type": "text", "text": "h"}, {"type": "text", "text": "m"}]


def test_content_in_parts_is_split_into_reasoning_and_text() -> None:
    reference = {"type": "reference", "reference_ids": [1]}
    chunks = parse_chunks(
        delta(content=make_parts(THOUGHT, "")), delta(content=[*make_parts("!", "so"), reference]), delta("stop")
    )
    assert chunks == [ReasoningChunk("h"), ReasoningChunk("m"), ReasoningChunk("!"), TextChunk("so"), EndChunk("stop")]


def test_a_complete_reply_in_parts_is_split_into_reasoning_and_text() -> None:
    reply = ReplyParser(ChatDecoder())
    choice = {"message": {"content": make_parts(THOUGHT, "so")}, "finish_reason": "stop"}
    chunks = reply.parse_reply(json.dumps({"choices": [choice]}).encode())
    assert chunks + reply.finish() == [ReasoningChunk("h"), ReasoningChunk("m"), TextChunk("so"), EndChunk("stop")]


@pytest.mark.parametrize("index", [0, "0", 0.0, None, "first"])
def test_a_call_is_complete_when_its_id_name_and_arguments_arrive_separately(index: Any) -> None:
    parts: list[dict[str, Any]] = [
        {"id": "a", "type": "function"},
        {"function": {"arguments": "{"}},
        {"function": {"name": "look"}},
        {"function": {"arguments": "}"}},
        {"id": "a", "function": {"name": "look", "arguments": ""}},
    ]
    chunks = select_call_chunks(parse_chunks(*(delta(tool_calls=[{**part, "index": index}]) for part in parts)))
    assert chunks == [CallChunk(0, "a", "look", "{"), CallChunk(0, arguments="}")]


def test_calls_with_ids_before_their_names_are_separate_calls() -> None:
    ids = [delta(tool_calls=[{"index": str(number), "id": f"c{number}"}]) for number in range(2)]
    names = [delta(tool_calls=[{"index": number, "function": {"name": "look"}}]) for number in range(2)]
    chunks = select_call_chunks(parse_chunks(*ids, *names))
    assert chunks == [CallChunk(0, "c0", "look"), CallChunk(1, "c1", "look")]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"prompt_tokens": 12.0, "completion_tokens": "3"}, [UsageChunk(Usage(12, 3, 0))]),
        ({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 2.0}}, [UsageChunk(Usage(5, 0, 2))]),
        ({"prompt_tokens": 12.5}, []),
        ({"prompt_tokens": []}, []),
        ("none", []),
        (None, []),
    ],
)
def test_a_reply_with_unusual_token_counts_is_complete(counts: Any, expected: list[Chunk]) -> None:
    chunks = parse_chunks({**delta(content="a"), "usage": counts}, delta("stop"))
    assert chunks == [TextChunk("a"), *expected, EndChunk("stop")]


@pytest.mark.parametrize(
    "event",
    [
        delta(content="x" * 50),
        delta(content=make_parts("x" * 50, "y")),
        delta(tool_calls=[call_part(0, "x" * 50)]),
        delta(tool_calls=[{"id": "a", "function": {"name": "look", "arguments": "{}"}}]),
    ],
)
def test_a_reply_is_parsed_in_linear_time(event: Any) -> None:
    def parse(payloads: list[bytes]) -> None:
        ReplyParser(ChatDecoder()).parse_events(payloads)

    assert_linear(lambda size: [json.dumps(event).encode()] * size, parse, 2_000)
