"""A chat platform: every message once, every reply delivered, and a stop that is heard at once."""

import asyncio
from pathlib import Path

import pytest

import hark
from hark.app.pairing import Pairing
from hark.protocol.chat import Address, Author, ChatError, Removed, Rewritten, Written
from hark.protocol.messages import UserMessage
from hark.protocol.provider import CallChunk, Request
from hark.protocol.store import StoreError
from hark.providers.scripted import Hang, ScriptedProvider
from hark.store.chat_ledger import SqliteChatLedger
from hark.surfaces.chat.conversation import ChatConversation
from hark.surfaces.chat.people import ANSWERS_TO_ALL, ANSWERS_TO_ONE
from hark.surfaces.chat.settings import ChatSettings
from tests.surfaces.chat.chat_fixture import ANN, HOME, TestChat, chatting


def said(request: Request) -> list[str]:
    return [message.text for message in request.messages if isinstance(message, UserMessage)]


async def test_a_message_is_answered_where_it_was_written(tmp_path: Path) -> None:
    async with chatting(tmp_path, [["hello Ann"], ["hello thread"]]) as (chat, provider):
        await chat.write("hi")
        await chat.says("hello Ann")
        thread = Address("test", "home", "t1")
        await chat.write("hi", address=thread)
        await chat.says("hello Ann", "hello thread")
    assert [one.address for one in chat.shown] == [HOME, thread]
    assert [said(request) for request in provider.requests] == [["hi"], ["hi"]]


async def test_what_is_delivered_again_is_taken_once(tmp_path: Path) -> None:
    async with chatting(tmp_path, [["one"], ["two"]]) as (chat, provider):
        for _ in range(3):
            await chat.write("hi", name="same")
        await chat.says("one")
        await chat.write("hi", name="other")
        await chat.says("one", "two")
    assert len(provider.requests) == 2


async def test_the_stop_button_ends_the_turn_and_the_reply_says_so(tmp_path: Path) -> None:
    hang = Hang()
    async with chatting(tmp_path, [["half of it ", hang], ["next"]]) as (chat, _):
        await chat.write("go")
        await chat.until(lambda: any(one.message.buttons for one in chat.shown))
        await chat.press("Stop")
        await chat.says("half of it\n\n⏹ stopped")
        await chat.write("and now?")
        await chat.says("half of it\n\n⏹ stopped", "next")
    assert hang.closed.is_set()
    assert not any(one.message.buttons for one in chat.shown)


async def test_a_stop_word_stops_and_is_no_message(tmp_path: Path) -> None:
    hang = Hang()
    async with chatting(tmp_path, [["half", hang], ["next"]]) as (chat, provider):
        await chat.write("go")
        await hang.reached.wait()
        await chat.write("Stop!")
        await chat.until(lambda: "⏹ stopped" in "".join(chat.texts))
        await chat.write("don't stop believing")
        await chat.until(lambda: chat.texts[-1] == "next")
    assert said(provider.requests[-1]) == ["go", "don't stop believing"]


async def test_a_message_while_busy_interrupts_and_each_has_its_sign(tmp_path: Path) -> None:
    hang = Hang()
    async with chatting(tmp_path, [[hang], ["second"]]) as (chat, _):
        await chat.write("first", name="a")
        await hang.reached.wait()
        await chat.write("second", name="b")
        await chat.until(lambda: chat.texts[-1:] == ["second"])
        await chat.until(lambda: {("a", "👀"), ("b", "⚡")} <= set(chat.signs))


async def test_an_edit_replaces_what_waits_and_a_deletion_withdraws_it(tmp_path: Path) -> None:
    hang = Hang()
    async with chatting(tmp_path, [[hang], ["going on"], ["done"]]) as (chat, provider):
        await chat.write("work")
        await hang.reached.wait()
        await chat.write("/busy queue")
        await chat.write("one", name="a")
        await chat.write("two", name="b")
        await chat.until(lambda: ("b", "⏳") in chat.signs)  # a deletion before that leaves no trace to wait for
        await chat.put(Rewritten("a", HOME, ANN, "one, really"))
        await chat.put(Removed("b", HOME))
        await chat.until(lambda: ("b", "🗑") in chat.signs)
        await chat.write("/stop")
        await chat.write("/busy interrupt")
        await chat.write("go on", name="c")
        await chat.until(lambda: "done" in chat.texts)
    assert [said(request) for request in provider.requests] == [
        ["work"],
        ["work", "go on"],
        ["work", "go on", "one, really"],
    ]


