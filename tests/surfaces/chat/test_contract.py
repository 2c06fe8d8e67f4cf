"""The contract of ChatSurface, tested on every chat platform."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path

import pytest

from hark.protocol.chat import Button, ButtonPressed, ChatError, ChatGone, IncomingMessage, OutgoingMessage
from hark.protocol.names import session_of_address
from hark.store.chat_ledger import SqliteChatLedger
from hark.surfaces.chat.outbox import DUPLICATE_MARK, Outbox
from tests.surfaces.chat.platform_fixtures import WAIT_SECONDS, PlatformFixture, platform_fixture

PLATFORMS = ["telegram", "discord", "slack", "matrix", "webhook"]

OpenPlatform = Callable[[], AbstractAsyncContextManager[PlatformFixture]]


@pytest.fixture(params=PLATFORMS)
def open_platform(request: pytest.FixtureRequest, tmp_path: Path) -> OpenPlatform:
    """Return a function that opens the fixture for a platform."""
    synapse = request.getfixturevalue("synapse") if request.param == "matrix" else None
    return lambda: platform_fixture(request.param, tmp_path, synapse)


# Receiving.


async def test_a_message_has_its_address_author_id_and_text(open_platform: OpenPlatform) -> None:
    async with open_platform() as platform:
        await platform.write("hello there")
        await platform.recorder.until(lambda: bool(platform.recorder.delivered))
        [message] = platform.recorder.delivered
        assert isinstance(message, IncomingMessage)
        assert (message.address, message.text, message.is_for_us) == (platform.address, "hello there", True)
        assert message.id
        assert message.author.id
        assert message.address.surface == platform.surface.name
        assert session_of_address(message.address).startswith(f"{platform.surface.name}:")


async def test_a_message_is_acknowledged_to_the_platform_only_after_it_was_stored(open_platform: OpenPlatform) -> None:
    async with open_platform() as platform:
        platform.recorder.gate.clear()
        await platform.write("hold this")
        await platform.recorder.until(lambda: bool(platform.recorder.attempts))
        assert not await platform.is_acked()
        platform.recorder.gate.set()
        await platform.until_acked()
        assert len(platform.recorder.delivered) == 1


async def test_a_message_that_could_not_be_stored_is_delivered_again_with_the_same_id(
    open_platform: OpenPlatform,
) -> None:
    async with open_platform() as platform:
        platform.recorder.errors.append(OSError("the disk is full"))
        await platform.write("store me")
        await platform.recorder.until(lambda: not platform.recorder.errors)
        await platform.redeliver()
        await platform.recorder.until(lambda: bool(platform.recorder.delivered))
        await platform.until_acked()
        assert {message.id for message in platform.recorder.attempts} == {platform.recorder.delivered[0].id}
        assert {message.address for message in platform.recorder.attempts} == {platform.address}


async def test_messages_have_distinct_ids_and_arrive_in_order(open_platform: OpenPlatform) -> None:
    async with open_platform() as platform:
        for text in ("one", "two", "three"):
            await platform.write(text)
            await platform.until_acked()
        await platform.recorder.until(lambda: len(platform.recorder.delivered) == 3)
        assert [one.text for one in platform.recorder.delivered if isinstance(one, IncomingMessage)] == [
            "one",
            "two",
            "three",
        ]
        assert len({one.id for one in platform.recorder.delivered}) == 3


# Sending.


async def test_a_message_is_shown_and_edited_under_the_id_that_send_returned(open_platform: OpenPlatform) -> None:
    async with open_platform() as platform:
        first = await platform.surface.send(platform.address, OutgoingMessage("first", key="s.t1:0"))
        second = await platform.surface.send(platform.address, OutgoingMessage("second", key="s.t1:1"))
        assert first != second
        assert await platform.shown_texts(2) == ["first", "second"]
        await platform.surface.edit(platform.address, first, OutgoingMessage("first, changed"))
        while (shown := await platform.shown_texts(2)) != ["first, changed", "second"]:
            assert shown == ["first", "second"]


async def test_a_message_of_the_maximum_length_is_accepted_completely(open_platform: OpenPlatform) -> None:
    async with open_platform() as platform:
        text = "a" * platform.surface.limits.characters
        await platform.surface.send(platform.address, OutgoingMessage(text, key="s.t1:0"))
        assert await platform.shown_texts(1) == [text]


async def test_a_button_press_returns_the_value_of_the_button(open_platform: OpenPlatform) -> None:
    async with open_platform() as platform:
        value = f"answer:{'q' * 40}:1"
        buttons = (Button("No", "answer:q:0"), Button("Yes", value))
        await platform.surface.send(platform.address, OutgoingMessage("may I?", buttons, key="ask:q"))
        await platform.press("Yes")
        await platform.recorder.until(lambda: bool(platform.recorder.delivered))
        [pressed] = platform.recorder.delivered
        assert isinstance(pressed, ButtonPressed)
        assert (pressed.address, pressed.value) == (platform.address, value)
        assert pressed.author.id


async def test_sending_to_an_inaccessible_chat_raises_chat_gone(open_platform: OpenPlatform) -> None:
    async with open_platform() as platform:
        closed = await platform.inaccessible_chat()
        with pytest.raises(ChatGone):
            await platform.surface.send(closed, OutgoingMessage("anyone?", key="s.t1:0"))


async def test_a_rate_limit_error_contains_the_wait_time(open_platform: OpenPlatform) -> None:
    async with open_platform() as platform:
        platform.rate_limit_next()
        with pytest.raises(ChatError) as caught:
            await platform.surface.send(platform.address, OutgoingMessage("hello", key="s.t1:0"))
        assert caught.value.retry_after == WAIT_SECONDS
        assert not isinstance(caught.value, ChatGone)


async def test_a_message_whose_response_was_lost_is_shown_once_or_marked_as_a_possible_duplicate(
    open_platform: OpenPlatform, tmp_path: Path
) -> None:
    ledger = SqliteChatLedger(tmp_path / "gateway.db")
    async with open_platform() as platform:
        outbox = Outbox(platform.surface, platform.address, ledger)
        platform.lose_next_answer()
        posted = await outbox.send("s.t1:0", OutgoingMessage("hello"))
        assert posted.id
        first, *others = await platform.shown_texts(1)
        assert first == "hello"
        assert others in ([], [f"{DUPLICATE_MARK}hello"])
        assert not (others and platform.surface.limits.knows_keys)
    await ledger.close()


async def test_typing_and_reactions_raise_only_the_errors_that_the_contract_allows(open_platform: OpenPlatform) -> None:
    async with open_platform() as platform:
        await platform.write("hi")
        await platform.recorder.until(lambda: bool(platform.recorder.delivered))
        closed = await platform.inaccessible_chat()
        for address, message in ((platform.address, platform.recorder.delivered[0].id), (closed, "1")):
            with suppress(ChatError, OSError):
                await platform.surface.show_typing(address)
            with suppress(ChatError, OSError):
                await platform.surface.react(address, message, "👀")
