"""A chat platform: each message is processed once, each reply is delivered, and a stop takes effect immediately."""

import asyncio
from pathlib import Path

import pytest

import hark
from hark.app.pairing import PairingFile
from hark.protocol.chat import Address, Author, ChatError, IncomingMessage, MessageDeleted, MessageEdited
from hark.protocol.messages import UserMessage
from hark.protocol.provider import CallChunk, Request
from hark.protocol.store import StoreError
from hark.providers.scripted import Hang, ScriptedProvider
from hark.store.chat_ledger import SqliteChatLedger
from hark.surfaces.chat.event_display import ChatConversation
from hark.surfaces.chat.sender_policy import CODES_PER_SENDER, CODES_PER_SURFACE
from hark.surfaces.chat.settings import ChatSettings
from tests.surfaces.chat.chat_fixture import ANN, HOME, TestChat, chat_platform


def user_texts(request: Request) -> list[str]:
    return [message.text for message in request.messages if isinstance(message, UserMessage)]


async def test_a_message_is_answered_in_the_chat_it_came_from(tmp_path: Path) -> None:
    async with chat_platform(tmp_path, [["hello Ann"], ["hello thread"]]) as (chat, provider):
        await chat.write("hi")
        await chat.until_last_texts("hello Ann")
        thread = Address("test", "home", "t1")
        await chat.write("hi", address=thread)
        await chat.until_last_texts("hello Ann", "hello thread")
    assert [one.address for one in chat.shown] == [HOME, thread]
    assert [user_texts(request) for request in provider.requests] == [["hi"], ["hi"]]


async def test_a_redelivered_message_is_processed_once(tmp_path: Path) -> None:
    async with chat_platform(tmp_path, [["one"], ["two"]]) as (chat, provider):
        for _ in range(3):
            await chat.write("hi", message_id="same")
        await chat.until_last_texts("one")
        await chat.write("hi", message_id="other")
        await chat.until_last_texts("one", "two")
    assert len(provider.requests) == 2


async def test_the_stop_button_interrupts_the_turn_and_marks_the_reply_as_stopped(tmp_path: Path) -> None:
    hang = Hang()
    async with chat_platform(tmp_path, [["half of it ", hang], ["next"]]) as (chat, _):
        await chat.write("go")
        await chat.until(lambda: any(one.message.buttons for one in chat.shown))
        await chat.press("Stop")
        await chat.until_last_texts("half of it\n\n⏹ stopped")
        await chat.write("and now?")
        await chat.until_last_texts("half of it\n\n⏹ stopped", "next")
    assert hang.closed.is_set()
    assert not any(one.message.buttons for one in chat.shown)


async def test_a_stop_word_stops_the_turn_and_is_not_delivered_as_a_message(tmp_path: Path) -> None:
    hang = Hang()
    async with chat_platform(tmp_path, [["half", hang], ["next"]]) as (chat, provider):
        await chat.write("go")
        await hang.reached.wait()
        await chat.write("Stop!")
        await chat.until(lambda: "⏹ stopped" in "".join(chat.texts))
        await chat.write("don't stop believing")
        await chat.until(lambda: chat.texts[-1] == "next")
    assert user_texts(provider.requests[-1]) == ["go", "don't stop believing"]


async def test_a_message_to_a_busy_session_interrupts_and_each_message_gets_its_reaction(tmp_path: Path) -> None:
    hang = Hang()
    async with chat_platform(tmp_path, [[hang], ["second"]]) as (chat, _):
        await chat.write("first", message_id="a")
        await hang.reached.wait()
        await chat.write("second", message_id="b")
        await chat.until(lambda: chat.texts[-1:] == ["second"])
        await chat.until(lambda: {("a", "👀"), ("b", "⚡")} <= set(chat.reactions))


async def test_an_edit_changes_a_queued_message_and_a_deletion_withdraws_it(tmp_path: Path) -> None:
    hang = Hang()
    async with chat_platform(tmp_path, [[hang], ["continuing"], ["done"]]) as (chat, provider):
        await chat.write("work")
        await hang.reached.wait()
        await chat.write("/busy queue")
        await chat.write("one", message_id="a")
        await chat.write("two", message_id="b")
        # An earlier deletion would leave no visible change to wait for.
        await chat.until(lambda: ("b", "⏳") in chat.reactions)
        await chat.deliver(MessageEdited("a", HOME, ANN, "one, really"))
        await chat.deliver(MessageDeleted("b", HOME))
        await chat.until(lambda: ("b", "🗑") in chat.reactions)
        await chat.write("/stop")
        await chat.write("/busy interrupt")
        await chat.write("continue", message_id="c")
        await chat.until(lambda: "done" in chat.texts)
    assert [user_texts(request) for request in provider.requests] == [
        ["work"],
        ["work", "continue"],
        ["work", "continue", "one, really"],
    ]


