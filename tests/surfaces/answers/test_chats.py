"""Texts at open questions in chats: in the fake chat of the tests, and on the servers of the real platforms."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from msgspec import structs

from hark.protocol.chat import IncomingMessage
from hark.surfaces.chat.questions import QUESTION_KEY
from hark.surfaces.chat.settings import ChatSettings
from tests.surfaces.answers.answer_cases import (
    CASES,
    KINDS,
    SAMPLE,
    AnswerCase,
    AskingModel,
    Conversation,
    check_texts,
)
from tests.surfaces.answers.platform_users import PLATFORMS, open_chat
from tests.surfaces.chat.chat_fixture import ANN, HOME, TestChat, chat_platform
from tests.waiting import until

PARTS = 4  # a homeserver takes about half a second for each text
UNLIMITED = ChatSettings(allow=("1",), per_minute=100_000)


async def newest_question(chat: TestChat) -> str:
    """Wait until the open question is shown and recorded. Return the id of its message."""

    async def find_question() -> str:
        shown = [shown.id for shown in chat.shown if shown.message.text.startswith("❓") and shown.edits == 0]
        is_sent = shown and chat.ledger and await chat.ledger.is_sent(HOME, QUESTION_KEY, shown[-1])
        return shown[-1] if is_sent else ""

    return await until(find_question, shows=lambda: chat.texts)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_directed", [True, False], ids=["reply", "no reply"])
@pytest.mark.parametrize("is_private", [True, False], ids=["private", "group"])
async def test_every_text_in_a_chat_has_the_effect_of_the_rule(
    tmp_path: Path, kind: str, is_directed: bool, is_private: bool
) -> None:
    model = AskingModel(kind)
    async with chat_platform(tmp_path, [], settings=UNLIMITED, provider=model.provider, approvals={"mode": "ask"}) as (
        chat,
        _,
    ):
        assert chat.agent is not None
        session = chat.agent.session("test:home")

        async def write(text: str, *, is_answer: bool = False) -> None:
            asked = "" if text == "go" else await newest_question(chat)
            replied_to = asked if is_answer else ""
            quoted = "❓ Which colour?" if replied_to else ""
            message = IncomingMessage(f"p{next(chat.ids)}", HOME, ANN, text, quoted=quoted, replied_to=replied_to)
            await chat.deliver(structs.replace(message, is_private=is_private))

        async def shown() -> str:
            return "\n".join(chat.texts)

        user = Conversation(session, lambda: write("go"), partial(write, is_answer=is_directed), shown)
        await check_texts(user, model, CASES, is_directed=is_directed, is_private=is_private)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", range(PARTS))
async def test_every_text_in_a_private_chat_of_a_platform_has_the_effect_of_the_rule(
    tmp_path: Path, request: pytest.FixtureRequest, platform: str, kind: str, part: int
) -> None:
    await check_platform(tmp_path, request, platform, kind, CASES[part::PARTS], is_group=False, is_reply=False)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", ["private reply", "group", "group reply"])
async def test_a_reply_or_a_text_in_a_group_of_a_platform_has_the_effect_of_the_rule(
    tmp_path: Path, request: pytest.FixtureRequest, platform: str, kind: str, place: str
) -> None:
    if (platform, place) == ("slack", "group reply"):
        pytest.skip("a message in a Slack thread can't reply to another message of the thread")
    is_group, is_reply = place.startswith("group"), place.endswith("reply")
    await check_platform(tmp_path, request, platform, kind, SAMPLE, is_group=is_group, is_reply=is_reply)


async def check_platform(
    home: Path,
    request: pytest.FixtureRequest,
    platform: str,
    kind: str,
    cases: Sequence[AnswerCase],
    *,
    is_group: bool,
    is_reply: bool,
) -> None:
    """Send all texts at open questions on a platform, and compare their effects with the rule."""
    synapse = request.getfixturevalue("synapse") if platform == "matrix" else None
    model = AskingModel(kind)
    opening = open_chat(platform, home, model.provider, synapse, is_group=is_group, approvals={"mode": "ask"})
    async with opening as chat:

        async def write(text: str) -> None:
            asked = "" if text == "go" else await chat.newest_question(model.asked)
            await chat.user.write(text, asked if is_reply else "")

        user = Conversation(chat.session, begin=lambda: write("go"), send=write, shown=chat.shown_text)
        await check_texts(user, model, cases, is_directed=is_reply, is_private=not is_group)
