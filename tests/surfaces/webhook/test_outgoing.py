"""What we say to programs: signed, told apart by keys, and honest about what became of it."""

import asyncio
import time
from email.utils import formatdate
from pathlib import Path

import pytest
from msgspec import structs

from hark.protocol.chat import Address, Button, ChatError, ChatGone, Outgoing
from hark.surfaces.webhook.platform import HookSettings
from tests.fakes.webhook_program import SECRET, Trouble, program_server
from tests.surfaces.webhook.webhook_fixture import CI, hooked, webhook

MAIN = Address("webhook", "ci@main", "7")
HELLO = Outgoing("hello", key="s.t1:0")


async def test_a_message_its_edit_and_a_receipt_are_events(tmp_path: Path) -> None:
    async with hooked(tmp_path) as world:
        asked = Outgoing("which?", (Button("red", "answer:q:0"),), key="ask:q", voice=b"OggS")
        name = await world.surface.send(MAIN, asked)
        await world.surface.edit(MAIN, name, Outgoing("which? (answered)"))
        await world.surface.react(MAIN, "m1", "👀")
        await world.surface.typing(MAIN)
        message, edit, receipt = world.program.events
    place = {"hook": "ci", "chat": "main", "thread": "7", "session": "webhook:ci@main:7"}
    for event in (message, edit, receipt):
        assert {name: event[name] for name in place} == place
        assert abs(event["at"] - time.time()) < 60
    assert (message["type"], message["key"], message["text"]) == ("message", "ask:q", "which?")
    assert message["choices"] == [{"text": "red", "value": "answer:q:0"}]
    assert message["voice"] == {"media_type": "audio/ogg", "data": "T2dnUw=="}
    assert (edit["type"], edit["message"], edit["choices"]) == ("edit", "ask:q", [])
    assert (receipt["type"], receipt["message"], receipt["sign"]) == ("receipt", "m1", "👀")


@pytest.mark.parametrize("trouble", [Trouble(), Trouble(500), Trouble(502), Trouble(404), Trouble(302)])
async def test_what_was_not_taken_is_an_error_and_comes_once_when_it_is_sent_again(
    tmp_path: Path, trouble: Trouble
) -> None:
    async with hooked(tmp_path) as world:
        world.program.troubles += [trouble, structs_done(trouble)]
        for _ in range(2):
            with pytest.raises(ChatError) as caught:
                await world.surface.send(CI, HELLO)
            assert not isinstance(caught.value, ChatGone)
            assert SECRET not in str(caught.value)
        assert await world.surface.send(CI, HELLO) == "s.t1:0"
        assert len(world.program.requests) == 3
    assert world.program.texts == ["hello"]


def structs_done(trouble: Trouble) -> Trouble:
    return Trouble(trouble.status, is_done=True)


@pytest.mark.parametrize(
    ("asked", "least", "most"),
    [("7", 7, 7), ("0", 0, 0), ("a date", 600, 3000), ("9" * 12, 3600, 3600)],
    ids=["seconds", "none", "a date", "too long"],
)
async def test_a_receiver_that_asks_to_wait_is_heard(tmp_path: Path, asked: str, least: float, most: float) -> None:
    async with hooked(tmp_path) as world:
        for status in (429, 503):
            date = formatdate(time.time() + 3000, usegmt=True)
            world.program.troubles.append(Trouble(status, date if asked == "a date" else asked))
            with pytest.raises(ChatError) as caught:
                await world.surface.send(CI, HELLO)
            assert caught.value.retry_after is not None
            assert least <= caught.value.retry_after <= most


@pytest.mark.parametrize("status", [410, 400, 413, 422])
async def test_a_receiver_that_is_gone_or_will_never_take_it_is_not_asked_again(tmp_path: Path, status: int) -> None:
    async with hooked(tmp_path) as world:
        world.program.troubles.append(Trouble(status))
        with pytest.raises(ChatGone):
            await world.surface.send(CI, HELLO)


async def test_a_receiver_that_hangs_holds_nobody_else(tmp_path: Path) -> None:
    async with program_server() as other, hooked(tmp_path, {"other": {"url": other.url}}) as world:
        world.program.gate.clear()
        hanging = [
            asyncio.create_task(world.surface.send(CI, structs.replace(HELLO, key=f"k{number}")))
            for number in range(50)
        ]
        await world.surface.send(Address("webhook", "other"), HELLO)
        assert other.texts == ["hello"]
        world.program.gate.set()
        await asyncio.gather(*hanging)
    assert len(world.program.events) == 50


async def test_a_receiver_that_cannot_be_reached_is_an_error(tmp_path: Path) -> None:
    async with hooked(tmp_path, {"away": {"url": "http://127.0.0.1:1/hark"}}) as world:
        with pytest.raises(ChatError, match="can't be reached"):
            await world.surface.send(Address("webhook", "away"), HELLO)


async def test_a_hook_without_an_url_is_told_nothing_and_one_that_does_not_run_says_so() -> None:
    hooks = {"mute": HookSettings(secret=SECRET), "ci": HookSettings(secret=SECRET, url="http://127.0.0.1:1/")}
    surface = webhook(hooks)
    assert await surface.send(Address("webhook", "mute"), HELLO) == "s.t1:0"
    assert await surface.send(Address("webhook", "removed"), HELLO) == "s.t1:0"
    with pytest.raises(ChatError) as caught:
        await surface.send(CI, HELLO)
    assert caught.value.retry_after == 1.0
