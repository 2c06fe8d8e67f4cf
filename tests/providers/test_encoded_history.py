"""Each message in a conversation is encoded once. Requests are the same with and without the encoding cache."""

import json
from collections.abc import Callable, Sequence

import pytest

from hark.protocol.messages import (
    AssistantMessage,
    Attachment,
    Call,
    CallResult,
    Effect,
    Message,
    Note,
    Reasoning,
    UserMessage,
)
from hark.protocol.provider import Request
from hark.providers.anthropic import provider as anthropic
from hark.providers.endpoint import Endpoint
from hark.providers.openai import chat, responses
from hark.providers.request_parts import MAX_CACHED_BYTES, encode_messages

ENDPOINT = Endpoint("http://127.0.0.1:1/v1", "fake")
PICTURE = Attachment("image/png", "p.png", "aGVsbG8=" * 1_000)
CONVERSATION: list[Message] = [
    UserMessage("1", "hi", "Ann"),
    Note("[This turn failed: bad_key. There was no reply yet.]"),
    UserMessage("2", "x" * MAX_CACHED_BYTES, attachments=(PICTURE, Attachment("text/plain", "notes.txt"))),
    AssistantMessage("looking ", (Call("c1", "look"), Call("c2", "look")), (Reasoning("hm", "signed"),)),
    CallResult("c1", "look", "seen", Effect.COMPLETED, attachments=(PICTURE,)),
    CallResult("c2", "look", "", Effect.COMPLETED, attachments=(PICTURE,)),
    UserMessage("3", "and \ud83d half a pair"),
    AssistantMessage(reasoning=(Reasoning("only a thought", "signed"),)),
    AssistantMessage("y" * MAX_CACHED_BYTES + "\ud83d"),
    Note("[interrupted]"),
    UserMessage("4", ""),
]

Encode = Callable[[Request, Endpoint], bytes]


@pytest.fixture(params=[chat, responses, anthropic], ids=lambda module: module.__name__)
def encode(request: pytest.FixtureRequest) -> Encode:
    return request.param.encode_request


def assert_same_encoding(encode: Encode, messages: Sequence[Message], memo: dict[object, object]) -> None:
    encoded = encode(Request("be kind", messages, memo=memo), ENDPOINT)
    assert json.loads(encoded) == json.loads(encode(Request("be kind", messages), ENDPOINT))


def test_requests_for_a_growing_conversation_are_the_same_with_and_without_a_cache(encode: Encode) -> None:
    memo: dict[object, object] = {}
    for count in range(1, len(CONVERSATION) + 1):
        assert_same_encoding(encode, CONVERSATION[:count], memo)
        assert_same_encoding(encode, tuple(CONVERSATION[:count]), memo)  # the same request again


def test_requests_for_a_rewound_or_compacted_conversation_are_the_same_with_and_without_a_cache(encode: Encode) -> None:
    memo: dict[object, object] = {}
    for messages in (
        CONVERSATION,
        CONVERSATION[:3],
        [*CONVERSATION[:3], UserMessage("9", "other")],
        [Note("[summary]"), *CONVERSATION[6:]],
        [],
    ):
        assert_same_encoding(encode, messages, memo)


class CountingEncoder:
    """A fake encoder that counts the messages it encodes."""

    added_count = 0

    def add(self, message: Message) -> None:
        CountingEncoder.added_count += 1


def test_a_thousand_requests_in_one_conversation_encode_each_message_once() -> None:
    memo: dict[object, object] = {}
    messages: list[Message] = []
    for number in range(1_000):
        messages.append(UserMessage(str(number), "still there?"))
        encode_messages(Request("", tuple(messages), memo=memo), CountingEncoder)
    assert CountingEncoder.added_count == 1_000


def test_messages_are_encoded_again_without_a_cache() -> None:
    before, request = CountingEncoder.added_count, Request("", CONVERSATION)
    encode_messages(request, CountingEncoder)
    encode_messages(Request("", CONVERSATION), CountingEncoder)
    assert CountingEncoder.added_count == before + 2 * len(CONVERSATION)
