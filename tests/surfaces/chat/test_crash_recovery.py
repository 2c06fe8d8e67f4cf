"""Events that a crash left in the ledger are processed after the restart, exactly once and with their edits applied."""

from pathlib import Path

import hark
from hark.protocol.chat import ChatError, IncomingEvent, IncomingMessage, MessageDeleted, MessageEdited
from hark.providers.scripted import Hang, ScriptedProvider
from hark.store.chat_ledger import SqliteChatLedger
from hark.surfaces.chat.settings import ChatSettings
from tests.surfaces.chat.chat_fixture import ANN, HOME, TestChat, chat_platform
from tests.surfaces.chat.test_platform import user_texts

LONG = "a" * 250


async def store_unprocessed(home: Path, *incoming: IncomingEvent) -> None:
    """Store events in the ledger as unprocessed."""
    ledger = SqliteChatLedger(home / "gateway.db")
    for event in incoming:
        await ledger.accept(event)
    await ledger.close()


def make_message(message_id: str, text: str, album: str = "") -> IncomingMessage:
    return IncomingMessage(message_id, HOME, ANN, text, album=album)


async def test_an_edit_is_applied_if_its_message_was_not_processed_before_the_crash(tmp_path: Path) -> None:
    edits = [MessageEdited("1", HOME, ANN, "Sweep.", 1.0), MessageEdited("1", HOME, ANN, "Sweep the yard.", 2.0)]
    await store_unprocessed(tmp_path, make_message("1", "Sweep the floor."), *edits)
    async with chat_platform(tmp_path, [["swept"]]) as (chat, provider):
        await chat.until_last_texts("swept")
    assert user_texts(provider.requests[0]) == ["Sweep the yard."]
    assert chat.texts == ["swept"]


async def test_a_message_deleted_before_it_was_processed_never_reaches_the_model(tmp_path: Path) -> None:
    await store_unprocessed(
        tmp_path, make_message("1", "Sweep the floor."), MessageDeleted("1", HOME), make_message("2", "hello")
    )
    async with chat_platform(tmp_path, [["hi"]]) as (chat, provider):
        await chat.until_last_texts("hi")
    assert [user_texts(request) for request in provider.requests] == [["hello"]]


async def test_a_part_of_a_split_text_that_was_delivered_separately_is_not_delivered_again(tmp_path: Path) -> None:
    await store_unprocessed(tmp_path, make_message("1", LONG), make_message("2", "b"))
    provider = ScriptedProvider([["first"]])
    async with hark.open(home=tmp_path, workspace=tmp_path, routes=[{"provider": provider}]) as agent:
        session = agent.session("test:home")
        await session.say(LONG, id="test:home::1")
        await session.idle()
    async with chat_platform(tmp_path, [["second"]]) as (chat, provider):
        await chat.until(lambda: "second" in chat.texts)
    assert user_texts(provider.requests[0]) == [LONG, "b"]


async def test_a_split_text_that_was_delivered_as_one_message_is_not_delivered_again(tmp_path: Path) -> None:
    await store_unprocessed(tmp_path, make_message("1", LONG), make_message("2", "b"), make_message("3", "hello"))
    provider = ScriptedProvider([["both"]])
    async with hark.open(home=tmp_path, workspace=tmp_path, routes=[{"provider": provider}]) as agent:
        session = agent.session("test:home")
        await session.say(LONG + "b", id="test:home::1..2")
        await session.idle()
    async with chat_platform(tmp_path, [["hi"]]) as (chat, provider):
        await chat.until(lambda: "hi" in chat.texts)
    assert user_texts(provider.requests[0]) == [LONG + "b", "hello"]


async def test_editing_one_part_of_a_merged_message_keeps_the_other_parts(tmp_path: Path) -> None:
    timing = {"batch_window_seconds": 60.0}  # ended early by the next message
    hang = Hang()
    script = [[hang], ["done"], ["more"], ["more"]]
    async with chat_platform(tmp_path, script, settings=ChatSettings(allow=("1",)), timing=timing) as (chat, provider):
        await chat.write("work")
        await hang.reached.wait()
        await chat.write("/busy queue")
        await chat.until(lambda: any("queue" in text for text in chat.texts))
        await chat.deliver(make_message("1", "look", "x"))
        await chat.deliver(make_message("2", "at that", "x"))
        await chat.write("behind it")
        await chat.until(lambda: [reaction for _, reaction in chat.reactions].count("⏳") == 2)
        await chat.deliver(MessageEdited("2", HOME, ANN, "at this", 1.0))
        await chat.write("/stop")
        await chat.write("continue")
        await chat.until(lambda: "done" in chat.texts)
    assert "look\nat this" in user_texts(provider.requests[1])


async def test_a_reply_marked_as_a_possible_duplicate_stays_marked_when_the_turn_ends(tmp_path: Path) -> None:
    hang = Hang()
    chat = TestChat(send_errors=[ConnectionResetError("lost")])
    async with chat_platform(tmp_path, [["half ", hang]], chat) as (chat, _):
        await chat.write("go")
        await chat.until(lambda: any(one.message.buttons for one in chat.shown))
        await chat.write("stop")
        await chat.until_last_texts("(This may have reached you before.)\nhalf\n\n⏹ stopped")


async def test_missed_replies_are_sent_before_the_reply_of_the_running_turn_without_overwriting_each_other(
    tmp_path: Path,
) -> None:
    settings = ChatSettings(allow=("1",), streams=False)
    stuck = TestChat(send_errors=[ChatError("no", 3600.0)])
    async with chat_platform(tmp_path, [["one"]], stuck, settings) as (chat, _):
        await chat.write("first")
        await chat.until(lambda: not stuck.send_errors)
    await store_unprocessed(tmp_path, make_message("2", "/queue second"), make_message("3", "/queue third"))
    hang = Hang()
    slow = TestChat(send_errors=[ChatError("slow down", 0.5)])
    async with chat_platform(tmp_path, [["two"], ["three", hang]], slow, settings) as (chat, _):
        await hang.reached.wait()
        await chat.until(lambda: "two" in chat.texts)
        await chat.write("stop")
        await chat.until(lambda: any("three" in text for text in chat.texts))
    replies = [text for text in chat.texts if not text.startswith(("queued", "started"))]
    assert replies == ["(This may have reached you before.)\none", "two", "three\n\n⏹ stopped"]