async def test_a_missed_reply_is_shown_once_and_not_edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deliver_missed = ChatConversation._deliver_missed_replies  # pyright: ignore[reportPrivateUsage]

    async def deliver_late(self: ChatConversation, delivered: int) -> int:
        assert chat.agent is not None
        while not provider.requests:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        await chat.agent.session("test:home").idle()
        return await deliver_missed(self, delivered)

    monkeypatch.setattr(ChatConversation, "_deliver_missed_replies", deliver_late)
    async with chat_platform(tmp_path, [["hello"], ["again"]]) as (chat, provider):
        await chat.write("hi")
        await chat.until(lambda: "hello" in chat.texts)
        await chat.write("and?")
        await chat.until(lambda: "again" in chat.texts)
    assert (chat.shown[0].message.text, chat.shown[0].edits) == ("hello", 0)


async def test_an_unknown_sender_receives_only_a_pairing_code_until_the_owner_approves(tmp_path: Path) -> None:
    bob = Author("2", "Bob")
    async with chat_platform(tmp_path, [["hello Bob"]]) as (chat, provider):
        await chat.write("hi", author=bob)
        await chat.until(lambda: len(chat.shown) == 1)
        assert chat.shown[0].message.reply_to == ""
        code = chat.texts[0].split()[-1]
        for _ in range(5):
            await chat.write("/status", author=bob)
        assert len(chat.shown) == 3, "the code is sent only a few times"
        assert all(text.endswith(code) for text in chat.texts)
        assert PairingFile(tmp_path / "pairing.json").approve("WRONG234") is None
        assert not provider.requests
        assert PairingFile(tmp_path / "pairing.json").approve(code.lower()) is not None
        await chat.write("hi again", author=bob)
        await chat.until(lambda: chat.texts[-1] == "hello Bob")
    assert user_texts(provider.requests[0]) == ["hi again"]


async def test_unknown_senders_cannot_make_the_bot_send_without_limit(tmp_path: Path) -> None:
    async with chat_platform(tmp_path, []) as (chat, provider):
        for _ in range(10):
            await chat.write("hi", author=Author("2", "Bob"))
        assert len(chat.shown) == CODES_PER_SENDER
        for number in range(2 * CODES_PER_SURFACE):
            await chat.write("hi", author=Author(f"bot-{number}", "Bot"))
        assert len(chat.shown) == CODES_PER_SURFACE
    assert not provider.requests
    assert len(PairingFile(tmp_path / "pairing.json").records.knocks) < CODES_PER_SURFACE


async def test_group_messages_are_processed_only_if_they_mention_the_bot(tmp_path: Path) -> None:
    async with chat_platform(tmp_path, [["yes?"]]) as (chat, provider):
        await chat.deliver(IncomingMessage("1", HOME, ANN, "chatter", is_for_us=False))
        await chat.deliver(IncomingMessage("2", HOME, ANN, "@hark hi"))
        await chat.until_last_texts("yes?")
    assert user_texts(provider.requests[0]) == ["@hark hi"]


async def test_an_album_and_a_split_text_each_become_one_message(tmp_path: Path) -> None:
    timing = {"batch_window_seconds": 60.0}  # ended early by the next message
    async with chat_platform(tmp_path, [["album"], ["long"]], timing=timing) as (chat, provider):
        await chat.write("/busy queue")
        await chat.deliver(IncomingMessage("1", HOME, ANN, "look", album="x"))
        await chat.deliver(IncomingMessage("2", HOME, ANN, "at these", album="x"))
        await chat.deliver(IncomingMessage("3", HOME, ANN, "a" * 250))
        await chat.deliver(IncomingMessage("4", HOME, ANN, "b" * 20))
        await chat.until(lambda: {"album", "long"} <= set(chat.texts))
    assert user_texts(provider.requests[0]) == ["look\nat these"]
    assert user_texts(provider.requests[1])[-1] == "a" * 250 + "b" * 20


async def test_a_long_reply_is_split_into_messages_that_fit(tmp_path: Path) -> None:
    words = " ".join(f"word{number}" for number in range(120))
    async with chat_platform(tmp_path, [[words]]) as (chat, _):
        await chat.write("describe")
        await chat.until(lambda: " ".join(chat.texts) == words)
    assert len(chat.texts) > 3


