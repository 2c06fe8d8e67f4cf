import json
from typing import Any

import pytest

from hark.protocol.outcomes import Usage
from hark.protocol.provider import CallChunk, Chunk, EndChunk, ReasoningChunk, TextChunk, UsageChunk
from hark.providers.openai.chat_reply import ChatDialect
from hark.providers.reply_fold import ReplyFold
from tests.fakes.models.behaviours import call, call_part, delta, usage


def fold(*events: Any) -> list[Chunk]:
    reply = ReplyFold(ChatDialect())
    chunks = reply.take([*(json.dumps(event).encode() for event in events), b"[DONE]"])
    assert reply.draft.error is None
    return chunks + reply.end()


def calls_in(chunks: list[Chunk]) -> list[CallChunk]:
    return [chunk for chunk in chunks if isinstance(chunk, CallChunk)]


def whole(call_id: str, name: str) -> dict[str, Any]:
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
def test_a_finish_reason_without_calls(finish: str, reason: str) -> None:
    assert fold(delta(finish)) == [EndChunk(reason)]


@pytest.mark.parametrize(
    ("finish", "reason"),
    [("tool_calls", "calls"), ("function_call", "calls"), ("stop", "calls"), ("length", "length")],
)
def test_a_finish_reason_with_calls(finish: str, reason: str) -> None:
    assert fold(delta(tool_calls=[call(0, "a", "look", "{}")]), delta(finish))[-1] == EndChunk(reason)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thinking_is_shown_apart_from_the_text(field: str) -> None:
    events = [delta(**{field: "hm", "content": None}), delta(**{field: None, "content": "so"}), delta("stop")]
    assert fold(*events) == [ReasoningChunk("hm"), TextChunk("so"), EndChunk("stop")]


def test_a_refusal_is_shown_and_is_the_reason() -> None:
    assert fold(delta(refusal="I"), delta(refusal=" won't"), delta("stop")) == [
        TextChunk("I"),
        TextChunk(" won't"),
        EndChunk("refusal"),
    ]


def test_nulls_missing_choices_and_unknown_fields_are_no_errors() -> None:
    null_choice = {"choices": [{"delta": None, "finish_reason": None, "logprobs": None}], "usage": None, "error": None}
    null_delta = delta(role="assistant", content=None, tool_calls=None, refusal=None, annotations=[])
    assert fold({}, {"choices": None}, {"choices": []}, null_choice, null_delta, delta("stop")) == [EndChunk("stop")]


def test_the_last_of_many_usages_counts_once() -> None:
    first = {**delta(content="a"), "usage": {"prompt_tokens": 5, "completion_tokens": None}}
    assert fold(first, delta("stop"), usage(5, 9, 3)) == [
        TextChunk("a"),
        UsageChunk(Usage(5, 9, 3)),
        EndChunk("stop"),
    ]


def test_a_whole_call_without_an_index_is_a_call_of_its_own() -> None:
    chunks = calls_in(fold(delta(tool_calls=[whole("a", "look"), whole("b", "look")]), delta("stop")))
    assert chunks == [CallChunk(0, "a", "look", "{}"), CallChunk(1, "b", "look", "{}")]


def test_calls_that_all_have_the_index_zero_are_told_apart_by_their_ids() -> None:
    chunks = calls_in(
        fold(delta(tool_calls=[call(0, "a", "look", "{}")]), delta(tool_calls=[call(0, "b", "see", "{}")]))
    )
    assert chunks == [CallChunk(0, "a", "look", "{}"), CallChunk(1, "b", "see", "{}")]


def test_a_call_whose_id_and_name_are_repeated_stays_one() -> None:
    chunks = calls_in(
        fold(delta(tool_calls=[call(0, "a", "look", '{"x"')]), delta(tool_calls=[call(0, "a", "look", ": 1}")]))
    )
    assert chunks == [CallChunk(0, "a", "look", '{"x"'), CallChunk(0, arguments=": 1}")]


def test_arguments_without_an_index_belong_to_the_last_call() -> None:
    part = {"function": {"arguments": "{}"}}
    chunks = calls_in(fold(delta(tool_calls=[whole("a", "look") | {"index": 3}]), delta(tool_calls=[part])))
    assert [chunk.index for chunk in chunks] == [0, 0]


@pytest.mark.parametrize("call_id", [None, ""])
def test_calls_without_an_id_get_one_each_that_no_other_has(call_id: str | None) -> None:
    nameless = [{"id": call_id, "function": {"name": "look", "arguments": "{}"}}] * 2
    first, second = calls_in(fold(delta(tool_calls=nameless)))
    again = calls_in(fold(delta(tool_calls=nameless)))
    ids = {first.id, second.id, *(chunk.id for chunk in again)}
    assert len(ids) == 4
    assert all(made.startswith("call_") and len(made) > 5 for made in ids)


def test_two_calls_of_a_reply_never_share_an_id() -> None:
    both = [call(0, "same", "look", "{}"), call(1, "same", "look", "{}")]
    first, second = calls_in(fold(delta(tool_calls=both)))
    assert (first.id, first.index, second.index) == ("same", 0, 1)
    assert second.id != "same"


def test_pieces_in_turns_find_their_call() -> None:
    opening = [delta(tool_calls=[call(1, "b", "see", "")]), delta(tool_calls=[call(0, "a", "look", "")])]
    parts = [delta(tool_calls=[call_part(1, "1"), call_part(0, "0")])]
    assert calls_in(fold(*opening, *parts)) == [
        CallChunk(0, "b", "see"),
        CallChunk(1, "a", "look"),
        CallChunk(0, arguments="1"),
        CallChunk(1, arguments="0"),
    ]


def test_arguments_as_an_object_become_its_text() -> None:
    eager = {"id": "a", "function": {"name": "look", "arguments": {"at": [1, 2]}}}
    assert calls_in(fold(delta(tool_calls=[eager]))) == [CallChunk(0, "a", "look", '{"at":[1,2]}')]


def test_a_call_without_a_name_is_an_error() -> None:
    reply = ReplyFold(ChatDialect())
    assert reply.take([json.dumps(delta(tool_calls=[call_part(0, "{}")])).encode()]) == []
    assert reply.draft.error is not None
    assert reply.draft.error.code == "bad_stream"
