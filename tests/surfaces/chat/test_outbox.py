"""Replies are delivered despite rate limits, deleted messages, slow reactions and an unreachable platform."""

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
from hark.surfaces.chat import outbox as outbox_module
from hark.surfaces.chat.outbox import DUPLICATE_MARK, MAX_FAILURES, UNSENDABLE, Outbox
from hark.surfaces.chat.settings import ChatSettings
from hark.surfaces.chat.streaming_reply import StreamingReply
from tests.linear_time import assert_linear
from tests.surfaces.chat.chat_fixture import HOME, TestChat, chat_platform


@asynccontextmanager
async def streaming_reply(
    home: Path, chat: TestChat
) -> AsyncGenerator[tuple[StreamingReply, Outbox, asyncio.Task[None]]]:
    """Yield a streaming reply whose first text is already shown, with its outbox and its task."""
    ledger = SqliteChatLedger(home / "gateway.db")
    outbox = Outbox(chat, HOME, ledger)
    reply = StreamingReply("s.t1", chat.limits, outbox)
    task = asyncio.create_task(reply.stream())
    try:
        reply.add("some")
        await chat.until_last_texts("some ▌")
        yield reply, outbox, task
    finally:
        task.cancel()
        await asyncio.wait([task])
        await outbox.close()
        await ledger.close()


async def test_a_rate_limited_streaming_reply_is_shown_completely_as_soon_as_possible(tmp_path: Path) -> None:
    chat = TestChat(edit_errors=[ChatError("slow down", 0.05), ConnectionResetError("lost")])
    async with streaming_reply(tmp_path, chat) as (reply, _, _):
        reply.add(" words")
        await chat.until_last_texts("some words ▌")
    assert not chat.edit_errors


async def test_a_rate_limited_edit_does_not_delay_other_messages_in_the_chat(tmp_path: Path) -> None:
    chat = TestChat(edit_errors=[ChatError("slow down", 3600.0)])
    async with streaming_reply(tmp_path, chat) as (reply, outbox, task):
        reply.add(" words")
        await chat.until(lambda: not chat.edit_errors)
        await outbox.send_text("note", "something else")
        task.cancel()
        await asyncio.wait([task])
        await reply.finish("some words", Completed("some words"))
    assert chat.texts == ["some words", "something else"]


@pytest.mark.parametrize(("seconds", "mark"), [(3600.0, ""), (0.0, "(This may have reached you before.)\n")])
async def test_a_possible_duplicate_is_marked_only_if_the_platform_no_longer_knows_its_key(
    tmp_path: Path, seconds: float, mark: str
) -> None:
    chat = TestChat(PlatformLimits(260, 0.01, knows_keys=True, key_seconds=seconds))
    ledger = SqliteChatLedger(tmp_path / "gateway.db")
    await ledger.begin_send(HOME, "note")  # by an earlier process
    outbox = Outbox(chat, HOME, ledger)
    await outbox.send_text("note", "hello")
    await ledger.close()
    assert chat.texts == [f"{mark}hello"]


async def test_a_message_that_the_final_reply_no_longer_needs_becomes_a_notice_without_buttons(tmp_path: Path) -> None:
    chat = TestChat()
    async with streaming_reply(tmp_path, chat) as (reply, _, task):
        reply.add(" words" * 50)
        await chat.until(lambda: len(chat.shown) == 2 and bool(chat.shown[1].message.buttons))
        task.cancel()
        await asyncio.wait([task])
        await reply.finish("few words", Completed("few words"))
    assert chat.texts == ["few words", "(This part was removed from the reply.)"]
    assert not any(shown.message.buttons for shown in chat.shown)


async def test_a_reply_whose_message_was_deleted_is_sent_again_when_it_ends(tmp_path: Path) -> None:
    hang = Hang()
    async with chat_platform(tmp_path, [["half of it", hang], ["next"]]) as (chat, _):
        await chat.write("hi")
        await chat.until(lambda: any("half of it" in text for text in chat.texts))
        chat.shown.clear()
        await chat.write("stop")
        await chat.until_last_texts("half of it\n\n⏹ stopped")
        await chat.write("continue")
        await chat.until_last_texts("half of it\n\n⏹ stopped", "next")


async def test_a_slow_reaction_does_not_delay_the_reply(tmp_path: Path) -> None:
    async with chat_platform(tmp_path, [["hello"]]) as (chat, _):
        chat.reactions_open.clear()
        await chat.write("hi")
        await chat.until_last_texts("hello")
        assert chat.reactions == []
        chat.reactions_open.set()
        await chat.until(lambda: [reaction for _, reaction in chat.reactions][:1] == ["👀"])


class UnreachableChat(TestChat):
    """A fake platform whose first three connection attempts fail."""

    tries = 0

    async def run(self, deliver: Deliver) -> None:
        self.tries += 1
        if self.tries <= 3:
            raise ChatError("The platform can't be reached.")
        await super().run(deliver)


async def test_an_unreachable_platform_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    timing = {"first_retry_seconds": 0.01}
    async with asyncio.timeout(60), chat_platform(tmp_path, [["here"]], UnreachableChat(), timing=timing) as (chat, _):
        await chat.write("hi")
        await chat.until_last_texts("here")
    logged = [record for record in caplog.records if record.levelno >= logging.INFO and "reached" in record.message]
    assert len(logged) == 1


@pytest.mark.parametrize(
    ("failures", "shown"),
    [
        (MAX_FAILURES - 2, [f"{DUPLICATE_MARK}hello"]),
        (MAX_FAILURES - 1, [f"{DUPLICATE_MARK}{UNSENDABLE}"]),
        (MAX_FAILURES, []),
    ],
)
async def test_a_message_that_fails_because_of_a_bug_does_not_block_the_chat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int, shown: list[str]
) -> None:
    monkeypatch.setattr(outbox_module, "FIRST_RETRY_SECONDS", 0.001)
    chat = TestChat(send_errors=[TypeError("a bug in a library") for _ in range(failures)])
    async with chat_platform(tmp_path, [["hello"], ["next"]], chat, ChatSettings(allow=("1",), streams=False)) as (
        _,
        _,
    ):
        await chat.write("hi")
        await chat.until(lambda: not chat.send_errors)
        await chat.write("and now")
        await chat.until_last_texts(*shown, "next")
    assert chat.texts == [*shown, "next"]


async def test_an_edit_that_fails_because_of_a_bug_does_not_block_the_chat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_module, "FIRST_RETRY_SECONDS", 0.001)
    chat = TestChat()
    async with streaming_reply(tmp_path, chat) as (reply, outbox, task):
        task.cancel()
        await asyncio.wait([task])
        chat.edit_errors = [TypeError("a bug in a library") for _ in range(MAX_FAILURES - 1)]
        await reply.finish("some words", Completed("some words"))
        await outbox.send_text("note", "next")
    assert chat.texts == [UNSENDABLE, "next"]


async def test_a_long_reply_streams_in_linear_time(tmp_path: Path) -> None:
    ledger = SqliteChatLedger(tmp_path / "gateway.db")
    outbox = Outbox(TestChat(), HOME, ledger)

    def add_chunks(count: int) -> str:
        reply = StreamingReply("s.t1", PlatformLimits(), outbox)
        for _ in range(count):
            reply.add("word")
        return reply.text

    assert_linear(lambda size: size, add_chunks, 50_000)
    await ledger.close()