async def test_a_reply_that_was_owed_when_its_turn_ended_is_shown_once_and_not_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver_owed = ChatConversation._deliver_owed  # pyright: ignore[reportPrivateUsage]

    async def late(self: ChatConversation, delivered: int) -> int:
        assert chat.agent is not None
        while not provider.requests:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        await chat.agent.session("test:home").idle()
        return await deliver_owed(self, delivered)

    monkeypatch.setattr(ChatConversation, "_deliver_owed", late)
    async with chatting(tmp_path, [["hello"], ["again"]]) as (chat, provider):
        await chat.write("hi")
        await chat.until(lambda: "hello" in chat.texts)
        await chat.write("and?")
        await chat.until(lambda: "again" in chat.texts)
    assert (chat.shown[0].message.text, chat.shown[0].edits) == ("hello", 0)


async def test_a_stranger_gets_a_code_and_nothing_else_until_the_owner_lets_them_in(tmp_path: Path) -> None:
    bob = Author("2", "Bob")
    async with chatting(tmp_path, [["hello Bob"]]) as (chat, provider):
        await chat.write("hi", author=bob)
        await chat.until(lambda: len(chat.shown) == 1)
        code = chat.texts[0].split()[-1]
        for _ in range(5):
            await chat.write("/status", author=bob)
        assert len(chat.shown) == 3, "told a few times, not without end"
        assert all(text.endswith(code) for text in chat.texts)
        assert Pairing(tmp_path / "pairing.json").approve("WRONG234") is None
        assert not provider.requests
        assert Pairing(tmp_path / "pairing.json").approve(code.lower()) is not None
        await chat.write("hi again", author=bob)
        await chat.until(lambda: chat.texts[-1] == "hello Bob")
    assert said(provider.requests[0]) == ["hi again"]


async def test_strangers_cannot_have_us_write_without_end(tmp_path: Path) -> None:
    async with chatting(tmp_path, []) as (chat, provider):
        for _ in range(10):
            await chat.write("hi", author=Author("2", "Bob"))
        assert len(chat.shown) == ANSWERS_TO_ONE
        for number in range(2 * ANSWERS_TO_ALL):
            await chat.write("hi", author=Author(f"bot-{number}", "Bot"))
        assert len(chat.shown) == ANSWERS_TO_ALL
    assert not provider.requests
    assert len(Pairing(tmp_path / "pairing.json").book.knocks) < ANSWERS_TO_ALL


async def test_a_group_is_listened_to_only_when_we_are_named(tmp_path: Path) -> None:
    async with chatting(tmp_path, [["yes?"]]) as (chat, provider):
        await chat.put(Written("1", HOME, ANN, "chatter", is_for_us=False))
        await chat.put(Written("2", HOME, ANN, "@hark hi"))
        await chat.says("yes?")
    assert said(provider.requests[0]) == ["@hark hi"]


async def test_an_album_and_a_text_that_was_split_are_one_message(tmp_path: Path) -> None:
    timing = {"window_seconds": 60.0}  # what follows ends it
    async with chatting(tmp_path, [["album"], ["long"]], timing=timing) as (chat, provider):
        await chat.write("/busy queue")
        await chat.put(Written("1", HOME, ANN, "look", album="x"))
        await chat.put(Written("2", HOME, ANN, "at these", album="x"))
        await chat.put(Written("3", HOME, ANN, "a" * 250))
        await chat.put(Written("4", HOME, ANN, "b" * 20))
        await chat.until(lambda: {"album", "long"} <= set(chat.texts))
    assert said(provider.requests[0]) == ["look\nat these"]
    assert said(provider.requests[1])[-1] == "a" * 250 + "b" * 20


async def test_a_long_reply_comes_in_pieces_that_fit(tmp_path: Path) -> None:
    words = " ".join(f"word{number}" for number in range(120))
    async with chatting(tmp_path, [[words]]) as (chat, _):
        await chat.write("tell me")
        await chat.until(lambda: " ".join(chat.texts) == words)
    assert len(chat.texts) > 3


