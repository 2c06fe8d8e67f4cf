"""A conversation is worded once: requests of the same conversation say what a fresh one would, and make what is new."""

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
from hark.providers.request_parts import KEPT_BYTES, folded

ENDPOINT = Endpoint("http://127.0.0.1:1/v1", "fake")
PICTURE = Attachment("image/png", "p.png", "aGVsbG8=" * 1_000)
TALK: list[Message] = [
    UserMessage("1", "hi", "Ann"),
    Note("[This turn failed: bad_key. There was no reply yet.]"),
    UserMessage("2", "x" * KEPT_BYTES, attachments=(PICTURE, Attachment("text/plain", "notes.txt"))),
    AssistantMessage("looking ", (Call("c1", "look"), Call("c2", "look")), (Reasoning("hm", "signed"),)),
    CallResult("c1", "look", "seen", Effect.COMPLETED, attachments=(PICTURE,)),
    CallResult("c2", "look", "", Effect.COMPLETED, attachments=(PICTURE,)),
    UserMessage("3", "and \ud83d half a pair"),
    AssistantMessage(reasoning=(Reasoning("only a thought", "signed"),)),
    AssistantMessage("y" * KEPT_BYTES + "\ud83d"),
    Note("[interrupted]"),
    UserMessage("4", ""),
]

Encode = Callable[[Request, Endpoint], bytes]


@pytest.fixture(params=[chat, responses, anthropic], ids=lambda one: one.__name__)
def encode(request: pytest.FixtureRequest) -> Encode:
    return request.param.encode_request


def same(encode: Encode, messages: Sequence[Message], memo: dict[object, object]) -> None:
    kept = encode(Request("be kind", messages, memo=memo), ENDPOINT)
    assert json.loads(kept) == json.loads(encode(Request("be kind", messages), ENDPOINT))


def test_a_conversation_that_grows_is_worded_as_if_it_were_new(encode: Encode) -> None:
    memo: dict[object, object] = {}
    for count in range(1, len(TALK) + 1):
        same(encode, TALK[:count], memo)
        same(encode, tuple(TALK[:count]), memo)  # asked once more


def test_a_conversation_that_went_back_or_was_summarised_is_worded_as_it_is_now(encode: Encode) -> None:
    memo: dict[object, object] = {}
    for messages in (TALK, TALK[:3], [*TALK[:3], UserMessage("9", "other")], [Note("[summary]"), *TALK[6:]], []):
        same(encode, messages, memo)


class Counting:
    """Takes messages, and counts how many it was given in all."""

    taken = 0

    def add(self, message: Message) -> None:
        Counting.taken += 1


def test_a_thousand_requests_of_one_conversation_word_each_message_once() -> None:
    memo: dict[object, object] = {}
    messages: list[Message] = []
    for number in range(1_000):
        messages.append(UserMessage(str(number), "still there?"))
        folded(Request("", tuple(messages), memo=memo), Counting)
    assert Counting.taken == 1_000


def test_without_a_memo_nothing_is_kept() -> None:
    before, request = Counting.taken, Request("", TALK)
    folded(request, Counting)
    folded(Request("", TALK), Counting)
    assert Counting.taken == before + 2 * len(TALK)
