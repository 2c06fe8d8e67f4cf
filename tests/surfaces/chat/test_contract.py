"""What every chat platform keeps to, whichever it is: the contract of ChatSurface on all of them."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path

import pytest

from hark.protocol.chat import Button, ChatError, ChatGone, Outgoing, Pressed, Written
from hark.protocol.names import address_session
from hark.store.chat_ledger import SqliteChatLedger
from hark.surfaces.chat.outbox import AGAIN, Outbox
from tests.surfaces.chat.platforms import LONG_SECONDS, Seat, seated

PLATFORMS = ["telegram", "discord", "slack", "matrix", "webhook"]

Sit = Callable[[], AbstractAsyncContextManager[Seat]]


@pytest.fixture(params=PLATFORMS)
def sit(request: pytest.FixtureRequest, tmp_path: Path) -> Sit:
    """Return a way to sit down at a platform, whose servers are those of the test."""
    synapse = request.getfixturevalue("synapse") if request.param == "matrix" else None
    return lambda: seated(request.param, tmp_path, synapse)


# In.


async def test_a_message_says_where_it_was_written_by_whom_and_what(sit: Sit) -> None:
    async with sit() as seat:
        await seat.write("hello there")
        await seat.keeper.until(lambda: bool(seat.keeper.kept))
        [message] = seat.keeper.kept
        assert isinstance(message, Written)
        assert (message.address, message.text, message.is_for_us) == (seat.address, "hello there", True)
        assert message.id
        assert message.author.id
        assert message.address.surface == seat.surface.name
        assert address_session(message.address).startswith(f"{seat.surface.name}:")


async def test_the_platform_gets_its_ack_only_when_the_message_was_kept(sit: Sit) -> None:
    async with sit() as seat:
        seat.keeper.gate.clear()
        await seat.write("hold this")
        await seat.keeper.until(lambda: bool(seat.keeper.tried))
        assert not await seat.is_acked()
        seat.keeper.gate.set()
        await seat.acked()
        assert len(seat.keeper.kept) == 1


async def test_what_could_not_be_kept_comes_again_under_the_same_id(sit: Sit) -> None:
    async with sit() as seat:
        seat.keeper.failing.append(OSError("the disk is full"))
        await seat.write("keep me")
        await seat.keeper.until(lambda: not seat.keeper.failing)
        await seat.again()
        await seat.keeper.until(lambda: bool(seat.keeper.kept))
        await seat.acked()
        assert {message.id for message in seat.keeper.tried} == {seat.keeper.kept[0].id}
        assert {message.address for message in seat.keeper.tried} == {seat.address}


async def test_messages_are_told_apart_and_keep_their_order(sit: Sit) -> None:
    async with sit() as seat:
        for text in ("one", "two", "three"):
            await seat.write(text)
            await seat.acked()
        await seat.keeper.until(lambda: len(seat.keeper.kept) == 3)
        assert [one.text for one in seat.keeper.kept if isinstance(one, Written)] == ["one", "two", "three"]
        assert len({one.id for one in seat.keeper.kept}) == 3


# Out.


async def test_a_message_is_shown_and_changed_under_the_id_that_sending_returned(sit: Sit) -> None:
    async with sit() as seat:
        first = await seat.surface.send(seat.address, Outgoing("first", key="s.t1:0"))
        second = await seat.surface.send(seat.address, Outgoing("second", key="s.t1:1"))
        assert first != second
        assert await seat.shown(2) == ["first", "second"]
        await seat.surface.edit(seat.address, first, Outgoing("first, changed"))
        while (shown := await seat.shown(2)) != ["first, changed", "second"]:
            assert shown == ["first", "second"]


async def test_a_message_of_the_longest_length_is_taken_whole(sit: Sit) -> None:
    async with sit() as seat:
        text = "a" * seat.surface.limits.characters
        await seat.surface.send(seat.address, Outgoing(text, key="s.t1:0"))
        assert await seat.shown(1) == [text]


async def test_a_button_comes_back_as_what_it_stands_for_where_there_are_buttons(sit: Sit) -> None:
    async with sit() as seat:
        value = f"answer:{'q' * 40}:1"
        buttons = (Button("No", "answer:q:0"), Button("Yes", value))
        await seat.surface.send(seat.address, Outgoing("may I?", buttons, key="ask:q"))
        await seat.press("Yes")
        await seat.keeper.until(lambda: bool(seat.keeper.kept))
        [pressed] = seat.keeper.kept
        assert isinstance(pressed, Pressed)
        assert (pressed.address, pressed.value) == (seat.address, value)
        assert pressed.author.id


async def test_a_chat_that_is_closed_to_us_is_gone(sit: Sit) -> None:
    async with sit() as seat:
        closed = await seat.closed_chat()
        with pytest.raises(ChatGone):
            await seat.surface.send(closed, Outgoing("anyone?", key="s.t1:0"))


async def test_a_platform_that_asks_to_wait_says_for_how_long(sit: Sit) -> None:
    async with sit() as seat:
        seat.slow_down()
        with pytest.raises(ChatError) as caught:
            await seat.surface.send(seat.address, Outgoing("hello", key="s.t1:0"))
        assert caught.value.retry_after == LONG_SECONDS
        assert not isinstance(caught.value, ChatGone)


async def test_a_message_whose_answer_was_lost_is_never_lost_and_never_doubled_without_a_word(
    sit: Sit, tmp_path: Path
) -> None:
    ledger = SqliteChatLedger(tmp_path / "gateway.db")
    async with sit() as seat:
        outbox = Outbox(seat.surface, seat.address, ledger)
        seat.lose_answer()
        posted = await outbox.send("s.t1:0", Outgoing("hello"))
        assert posted.id
        first, *others = await seat.shown(1)
        assert first == "hello"
        assert others in ([], [f"{AGAIN}hello"])
        assert not (others and seat.surface.limits.knows_keys)
    await ledger.close()


async def test_signs_of_work_fail_in_no_other_way_than_by_the_contract(sit: Sit) -> None:
    async with sit() as seat:
        await seat.write("hi")
        await seat.keeper.until(lambda: bool(seat.keeper.kept))
        closed = await seat.closed_chat()
        for address, message in ((seat.address, seat.keeper.kept[0].id), (closed, "1")):
            with suppress(ChatError, OSError):
                await seat.surface.typing(address)
            with suppress(ChatError, OSError):
                await seat.surface.react(address, message, "👀")