async def test_a_question_has_buttons_and_shows_its_answer_when_closed(tmp_path: Path) -> None:
    call = CallChunk(0, "c1", "ask", '{"question": "which?", "choices": ["red", "blue"]}')
    async with chat_platform(tmp_path, [[call], ["blue it is"]]) as (chat, _):
        await chat.write("choose")
        await chat.until(lambda: any("which?" in text for text in chat.texts))
        await chat.press("blue")
        await chat.until(lambda: "blue it is" in chat.texts)
    assert "❓ which?\n(answered: blue, by Ann)" in chat.texts


async def test_a_rate_limited_reply_is_sent_after_the_wait_time(tmp_path: Path) -> None:
    chat = TestChat(send_errors=[ChatError("slow down", 0.05), ChatError("slow down", 0.05)])
    async with chat_platform(tmp_path, [["patience"]], chat) as (chat, _):
        await chat.write("hi")
        await chat.until_last_texts("patience")


async def test_a_reply_that_was_not_sent_before_a_crash_is_delivered_at_the_next_start(tmp_path: Path) -> None:
    settings = ChatSettings(allow=("1",), streams=False)
    stuck = TestChat(send_errors=[ChatError("no", 3600.0)])
    async with chat_platform(tmp_path, [["you get this"]], stuck, settings) as (chat, _):
        await chat.write("hi")
        await chat.until(lambda: not stuck.send_errors)
    assert stuck.texts == []
    async with chat_platform(tmp_path, [], TestChat(), settings) as (again, _):
        await again.until(lambda: len(again.texts) == 1)
    assert again.texts[0].endswith("you get this")


async def test_a_message_whose_response_was_lost_is_resent_marked_as_a_possible_duplicate(tmp_path: Path) -> None:
    chat = TestChat(send_errors=[ConnectionResetError("lost")])
    settings = ChatSettings(allow=("1",), streams=False)
    async with chat_platform(tmp_path, [["hello"]], chat, settings) as (chat, _):
        await chat.write("hi")
        await chat.until_last_texts("(This may have reached you before.)\nhello")


async def test_a_stop_without_a_running_turn_is_answered_with_a_notice(tmp_path: Path) -> None:
    async with chat_platform(tmp_path, [["hello"]]) as (chat, _):
        await chat.write("stop")
        await chat.until_last_texts("No turn is running.")
        await chat.write("/stop")
        await chat.until_last_texts("No turn is running.", "No turn is running.")


async def test_a_running_tool_is_shown_with_a_stop_button(tmp_path: Path) -> None:
    call = CallChunk(0, "c1", "shell", '{"command": "sleep 60"}')
    async with chat_platform(tmp_path, [[call], ["next"]]) as (chat, _):
        await chat.write("go")
        await chat.until(lambda: any("🔧 shell" in text for text in chat.texts))
        await chat.press("Stop")
        await chat.until(lambda: chat.texts[-1] == "⏹ stopped")
        await chat.write("and now?")
        await chat.until(lambda: chat.texts[-1] == "next")


async def test_a_rate_limited_sender_is_warned_once_and_can_still_stop(tmp_path: Path) -> None:
    hang = Hang()
    settings = ChatSettings(allow=("1",), per_minute=1)
    async with chat_platform(tmp_path, [["half", hang]], settings=settings) as (chat, provider):
        await chat.write("one")
        await hang.reached.wait()
        await chat.write("two")
        await chat.until(lambda: any("more than 1 messages" in text for text in chat.texts))
        await chat.write("three")
        assert sum("more than 1 messages" in text for text in chat.texts) == 1
        await chat.write("stop")
        await chat.until(lambda: "half\n\n⏹ stopped" in chat.texts)
    assert len(provider.requests) == 1


async def test_a_turn_started_by_another_surface_is_shown_in_its_chat(tmp_path: Path) -> None:
    async with chat_platform(tmp_path, [["one"]]) as (chat, _):
        await chat.write("hi")
        await chat.until_last_texts("one")
    async with chat_platform(tmp_path, [["two"]], TestChat()) as (chat, _):
        assert chat.agent is not None
        await chat.agent.session("test:home").say("from elsewhere")
        await chat.until_last_texts("two")


async def test_a_reply_that_ended_while_the_gateway_was_down_is_delivered_at_the_next_start(tmp_path: Path) -> None:
    async with chat_platform(tmp_path, [["one"]]) as (chat, _):
        await chat.write("hi")
        await chat.until_last_texts("one")
    async with hark.open(home=tmp_path, routes=[{"provider": ScriptedProvider([["two"]])}]) as agent:
        await agent.session("test:home").say("by a program")
        await agent.session("test:home").idle()
    async with chat_platform(tmp_path, [], TestChat()) as (chat, _):
        await chat.until_last_texts("two")


