"""Replies in the shapes that the vendors publish, which their own types can read as well."""

from pathlib import Path

import pytest

from hark.protocol.messages import Reasoning
from hark.protocol.outcomes import Usage
from hark.protocol.provider import CallChunk, Chunk, EndChunk, ReasoningChunk, ReasoningEnd, TextChunk, UsageChunk
from hark.providers.anthropic.provider import Anthropic
from hark.providers.openai.chat import OpenAIChat
from hark.providers.openai.responses import OpenAIResponses
from hark.providers.sse import SseParser
from tests.fakes.models.behaviours import answer, call_chunks, thinking_chunks
from tests.fakes.models.event_writer import speaker_for
from tests.providers.provider_fixture import Api, hear_one
from tests.providers.vendor_types import vendor_type

HERE = Path(__file__).parent / "fixtures"
ITEM = (
    '{"type":"reasoning","id":"rs_01Hark","summary":[{"type":"summary_text","text":"**Two rooms**"},'
    '{"type":"summary_text","text":"I look into both."}],"encrypted_content":"gAAAAABwhole=="}'
)
THOUGHT = "Two rooms: I look into both."
SUMMARY = "**Two rooms**\n\nI look into both."
ENDING: list[Chunk] = [UsageChunk(Usage(2112, 89, 2000)), EndChunk("calls")]
CHAT: tuple[str, list[Chunk]] = (THOUGHT, [])
RESPONSES: tuple[str, list[Chunk]] = (SUMMARY, [ReasoningEnd(Reasoning(SUMMARY, data=ITEM))])
ANTHROPIC: tuple[str, list[Chunk]] = (
    THOUGHT,
    [
        ReasoningEnd(Reasoning(THOUGHT, "EqQBCgIYAhIM1gbcDa9GJwZA2b3h")),
        ReasoningEnd(Reasoning(data="EmwKAhgBEgy3va3pzix")),
    ],
)
FIXTURES: list[tuple[Api, str, str, list[Chunk]]] = [
    (OpenAIChat, "chat_reasoning_calls.sse", *CHAT),
    (OpenAIChat, "chat_whole.json", *CHAT),
    (OpenAIResponses, "responses_reasoning_calls.sse", *RESPONSES),
    (OpenAIResponses, "responses_whole.json", *RESPONSES),
    (Anthropic, "anthropic_thinking_calls.sse", *ANTHROPIC),
    (Anthropic, "anthropic_whole.json", *ANTHROPIC),
]


@pytest.mark.parametrize(("api", "name", "thought", "kept"), FIXTURES)
async def test_a_published_reply_is_understood(api: Api, name: str, thought: str, kept: list[Chunk]) -> None:
    # A Responses reply counts all input as one figure, Anthropic's has the cache apart: both mean 2112.
    heard = await hear_one(answer(200, (HERE / name).read_bytes(), ""), api=api)
    assert heard.error is None
    assert "".join(chunk.text for chunk in heard.chunks if isinstance(chunk, ReasoningChunk)) == thought
    assert [chunk for chunk in heard.chunks if isinstance(chunk, ReasoningEnd)] == kept
    assert heard.text == "Let me look."
    calls = [chunk for chunk in heard.chunks if isinstance(chunk, CallChunk)]
    assert [(chunk.index, chunk.name) for chunk in calls if chunk.id] == [(0, "look"), (1, "wait")]
    arguments = ["".join(chunk.arguments for chunk in calls if chunk.index == index) for index in (0, 1)]
    assert arguments[0].replace(" ", "") == '{"room":"kitchen"}'
    assert arguments[1] in ("", "{}")
    assert heard.chunks[-2:] == ENDING


def in_stream(name: str) -> list[bytes]:
    events = SseParser()
    data = events.feed((HERE / name).read_bytes()) + events.finish()
    return [event for event in data if event not in (b"[DONE]", b'{"type": "ping"}')]


EVENT_TYPES: list[tuple[str, str]] = [
    ("chat_reasoning_calls.sse", "openai.types.chat.ChatCompletionChunk"),
    ("responses_reasoning_calls.sse", "openai.types.responses.ResponseStreamEvent"),
    ("anthropic_thinking_calls.sse", "anthropic.types.RawMessageStreamEvent"),
]
WHOLE_TYPES: list[tuple[str, str]] = [
    ("chat_whole.json", "openai.types.chat.ChatCompletion"),
    ("responses_whole.json", "openai.types.responses.Response"),
    ("anthropic_whole.json", "anthropic.types.Message"),
]


@pytest.mark.parametrize(("name", "vendor"), EVENT_TYPES)
def test_the_vendors_types_read_each_event_of_the_fixtures(name: str, vendor: str) -> None:
    events = in_stream(name)
    assert len(events) > 8
    for event in events:
        vendor_type(vendor).validate_json(event)


@pytest.mark.parametrize(("name", "vendor"), WHOLE_TYPES)
def test_the_vendors_types_read_the_whole_fixtures(name: str, vendor: str) -> None:
    vendor_type(vendor).validate_json((HERE / name).read_bytes())


PATHS = ["/chat/completions", "/responses", "/messages"]


@pytest.mark.parametrize(("path", "fixture"), list(zip(PATHS, EVENT_TYPES, strict=True)))
def test_the_vendors_types_read_what_the_fake_server_streams(path: str, fixture: tuple[str, str]) -> None:
    for event in speaker_for(path).events(thinking_chunks(2)):
        if event.get("type") != "ping":
            vendor_type(fixture[1]).validate_python(event)


@pytest.mark.parametrize(("path", "fixture"), list(zip(PATHS, WHOLE_TYPES, strict=True)))
def test_the_vendors_types_read_what_the_fake_server_says_whole(path: str, fixture: tuple[str, str]) -> None:
    said = [TextChunk("so"), *call_chunks(2), UsageChunk(Usage(3, 4, 1)), EndChunk("calls")]
    vendor_type(fixture[1]).validate_python(speaker_for(path).whole(said))
