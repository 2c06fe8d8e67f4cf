"""What a crash left in the ledger is gone on with: nothing twice, nothing lost, and changes before what they change."""

from pathlib import Path

import hark
from hark.protocol.chat import ChatError, Incoming, Removed, Rewritten, Written
from hark.providers.scripted import Hang, ScriptedProvider
from hark.store.chat_ledger import SqliteChatLedger
from hark.surfaces.chat.settings import ChatSettings
from tests.surfaces.chat.chat_fixture import ANN, HOME, TestChat, chatting
from tests.surfaces.chat.test_platform import said

LONG = "a" * 250


async def left(home: Path, *incoming: Incoming) -> None:
    """Leave things in the ledger that nobody has dealt with."""
    ledger = SqliteChatLedger(home / "gateway.db")
    for one in incoming:
        await ledger.accept(one)
    await ledger.close()


def written(name: str, text: str, album: str = "") -> Written:
    return Written(name, HOME, ANN, text, album=album)


async def test_an_edit_that_came_before_its_message_was_begun_with_is_in_force(tmp_path: Path) -> None:
    edits = [Rewritten("1", HOME, ANN, "Sweep.", 1.0), Rewritten("1", HOME, ANN, "Sweep the yard.", 2.0)]
    await left(tmp_path, written("1", "Sweep the floor."), *edits)
    async with chatting(tmp_path, [["swept"]]) as (chat, provider):
        await chat.says("swept")
    assert said(provider.requests[0]) == ["Sweep the yard."]
    assert chat.texts == ["swept"]


async def test_a_message_that_was_deleted_before_it_was_begun_with_is_not_said(tmp_path: Path) -> None:
    await left(tmp_path, written("1", "Sweep the floor."), Removed("1", HOME), written("2", "hello"))
    async with chatting(tmp_path, [["hi"]]) as (chat, provider):
        await chat.says("hi")
    assert [said(request) for request in provider.requests] == [["hello"]]


async def test_a_part_of_a_split_text_that_was_said_alone_is_not_said_with_the_rest_again(tmp_path: Path) -> None:
    await left(tmp_path, written("1", LONG), written("2", "b"))
    provider = ScriptedProvider([["first"]])
    async with hark.open(home=tmp_path, workspace=tmp_path, routes=[{"provider": provider}]) as agent:
        session = agent.session("test:home")
        await session.say(LONG, id="test:home::1")
        await session.idle()
    async with chatting(tmp_path, [["second"]]) as (chat, provider):
        await chat.until(lambda: "second" in chat.texts)
    assert said(provider.requests[0]) == [LONG, "b"]


async def test_a_split_text_whose_parts_were_said_together_is_not_said_again(tmp_path: Path) -> None:
    await left(tmp_path, written("1", LONG), written("2", "b"), written("3", "hello"))
    provider = ScriptedProvider([["both"]])
    async with hark.open(home=tmp_path, workspace=tmp_path, routes=[{"provider": provider}]) as agent:
        session = agent.session("test:home")
        await session.say(LONG + "b", id="test:home::1..2")
        await session.idle()
    async with chatting(tmp_path, [["hi"]]) as (chat, provider):
        await chat.until(lambda: "hi" in chat.texts)
    assert said(provider.requests[0]) == [LONG + "b", "hello"]


async def test_an_edit_of_one_part_leaves_the_others(tmp_path: Path) -> None:
    timing = {"window_seconds": 60.0}  # what follows ends it
    hang = Hang()
    script = [[hang], ["done"], ["more"], ["more"]]
    async with chatting(tmp_path, script, settings=ChatSettings(allow=("1",)), timing=timing) as (chat, provider):
        await chat.write("work")
        await hang.reached.wait()
        await chat.write("/busy queue")
        await chat.until(lambda: any("queue" in text for text in chat.texts))
        await chat.put(written("1", "look", "x"))
        await chat.put(written("2", "at that", "x"))
        await chat.write("behind it")
        await chat.until(lambda: [sign for _, sign in chat.signs].count("⏳") == 2)
        await chat.put(Rewritten("2", HOME, ANN, "at this", 1.0))
        await chat.write("/stop")
        await chat.write("go on")
        await chat.until(lambda: "done" in chat.texts)
    assert "look\nat this" in said(provider.requests[1])


async def test_a_reply_that_may_have_come_before_says_so_to_its_end(tmp_path: Path) -> None:
    hang = Hang()
    chat = TestChat(failing=[ConnectionResetError("lost")])
    async with chatting(tmp_path, [["half ", hang]], chat) as (chat, _):
        await chat.write("go")
        await chat.until(lambda: any(one.message.buttons for one in chat.shown))
        await chat.write("stop")
        await chat.says("(This may have reached you before.)\nhalf\n\n⏹ stopped")


async def test_replies_that_are_owed_come_before_those_of_what_runs_and_none_takes_anothers_place(
    tmp_path: Path,
) -> None:
    settings = ChatSettings(allow=("1",), streams=False)
    stuck = TestChat(failing=[ChatError("no", 3600.0)])
    async with chatting(tmp_path, [["one"]], stuck, settings) as (chat, _):
        await chat.write("first")
        await chat.until(lambda: not stuck.failing)
    await left(tmp_path, written("2", "/queue second"), written("3", "/queue third"))
    hang = Hang()
    slow = TestChat(failing=[ChatError("slow down", 0.5)])
    async with chatting(tmp_path, [["two"], ["three", hang]], slow, settings) as (chat, _):
        await hang.reached.wait()
        await chat.until(lambda: "two" in chat.texts)
        await chat.write("stop")
        await chat.until(lambda: any("three" in text for text in chat.texts))
    replies = [text for text in chat.texts if not text.startswith(("queued", "started"))]
    assert replies == ["(This may have reached you before.)\none", "two", "three\n\n⏹ stopped"]