async def test_a_question_has_buttons_and_closes_visibly(tmp_path: Path) -> None:
    call = CallChunk(0, "c1", "ask", '{"question": "which?", "choices": ["red", "blue"]}')
    async with chatting(tmp_path, [[call], ["blue it is"]]) as (chat, _):
        await chat.write("choose")
        await chat.until(lambda: any("which?" in text for text in chat.texts))
        await chat.press("blue")
        await chat.until(lambda: "blue it is" in chat.texts)
    assert "❓ which?\n(answered: blue, by Ann)" in chat.texts


async def test_a_platform_that_asks_to_wait_gets_the_reply_later(tmp_path: Path) -> None:
    chat = TestChat(failing=[ChatError("slow down", 0.05), ChatError("slow down", 0.05)])
    async with chatting(tmp_path, [["patience"]], chat) as (chat, _):
        await chat.write("hi")
        await chat.says("patience")


async def test_a_reply_that_a_crash_kept_back_is_delivered_at_the_next_start(tmp_path: Path) -> None:
    settings = ChatSettings(allow=("1",), streams=False)
    stuck = TestChat(failing=[ChatError("no", 3600.0)])
    async with chatting(tmp_path, [["you get this"]], stuck, settings) as (chat, _):
        await chat.write("hi")
        await chat.until(lambda: not stuck.failing)
    assert stuck.texts == []
    async with chatting(tmp_path, [], TestChat(), settings) as (again, _):
        await again.until(lambda: len(again.texts) == 1)
    assert again.texts[0].endswith("you get this")


async def test_a_sending_whose_answer_was_lost_is_made_again_with_a_word_about_it(tmp_path: Path) -> None:
    chat = TestChat(failing=[ConnectionResetError("lost")])
    settings = ChatSettings(allow=("1",), streams=False)
    async with chatting(tmp_path, [["hello"]], chat, settings) as (chat, _):
        await chat.write("hi")
        await chat.says("(This may have reached you before.)\nhello")


async def test_a_stop_when_nothing_runs_says_so(tmp_path: Path) -> None:
    async with chatting(tmp_path, [["hello"]]) as (chat, _):
        await chat.write("stop")
        await chat.says("No turn is running.")
        await chat.write("/stop")
        await chat.says("No turn is running.", "No turn is running.")


async def test_a_tool_at_work_is_shown_with_a_stop_button(tmp_path: Path) -> None:
    call = CallChunk(0, "c1", "shell", '{"command": "sleep 60"}')
    async with chatting(tmp_path, [[call], ["next"]]) as (chat, _):
        await chat.write("go")
        await chat.until(lambda: any("🔧 shell" in text for text in chat.texts))
        await chat.press("Stop")
        await chat.until(lambda: chat.texts[-1] == "⏹ stopped")
        await chat.write("and now?")
        await chat.until(lambda: chat.texts[-1] == "next")


async def test_somebody_who_is_too_fast_is_told_and_a_stop_still_works(tmp_path: Path) -> None:
    hang = Hang()
    settings = ChatSettings(allow=("1",), per_minute=1)
    async with chatting(tmp_path, [["half", hang]], settings=settings) as (chat, provider):
        await chat.write("one")
        await hang.reached.wait()
        await chat.write("two")
        await chat.until(lambda: any("more than 1 messages" in text for text in chat.texts))
        await chat.write("three")
        assert sum("more than 1 messages" in text for text in chat.texts) == 1
        await chat.write("stop")
        await chat.until(lambda: "half\n\n⏹ stopped" in chat.texts)
    assert len(provider.requests) == 1


async def test_a_turn_that_another_surface_began_is_shown_in_its_chat(tmp_path: Path) -> None:
    async with chatting(tmp_path, [["one"]]) as (chat, _):
        await chat.write("hi")
        await chat.says("one")
    async with chatting(tmp_path, [["two"]], TestChat()) as (chat, _):
        assert chat.agent is not None
        await chat.agent.session("test:home").say("from elsewhere")
        await chat.says("two")


