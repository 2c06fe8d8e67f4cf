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
from hark.providers.openai.responses_reply import ResponsesDialect
from hark.providers.reply_fold import ReplyFold
from tests.fakes.models.responses_events import counted, response

Wire = dict[str, Any]
CALL: Wire = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": ""}
THOUGHT: Wire = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xyz"}


def encoded(*events: Wire) -> list[bytes]:
    return [json.dumps(event).encode() for event in events]


def ending(status: str = "completed", **fields: Any) -> Wire:
    return {"type": f"response.{status}", "response": response(status, **fields)}


def added(item: Wire, index: int = 0) -> Wire:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(item: Wire, index: int = 0) -> Wire:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def fold(*events: Wire, end: Wire | None = None) -> list[Chunk]:
    reply = ReplyFold(ResponsesDialect())
    chunks = reply.take(encoded(*events, end or ending()))
    assert reply.draft.error is None
    assert reply.draft.is_done
    return chunks + reply.end()


def failure(*events: Wire) -> ProviderError:
    reply = ReplyFold(ResponsesDialect())
    reply.take(encoded(*events))
    assert reply.draft.error is not None
    return reply.draft.error


@pytest.mark.parametrize(
    ("why", "ours"), [("max_output_tokens", "length"), ("content_filter", "refusal"), ("something_new", "length")]
)
def test_an_incomplete_response_tells_why(why: str, ours: str) -> None:
    assert fold(end=ending("incomplete", incomplete_details={"reason": why})) == [EndChunk(ours)]


def test_a_refusal_is_shown_and_is_the_reason() -> None:
    pieces = [{"type": "response.refusal.delta", "delta": delta} for delta in ("I", " won't")]
    assert fold(*pieces) == [TextChunk("I"), TextChunk(" won't"), EndChunk("refusal")]


def test_a_refusal_in_a_whole_response_is_the_reason() -> None:
    reply = ReplyFold(ResponsesDialect())
    refused: Wire = {"type": "message", "content": [{"type": "refusal", "refusal": "I won't"}]}
    chunks = reply.take_whole(encoded(response("completed", output=[refused]))[0])
    assert chunks + reply.end() == [TextChunk("I won't"), EndChunk("refusal")]


def test_arguments_in_one_piece_come_once() -> None:
    whole = {**CALL, "arguments": "{}"}
    expected = [CallChunk(0, "call_1", "look"), CallChunk(0, arguments="{}"), EndChunk("calls")]
    assert fold(added(CALL), done(whole)) == expected
    assert fold(done(whole)) == expected
    delta = {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{}"}
    assert fold(added(CALL), delta, done(whole)) == expected


def test_arguments_of_no_call_mean_nothing() -> None:
    assert fold({"type": "response.function_call_arguments.delta", "output_index": 4, "delta": "{}"}) == [
        EndChunk("stop")
    ]


def test_a_call_without_a_name_is_an_error() -> None:
    assert failure(added({**CALL, "name": ""})).code == "bad_stream"


@pytest.mark.parametrize("lack", [{"encrypted_content": None}, {"id": None}, {"status": "incomplete"}])
def test_reasoning_that_can_not_be_sent_back_is_not_kept(lack: Wire) -> None:
    assert fold(done({**THOUGHT, **lack})) == [EndChunk("stop")]


def test_reasoning_is_kept_when_it_is_done_and_without_its_status() -> None:
    assert fold(added(THOUGHT)) == [EndChunk("stop")]
    (kept, _) = fold(done({**THOUGHT, "status": "completed", "content": [{"type": "reasoning_text", "text": "hm"}]}))
    assert isinstance(kept, ReasoningEnd)
    content = [{"type": "reasoning_text", "text": "hm"}]
    assert json.loads(kept.reasoning.data) == {**THOUGHT, "content": content}


def test_plain_reasoning_of_an_open_model_is_shown() -> None:
    assert fold({"type": "response.reasoning_text.delta", "delta": "hm"})[0] == ReasoningChunk("hm")


def test_the_usage_comes_with_the_end() -> None:
    assert fold(end=ending(usage=counted(Usage(9, 3, 5)))) == [UsageChunk(Usage(9, 3, 5)), EndChunk("stop")]


def test_what_follows_the_end_is_not_heard() -> None:
    reply = ReplyFold(ResponsesDialect())
    assert reply.take([*encoded(ending()), b"[DONE]", b"nonsense"]) == []
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
def test_a_failed_response_says_why(error: Wire | None, kind: type[ProviderError]) -> None:
    told = failure(ending("failed", error=error))
    assert type(told) is kind
    assert ("it broke" if error else "no reason given") in str(told)


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "rate_limit_exceeded", "message": "slow down", "param": None},
        {"type": "error", "error": {"code": "rate_limit_exceeded", "message": "slow down"}},
        {"error": {"code": "rate_limit_exceeded", "message": "slow down"}},
    ],
)
def test_an_error_event_in_any_of_its_shapes_is_an_error(event: Wire) -> None:
    told = failure(event)
    assert isinstance(told, RateLimited)
    assert "slow down" in str(told)
