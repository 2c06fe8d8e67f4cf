"""Replies in the formats that the vendors publish, validated with the vendors' SDK types."""

from pathlib import Path

import pytest

from hark.protocol.messages import Reasoning
from hark.protocol.outcomes import Usage
from hark.protocol.provider import CallChunk, Chunk, EndChunk, ReasoningChunk, ReasoningEnd, TextChunk, UsageChunk
from hark.providers.anthropic.provider import Anthropic
from hark.providers.openai.chat import OpenAIChat
from hark.providers.openai.responses import OpenAIResponses
from hark.providers.sse import SseParser
from tests.fakes.models.behaviours import call_chunks, http_response, thinking_chunks
from tests.fakes.models.event_writer import event_writer_for
from tests.providers.provider_fixture import Api, collect_reply_to
from tests.providers.vendor_types import load_vendor_type

FIXTURE_FOLDER = Path(__file__).parent / "fixtures"
ITEM = (
    '{"type":"reasoning","id":"rs_01Hark","summary":[{"type":"summary_text","text":"**Two rooms**"},'
    '{"type":"summary_text","text":"I look into both."}],"encrypted_content":"gAAAAABwhole=="}'
)
REASONING = "Two rooms: I look into both."
SUMMARY = "**Two rooms**\n\nI look into both."
ENDING: list[Chunk] = [UsageChunk(Usage(2112, 89, 2000)), EndChunk("calls")]
CHAT: tuple[str, list[Chunk]] = (REASONING, [])
RESPONSES: tuple[str, list[Chunk]] = (SUMMARY, [ReasoningEnd(Reasoning(SUMMARY, data=ITEM))])
ANTHROPIC: tuple[str, list[Chunk]] = (
    REASONING,
    [
        ReasoningEnd(Reasoning(REASONING, "EqQBCgIYAhIM1gbcDa9GJwZA2b3h")),
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


@pytest.mark.parametrize(("api", "name", "reasoning", "stored"), FIXTURES)
async def test_a_reply_in_a_vendors_published_format_is_parsed(
    api: Api, name: str, reasoning: str, stored: list[Chunk]
) -> None:
    # A Responses reply counts all input in one number, Anthropic's counts the cache separately. Both mean 2112.
    collected = await collect_reply_to(http_response(200, (FIXTURE_FOLDER / name).read_bytes(), ""), api=api)
    assert collected.error is None
    assert "".join(chunk.text for chunk in collected.chunks if isinstance(chunk, ReasoningChunk)) == reasoning
    assert [chunk for chunk in collected.chunks if isinstance(chunk, ReasoningEnd)] == stored
    assert collected.text == "Let me look."
    calls = [chunk for chunk in collected.chunks if isinstance(chunk, CallChunk)]
    assert [(chunk.index, chunk.name) for chunk in calls if chunk.id] == [(0, "look"), (1, "wait")]
    arguments = ["".join(chunk.arguments for chunk in calls if chunk.index == index) for index in (0, 1)]
    assert arguments[0].replace(" ", "") == '{"room":"kitchen"}'
    assert arguments[1] in ("", "{}")
    assert collected.chunks[-2:] == ENDING


def read_events(name: str) -> list[bytes]:
    events = SseParser()
    data = events.feed((FIXTURE_FOLDER / name).read_bytes()) + events.finish()
    return [event for event in data if event not in (b"[DONE]", b'{"type": "ping"}')]


EVENT_TYPES: list[tuple[str, str]] = [
    ("chat_reasoning_calls.sse", "openai.types.chat.ChatCompletionChunk"),
    ("responses_reasoning_calls.sse", "openai.types.responses.ResponseStreamEvent"),
    ("anthropic_thinking_calls.sse", "anthropic.types.RawMessageStreamEvent"),
]
REPLY_TYPES: list[tuple[str, str]] = [
    ("chat_whole.json", "openai.types.chat.ChatCompletion"),
    ("responses_whole.json", "openai.types.responses.Response"),
    ("anthropic_whole.json", "anthropic.types.Message"),
]


@pytest.mark.parametrize(("name", "vendor"), EVENT_TYPES)
def test_each_event_in_the_fixtures_validates_against_the_vendors_sdk_types(name: str, vendor: str) -> None:
    events = read_events(name)
    assert len(events) > 8
    for event in events:
        load_vendor_type(vendor).validate_json(event)


@pytest.mark.parametrize(("name", "vendor"), REPLY_TYPES)
def test_complete_replies_in_the_fixtures_validate_against_the_vendors_sdk_types(name: str, vendor: str) -> None:
    load_vendor_type(vendor).validate_json((FIXTURE_FOLDER / name).read_bytes())


PATHS = ["/chat/completions", "/responses", "/messages"]


@pytest.mark.parametrize(("path", "fixture"), list(zip(PATHS, EVENT_TYPES, strict=True)))
def test_fake_server_events_validate_against_the_vendors_sdk_types(path: str, fixture: tuple[str, str]) -> None:
    for event in event_writer_for(path).events(thinking_chunks(2)):
        if event.get("type") != "ping":
            load_vendor_type(fixture[1]).validate_python(event)


@pytest.mark.parametrize(("path", "fixture"), list(zip(PATHS, REPLY_TYPES, strict=True)))
def test_complete_fake_server_replies_validate_against_the_vendors_sdk_types(
    path: str, fixture: tuple[str, str]
) -> None:
    chunks = [TextChunk("so"), *call_chunks(2), UsageChunk(Usage(3, 4, 1)), EndChunk("calls")]
    load_vendor_type(fixture[1]).validate_python(event_writer_for(path).complete_reply(chunks))