async def test_what_ended_while_nobody_served_the_chat_is_delivered_at_the_next_start(tmp_path: Path) -> None:
    async with chatting(tmp_path, [["one"]]) as (chat, _):
        await chat.write("hi")
        await chat.says("one")
    async with hark.open(home=tmp_path, routes=[{"provider": ScriptedProvider([["two"]])}]) as agent:
        await agent.session("test:home").say("by a program")
        await agent.session("test:home").idle()
    async with chatting(tmp_path, [], TestChat()) as (chat, _):
        await chat.says("two")


async def test_a_turn_that_a_restart_cut_is_offered_to_go_on(tmp_path: Path) -> None:
    hang = Hang()
    async with chatting(tmp_path, [["half", hang]]) as (chat, _):
        await chat.write("go")
        await hang.reached.wait()
    async with chatting(tmp_path, [], TestChat()) as (chat, provider):
        await chat.until(lambda: any("cut by a restart" in text for text in chat.texts))
        assert [button.text for one in chat.shown for button in one.message.buttons] == ["▶ Go on"]
        assert not provider.requests, "nothing runs by itself"


async def test_an_edit_of_what_runs_is_offered_and_told_once(tmp_path: Path) -> None:
    hang = Hang()
    async with chatting(tmp_path, [[hang], ["done"]]) as (chat, provider):
        await chat.write("go", name="a")
        await hang.reached.wait()
        await chat.put(Rewritten("a", HOME, ANN, "go left"))
        await chat.until(lambda: any("I have that message already" in text for text in chat.texts))
        await chat.press("Tell it")
        await chat.press("Tell it")
        await chat.steers("go left")
        await chat.write("stop")
        await chat.until(lambda: "1 message is held" in chat.texts[-1])
        await chat.write("go on")
        await chat.until(lambda: "done" in chat.texts)
    assert said(provider.requests[-1]).count("go left") == 1


async def test_an_approval_is_answered_by_its_words_and_by_nothing_else(tmp_path: Path) -> None:
    call = CallChunk(0, "c1", "shell", '{"command": "rm -r /etc/nothing"}')
    async with chatting(tmp_path, [[call], ["refused then"]]) as (chat, _):
        await chat.write("clean up")
        await chat.until(lambda: any(text.startswith("❓") for text in chat.texts))
        await chat.write("No.")
        await chat.until(lambda: "refused then" in chat.texts)


async def test_a_chat_whose_ledger_fails_opens_again_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = [StoreError("the disk is full")]
    real = SqliteChatLedger.line

    async def line(ledger: SqliteChatLedger, address: Address, session: str) -> object:
        if failures:
            raise failures.pop()
        return await real(ledger, address, session)

    monkeypatch.setattr(SqliteChatLedger, "line", line)
    async with chatting(tmp_path, [["at last"]], timing={"first_pause_seconds": 0.01}) as (chat, provider):
        await chat.write("hi")
        await chat.says("at last")
    assert len(provider.requests) == 1


async def test_a_long_notice_comes_in_pieces(tmp_path: Path) -> None:
    async with chatting(tmp_path, []) as (chat, _):
        await chat.write("/help")
        await chat.until(lambda: any("/quit" in text for text in chat.texts))
    assert len(chat.texts) > 3


async def test_a_chat_that_sleeps_wakes_with_what_came(tmp_path: Path) -> None:
    script = [[f"reply {number}"] for number in range(20)]
    async with chatting(tmp_path, script, timing={"sleep_seconds": 0.01}) as (chat, provider):
        for number in range(20):
            await chat.write(f"message {number}")
            await chat.says(f"reply {number}")
            await asyncio.sleep(0.01 * (number % 3))  # about the time at which it falls asleep
    assert len(provider.requests) == 20


async def test_a_doubtful_sending_of_a_full_message_still_fits(tmp_path: Path) -> None:
    chat = TestChat(failing=[ConnectionResetError("lost")])
    settings = ChatSettings(allow=("1",), streams=False)
    words = "word " * 100
    async with chatting(tmp_path, [[words]], chat, settings) as (chat, _):
        await chat.write("hi")
        await chat.until(lambda: "".join(chat.texts).count("word") == 100)
    assert chat.texts[0].startswith("(This may have reached you before.)")