async def test_a_turn_interrupted_by_a_restart_has_a_continue_button(tmp_path: Path) -> None:
    hang = Hang()
    async with chat_platform(tmp_path, [["half", hang]]) as (chat, _):
        await chat.write("go")
        await hang.reached.wait()
    async with chat_platform(tmp_path, [], TestChat()) as (chat, provider):
        await chat.until(lambda: any("interrupted by a restart" in text for text in chat.texts))
        assert [button.text for one in chat.shown for button in one.message.buttons] == ["▶ Continue"]
        assert not provider.requests, "no turn starts automatically"


async def test_an_edit_of_an_answered_message_is_ignored(tmp_path: Path) -> None:
    async with chat_platform(tmp_path, [["first answer"], ["second answer"]]) as (chat, _):
        await chat.write("go", message_id="a")
        await chat.until(lambda: "first answer" in chat.texts)
        assert chat.agent is not None
        await chat.agent.session("test:home").idle()
        await chat.deliver(MessageEdited("a", HOME, ANN, "go left"))
        await chat.write("next", message_id="b")
        await chat.until(lambda: "second answer" in chat.texts)
    assert chat.texts == ["first answer", "second answer"]


async def test_an_edit_of_a_running_message_is_offered_as_a_new_message_and_delivered_once(tmp_path: Path) -> None:
    hang = Hang()
    async with chat_platform(tmp_path, [[hang], ["done"]]) as (chat, provider):
        await chat.write("go", message_id="a")
        await hang.reached.wait()
        await chat.deliver(MessageEdited("a", HOME, ANN, "go left"))
        await chat.until(lambda: any("I have already started on that message" in text for text in chat.texts))
        await chat.press("Send the new text")
        await chat.press("Send the new text")
        await chat.until_queued("go left")
        await chat.write("stop")
        await chat.until(lambda: "1 queued message is on hold" in chat.texts[-1])
        await chat.write("continue")
        await chat.until(lambda: "done" in chat.texts)
    assert user_texts(provider.requests[-1]).count("go left") == 1


async def test_an_approval_request_is_answered_only_by_the_text_of_a_choice(tmp_path: Path) -> None:
    call = CallChunk(0, "c1", "shell", '{"command": "rm -r /etc/nothing"}')
    async with chat_platform(tmp_path, [[call], ["refused then"]]) as (chat, _):
        await chat.write("clean up")
        await chat.until(lambda: any(text.startswith("❓") for text in chat.texts))
        await chat.write("No.")
        await chat.until(lambda: "refused then" in chat.texts)


async def test_a_chat_whose_ledger_fails_is_reopened_and_loses_no_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = [StoreError("the disk is full")]
    original = SqliteChatLedger.binding

    async def fail_first_binding(ledger: SqliteChatLedger, address: Address, session: str) -> object:
        if failures:
            raise failures.pop()
        return await original(ledger, address, session)

    monkeypatch.setattr(SqliteChatLedger, "binding", fail_first_binding)
    async with chat_platform(tmp_path, [["at last"]], timing={"first_retry_seconds": 0.01}) as (chat, provider):
        await chat.write("hi")
        await chat.until_last_texts("at last")
    assert len(provider.requests) == 1


async def test_a_long_notice_is_split_into_messages(tmp_path: Path) -> None:
    async with chat_platform(tmp_path, []) as (chat, _):
        await chat.write("/help")
        await chat.until(lambda: any("/quit" in text for text in chat.texts))
    assert len(chat.texts) > 3


async def test_an_idle_chat_that_was_closed_reopens_for_a_new_message(tmp_path: Path) -> None:
    script = [[f"reply {number}"] for number in range(20)]
    async with chat_platform(tmp_path, script, timing={"idle_seconds": 0.01}) as (chat, provider):
        for number in range(20):
            await chat.write(f"message {number}")
            await chat.until_last_texts(f"reply {number}")
            await asyncio.sleep(0.01 * (number % 3))  # about the time at which the chat is closed
    assert len(provider.requests) == 20


async def test_a_full_length_message_marked_as_a_possible_duplicate_still_fits(tmp_path: Path) -> None:
    chat = TestChat(send_errors=[ConnectionResetError("lost")])
    settings = ChatSettings(allow=("1",), streams=False)
    words = "word " * 100
    async with chat_platform(tmp_path, [[words]], chat, settings) as (chat, _):
        await chat.write("hi")
        await chat.until(lambda: "".join(chat.texts).count("word") == 100)
    assert chat.texts[0].startswith("(This may have reached you before.)")
