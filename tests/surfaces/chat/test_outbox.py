"""Replies that meet with trouble on their way: limits, deletions, slow reactions, a platform that is down."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hark.protocol.chat import ChatError, Deliver, PlatformLimits
from hark.protocol.outcomes import Completed
from hark.providers.scripted import Hang
from hark.store.chat_ledger import SqliteChatLedger
from hark.surfaces.chat.outbox import Outbox
from hark.surfaces.chat.reply import GrowingReply
from tests.surfaces.chat.chat_fixture import HOME, TestChat, chatting


@asynccontextmanager
async def growing(home: Path, chat: TestChat) -> AsyncGenerator[tuple[GrowingReply, Outbox, asyncio.Task[None]]]:
    """A reply that grows, and has said its first words."""
    ledger = SqliteChatLedger(home / "gateway.db")
    outbox = Outbox(chat, HOME, ledger)
    reply = GrowingReply("s.t1", chat.limits, outbox)
    growing = asyncio.create_task(reply.grow())
    try:
        reply.add("some")
        await chat.says("some ▌")
        yield reply, outbox, growing
    finally:
        growing.cancel()
        await asyncio.wait([growing])
        await outbox.close()
        await ledger.close()


async def test_a_growing_reply_that_must_wait_is_shown_whole_as_soon_as_it_may(tmp_path: Path) -> None:
    chat = TestChat(failing_edits=[ChatError("slow down", 0.05), ConnectionResetError("lost")])
    async with growing(tmp_path, chat) as (reply, _, _):
        reply.add(" words")
        await chat.says("some words ▌")
    assert not chat.failing_edits


async def test_an_edit_that_must_wait_holds_nothing_else_of_its_chat(tmp_path: Path) -> None:
    chat = TestChat(failing_edits=[ChatError("slow down", 3600.0)])
    async with growing(tmp_path, chat) as (reply, outbox, task):
        reply.add(" words")
        await chat.until(lambda: not chat.failing_edits)
        await outbox.tell("note", "something else")
        task.cancel()
        await asyncio.wait([task])
        await reply.finish("some words", Completed("some words"))
    assert chat.texts == ["some words", "something else"]


@pytest.mark.parametrize(("seconds", "told"), [(3600.0, ""), (0.0, "(This may have reached you before.)\n")])
async def test_a_doubtful_sending_is_told_of_where_the_platform_knows_our_key_no_longer(
    tmp_path: Path, seconds: float, told: str
) -> None:
    chat = TestChat(PlatformLimits(260, 0.01, knows_keys=True, key_seconds=seconds))
    ledger = SqliteChatLedger(tmp_path / "gateway.db")
    await ledger.sending(HOME, "note")  # by a process that is gone
    outbox = Outbox(chat, HOME, ledger)
    await outbox.tell("note", "hello")
    await ledger.close()
    assert chat.texts == [f"{told}hello"]


async def test_pieces_that_were_taken_back_lose_their_words_and_button(tmp_path: Path) -> None:
    chat = TestChat()
    async with growing(tmp_path, chat) as (reply, _, task):
        reply.add(" words" * 50)
        await chat.until(lambda: len(chat.shown) == 2 and bool(chat.shown[1].message.buttons))
        task.cancel()
        await asyncio.wait([task])
        await reply.finish("few words", Completed("few words"))
    assert chat.texts == ["few words", "(This part was taken back.)"]
    assert not any(one.message.buttons for one in chat.shown)


async def test_a_reply_whose_message_was_deleted_is_said_anew_at_its_end(tmp_path: Path) -> None:
    hang = Hang()
    async with chatting(tmp_path, [["half of it", hang], ["next"]]) as (chat, _):
        await chat.write("hi")
        await chat.until(lambda: any("half of it" in text for text in chat.texts))
        chat.shown.clear()
        await chat.write("stop")
        await chat.says("half of it\n\n⏹ stopped")
        await chat.write("go on")
        await chat.says("half of it\n\n⏹ stopped", "next")


async def test_a_slow_reaction_holds_no_reply(tmp_path: Path) -> None:
    async with chatting(tmp_path, [["at once"]]) as (chat, _):
        chat.slow_signs.clear()
        await chat.write("hi")
        await chat.says("at once")
        assert chat.signs == []
        chat.slow_signs.set()
        await chat.until(lambda: [sign for _, sign in chat.signs][:1] == ["👀"])


class Down(TestChat):
    """A platform that can't be reached, a few times."""

    tries = 0

    async def run(self, deliver: Deliver) -> None:
        self.tries += 1
        if self.tries <= 3:
            raise ChatError("The platform can't be reached.")
        await super().run(deliver)


async def test_a_platform_that_is_down_is_told_of_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    timing = {"first_pause_seconds": 0.01}
    async with asyncio.timeout(60), chatting(tmp_path, [["here"]], Down(), timing=timing) as (chat, _):
        await chat.write("hi")
        await chat.says("here")
    told = [record for record in caplog.records if record.levelno >= logging.INFO and "reached" in record.message]
    assert len(told) == 1
