"""The Discord surface: an event is stored before the resume position passes it, and messages are shown once."""

import asyncio
import base64
import logging
import threading
import time
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hark.protocol.chat import (
    Address,
    Author,
    Button,
    ButtonPressed,
    ChatError,
    ChatGone,
    IncomingMessage,
    MessageDeleted,
    MessageEdited,
    OutgoingMessage,
)
from hark.surfaces.discord.platform import DiscordSettings
from hark.surfaces.discord.surface import DiscordSurface
from tests.fakes.discord_payloads import BEN, DIRECT, GENERAL, GUILD, ROBOT, THREAD, Json, message
from tests.fakes.discord_server import TOKEN, DiscordServer, other_tasks
from tests.surfaces.discord.discord_fixture import (
    CHANNEL_ADDRESS,
    DIRECT_ADDRESS,
    THREAD_ADDRESS,
    DeliveryRecorder,
    make_discord_surface,
    running_discord,
    running_surface,
)
from tests.waiting import at_most

SHUTDOWN_SECONDS = 20  # takes less than a second on an idle machine


def edited_at(message: Json) -> float:
    return datetime.fromisoformat(message["edited_timestamp"]).timestamp()


# Receiving.


async def test_a_direct_message_is_delivered_with_its_author() -> None:
    async with running_discord() as discord:
        number = await discord.server.write("hello")
        [written] = await discord.recorder.wait_for(1)
        assert isinstance(written, IncomingMessage)
        assert written.at == pytest.approx(time.time(), abs=60)
    assert (written.id, written.address, written.text) == (number, DIRECT_ADDRESS, "hello")
    assert (written.author, written.is_for_us) == (Author("1001", "Ann"), True)


async def test_a_server_message_is_addressed_to_the_bot_by_mention_role_or_reply() -> None:
    async with running_discord() as discord:
        server = discord.server
        ours = message("5", GENERAL, ROBOT, "I think so")
        reference = {"type": 0, "message_id": "5", "channel_id": GENERAL, "guild_id": GUILD}
        await server.write("just chatting", GENERAL)
        await server.write("<@9000> do it, <@1002>", GENERAL, mentions=[ROBOT, BEN])
        await server.write("<@&510> you too", GENERAL, mention_roles=["510"])
        await server.write("really?", GENERAL, type=19, message_reference=reference, referenced_message=ours)
        events = await discord.recorder.wait_for(4)
    written = [one for one in events if isinstance(one, IncomingMessage)]
    assert [one.is_for_us for one in written] == [False, True, True, True]
    assert [one.text for one in written] == ["just chatting", "do it, @Ben", "@Hark you too", "really?"]
    assert written[3].quoted == "I think so"
    assert {one.address for one in written} == {CHANNEL_ADDRESS}


async def test_own_messages_and_messages_from_bots_webhooks_and_the_system_are_ignored() -> None:
    async with running_discord() as discord:
        await discord.surface.send(DIRECT_ADDRESS, OutgoingMessage("our own"))
        await discord.server.write("beep", author={**BEN, "bot": True})
        await discord.server.write("", GENERAL, type=7)
        await discord.server.write("hook", GENERAL, webhook_id="77")
        await discord.server.write("a user")
        await discord.recorder.wait_for(1)
    assert discord.recorder.texts == ["a user"]


async def test_a_thread_has_its_own_address_even_if_it_is_not_cached(tmp_path: Path) -> None:
    async with DiscordServer().serving() as server:
        async with running_surface(make_discord_surface(server, tmp_path / "p"), server, DeliveryRecorder()) as discord:
            await server.write("in the thread", THREAD)
            [first] = await discord.recorder.wait_for(1)
            await discord.surface.send(THREAD_ADDRESS, OutgoingMessage("answer"))
            assert server.bot_messages[-1]["channel_id"] == THREAD
        # resumed, so nothing is cached
        async with running_surface(make_discord_surface(server, tmp_path / "p"), server, DeliveryRecorder()) as discord:
            await server.write("again", THREAD)
            await server.write("and outside", GENERAL)
            later = await discord.recorder.wait_for(2)  # Two addresses: their order is undefined.
    assert first.address == THREAD_ADDRESS
    assert {one.text: one.address for one in later if isinstance(one, IncomingMessage)} == {
        "again": THREAD_ADDRESS,
        "and outside": CHANNEL_ADDRESS,
    }


async def test_an_edit_is_delivered_but_a_link_preview_is_not() -> None:
    async with running_discord() as discord:
        number = await discord.server.write("see http://a.example")
        await discord.server.gateway.dispatch("MESSAGE_UPDATE", discord.server.messages[number])
        await discord.server.edit(number, "see http://b.example")
        events = await discord.recorder.wait_for(2)
        at = edited_at(discord.server.messages[number])
        await discord.server.edit(number, "see http://a.example")
        await discord.server.edit(number, "see http://b.example")
        later = await discord.recorder.wait_for(4)
    assert events[1] == MessageEdited(number, DIRECT_ADDRESS, Author("1001", "Ann"), "see http://b.example", at)
    assert later[3] != events[1]  # the same text, but another edit


async def test_edits_and_deletions_of_messages_not_addressed_to_the_bot_are_ignored() -> None:
    async with running_discord() as discord:
        server = discord.server
        chat = await server.write("chat", GENERAL)
        named = await server.write("<@9000> hi", GENERAL, mentions=[ROBOT])
        await discord.recorder.wait_for(2)
        await server.edit(chat, "chat!")
        await server.delete(chat)
        await server.edit(named, "<@9000> hi!")
        at = edited_at(server.messages[named])
        await server.delete(named)
        events = await discord.recorder.wait_for(4)
    assert events[2:] == [
        MessageEdited(named, CHANNEL_ADDRESS, Author("1001", "Ann"), "hi!", at),
        MessageDeleted(named, CHANNEL_ADDRESS),
    ]


async def test_an_edit_that_adds_a_mention_of_the_bot_is_delivered_as_a_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hark.surfaces.discord.gateway.MAX_CLOCK_SKEW", timedelta(seconds=-1))
    async with running_discord() as discord:
        server = discord.server
        number = await server.write("do it", GENERAL)
        await server.edit(number, "<@9000> do it", mentions=[ROBOT])
        await server.edit(number, "<@9000> do it now", mentions=[ROBOT])
        events = await discord.recorder.wait_for(3)
    assert [(type(one), one.id) for one in events] == [
        (IncomingMessage, number),
        (IncomingMessage, number),
        (MessageEdited, number),
    ]
    assert [one.is_for_us for one in events if isinstance(one, IncomingMessage)] == [False, True]


async def test_an_edit_and_a_deletion_right_after_a_slow_message_are_not_lost() -> None:
    async with running_discord() as discord:
        server = discord.server
        discord.recorder.gate.clear()
        number = await server.write("<@9000> do it", GENERAL, mentions=[ROBOT])
        await server.edit(number, "<@9000> do that", mentions=[ROBOT])
        await server.delete(number)
        last = await server.write("<@9000> end", GENERAL, mentions=[ROBOT])
        discord.recorder.gate.set()
        events = await discord.recorder.wait_for(4)
    assert [type(one) for one in events] == [IncomingMessage, MessageEdited, MessageDeleted, IncomingMessage]
    assert events[3].id == last


async def test_a_deletion_after_a_restart_is_delivered_for_a_message_from_the_earlier_process(
    tmp_path: Path,
) -> None:
    async with DiscordServer().serving() as server:
        async with running_surface(
            make_discord_surface(server, tmp_path / "position"), server, DeliveryRecorder()
        ) as discord:
            number = await server.write("<@9000> do it", GENERAL, mentions=[ROBOT])
            await discord.recorder.wait_for(1)
        async with running_surface(
            make_discord_surface(server, tmp_path / "position"), server, DeliveryRecorder()
        ) as discord:
            await server.delete(number)
            assert await discord.recorder.wait_for(1) == [MessageDeleted(number, CHANNEL_ADDRESS)]


async def test_deletions_in_direct_chats_and_bulk_deletions_are_delivered() -> None:
    async with running_discord() as discord:
        one, two, three = [await discord.server.write(text, THREAD, mentions=[ROBOT]) for text in ("1", "2", "3")]
        await discord.recorder.wait_for(3)
        await discord.server.delete(one)
        many = {"ids": [three, two], "channel_id": THREAD, "guild_id": GUILD}
        await discord.server.gateway.dispatch("MESSAGE_DELETE_BULK", many)
        direct = await discord.server.write("direct")
        await discord.server.delete(direct)
        events = await discord.recorder.wait_for(8)
    deletions = [(each.id, each.address) for each in events if isinstance(each, MessageDeleted)]
    assert sorted(deletions) == sorted(
        [(one, THREAD_ADDRESS), (two, THREAD_ADDRESS), (three, THREAD_ADDRESS), (direct, DIRECT_ADDRESS)],
        key=lambda pair: pair[0],
    )


async def test_files_are_downloaded_with_safe_names_and_failures_are_named_in_the_text() -> None:
    async with running_discord() as discord:
        server = discord.server
        picture = server.add_file("../../etc/pass\u0000wd.png", b"picture", "image/png")
        text = server.add_file("notes.txt", b"notes", None)
        big = server.add_file("big.iso", b"x", "application/octet-stream", size=21 * 1024 * 1024)
        gone = {**server.add_file("gone.txt", b"x", "text/plain"), "url": f"{server.root}/cdn-not-there"}
        await server.write("look", attachments=[picture, text, big, gone])
        [written] = await discord.recorder.wait_for(1)
    assert isinstance(written, IncomingMessage)
    names = [(file.name, file.media_type, base64.b64decode(file.data)) for file in written.attachments]
    assert names == [("passwd.png", "image/png", b"picture"), ("notes.txt", "text/plain", b"notes")]
    assert written.text.split("\n") == [
        "look",
        "[The file big.iso was not downloaded: the file is larger than 20 MB.]",
        "[The file gone.txt was not downloaded: Discord answered 404.]",
    ]


async def test_a_voice_message_is_delivered_as_voice() -> None:
    async with running_discord() as discord:
        file = discord.server.add_file("voice-message.ogg", b"OggS...", "audio/ogg")
        await discord.server.write("", flags=1 << 13, attachments=[{**file, "waveform": "AA==", "duration_secs": 2.0}])
        [written] = await discord.recorder.wait_for(1)
    assert isinstance(written, IncomingMessage)
    assert written.voice is not None
    assert (written.voice.media_type, written.attachments, written.text) == ("audio/ogg", (), "")


async def test_a_forwarded_message_is_delivered_with_its_text_and_files() -> None:
    async with running_discord() as discord:
        file = discord.server.add_file("plan.txt", b"the plan", "text/plain")
        inner = {**message("1", DIRECT, BEN, "look at this"), "attachments": [file]}
        reference = {"type": 1, "message_id": "1", "channel_id": DIRECT}
        await discord.server.write("", message_reference=reference, message_snapshots=[{"message": inner}])
        [written] = await discord.recorder.wait_for(1)
    assert isinstance(written, IncomingMessage)
    assert written.text == "[Forwarded]\nlook at this"
    assert [one.name for one in written.attachments] == ["plan.txt"]


async def test_text_messages_stay_in_order_after_a_slow_download() -> None:
    async with running_discord() as discord:
        server = discord.server
        slow = server.add_file("slow.bin", b"x", None)
        may_answer = server.slow[slow["id"]] = asyncio.Event()
        await server.write("first", attachments=[slow])
        await server.write("second")
        await server.write("elsewhere", GENERAL, mentions=[ROBOT])
        await discord.recorder.wait_for(1)
        assert discord.recorder.texts == ["elsewhere"]
        may_answer.set()
        await discord.recorder.wait_for(3)
    assert discord.recorder.texts == ["elsewhere", "first", "second"]


async def test_a_button_press_is_acknowledged_at_once_and_overtakes_messages() -> None:
    async with running_discord() as discord:
        long = "answer:" + "q" * 200 + ":1"
        buttons = (Button("⏹ Stop", "stop:t1"), Button("Yes", long))
        await discord.surface.send(THREAD_ADDRESS, OutgoingMessage("working", buttons))
        discord.recorder.gate.clear()
        stop = await discord.server.press(discord.server.bot_messages[-1], "Stop")
        await discord.server.until(lambda: bool(discord.server.acks))
        assert discord.recorder.events == []
        discord.recorder.gate.set()
        yes = await discord.server.press(discord.server.bot_messages[-1], "Yes", BEN)
        await discord.server.until(lambda: len(discord.server.acks) == 2)
        events = await discord.recorder.wait_for(2)
    assert events[0] == ButtonPressed(stop, THREAD_ADDRESS, Author("1001", "Ann"), "stop:t1")
    assert events[1] == ButtonPressed(yes, THREAD_ADDRESS, Author("1002", "Ben"), long)
    assert [body for _, body in discord.server.acks] == [{"type": 6}, {"type": 6}]


async def test_a_press_of_an_expired_button_is_answered_with_a_notice() -> None:
    async with DiscordServer().serving() as server:
        async with running_surface(make_discord_surface(server), server, DeliveryRecorder()) as discord:
            await discord.surface.send(DIRECT_ADDRESS, OutgoingMessage("?", (Button("Yes", "x" * 101),)))
        async with running_surface(make_discord_surface(server), server, DeliveryRecorder()) as discord:
            await server.press(server.bot_messages[-1], "Yes")
            await server.until(lambda: bool(server.acks))
        assert server.acks[0][1]["data"]["flags"] == 64
        assert discord.recorder.events == []


# Undelivered events arrive again.


async def test_a_message_that_could_not_be_stored_is_delivered_again_by_the_next_run() -> None:
    async with DiscordServer().serving() as server:
        surface = make_discord_surface(server)
        recorder = DeliveryRecorder(errors=[OSError("the disk is full")])
        async with running_surface(surface, server, recorder) as discord:
            number = await server.write("store me")
            with pytest.raises(OSError, match="the disk is full"):
                await discord.running
        async with running_surface(surface, server, recorder):
            [written] = await recorder.wait_for(1)
        assert (written.id, server.gateway.identified, len(server.gateway.resumed)) == (number, 1, 1)


async def test_a_restart_resumes_the_session_and_misses_no_message(tmp_path: Path) -> None:
    async with DiscordServer().serving() as server:
        async with running_surface(
            make_discord_surface(server, tmp_path / "position"), server, DeliveryRecorder()
        ) as discord:
            first = await server.write("before")
            await discord.recorder.wait_for(1)
            discord.recorder.gate.clear()
            lost = await server.write("during shutdown")
        gone = await server.write("while offline")
        async with running_surface(
            make_discord_surface(server, tmp_path / "position"), server, DeliveryRecorder()
        ) as discord:
            events = await discord.recorder.wait_for(2)
        assert [one.id for one in events if one.id != first] == [lost, gone]
        assert server.gateway.identified == 1
    assert TOKEN not in (tmp_path / "position").read_text()
    assert (tmp_path / "position").stat().st_mode & 0o077 == 0


async def test_missed_messages_are_fetched_after_a_lost_session(tmp_path: Path) -> None:
    async with DiscordServer().serving() as server:
        async with running_surface(
            make_discord_surface(server, tmp_path / "position"), server, DeliveryRecorder()
        ) as discord:
            await server.write("before")
            await server.write("hello <@9000>", GENERAL, mentions=[ROBOT])
            await discord.recorder.wait_for(2)
        server.gateway.sessions.clear()
        one = await server.write("one")
        await server.write("chatter", GENERAL)
        two = await server.write("<@9000> two", GENERAL, mentions=[ROBOT])
        async with running_surface(
            make_discord_surface(server, tmp_path / "position"), server, DeliveryRecorder()
        ) as discord:
            await discord.recorder.until(lambda: {"one", "two"} <= set(discord.recorder.texts))
        assert {one, two} <= {each.id for each in discord.recorder.events}
        assert server.gateway.identified == 2


async def test_fetching_missed_messages_retries_until_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hark.surfaces.discord.incoming.FIRST_RETRY_SECONDS", 0.01)
    async with DiscordServer().serving() as server:
        async with running_surface(
            make_discord_surface(server, tmp_path / "position"), server, DeliveryRecorder()
        ) as discord:
            await server.write("before")
            await discord.recorder.wait_for(1)
        server.gateway.sessions.clear()
        texts = [f"message {number}" for number in range(120)]
        for text in texts:
            await server.write(text)
        server.fail("GET", "/messages", 503)
        server.rate_limit("GET", "/messages", 0.01)
        async with running_surface(
            make_discord_surface(server, tmp_path / "position"), server, DeliveryRecorder()
        ) as discord:
            await discord.recorder.until(lambda: texts[-1] in discord.recorder.texts)
    assert [text for text in discord.recorder.texts if text != "before"] == texts


async def test_a_chat_that_became_inaccessible_does_not_block_others(tmp_path: Path) -> None:
    async with DiscordServer().serving() as server:
        async with running_surface(
            make_discord_surface(server, tmp_path / "position"), server, DeliveryRecorder()
        ) as discord:
            await server.write("before")
            await discord.recorder.wait_for(1)
        server.gateway.sessions.clear()
        server.fail("GET", "/messages", 403, 50001, "Missing Access")
        async with running_surface(
            make_discord_surface(server, tmp_path / "position"), server, DeliveryRecorder()
        ) as discord:
            await server.write("after")
            await discord.recorder.until(lambda: "after" in discord.recorder.texts)


@pytest.mark.parametrize("trouble", ["drop", "reconnect", "invalid", "4000", "4009", "1000"])
async def test_a_lost_connection_is_restored(trouble: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_discord() as discord:
        monkeypatch.setattr("hark.surfaces.discord.client.IDENTIFY_SECONDS", 0.0)
        gateway = discord.server.gateway
        await discord.server.write("first")
        await discord.recorder.wait_for(1)
        seen = len(gateway.closings)
        match trouble:
            case "drop":
                gateway.drop()
            case "reconnect":
                await gateway.ask_to_reconnect()
            case "invalid":
                await gateway.invalidate()
            case _:
                await gateway.close(int(trouble))
        await discord.server.until(lambda: len(gateway.closings) > seen)
        await discord.server.write("second")
        await discord.recorder.until(lambda: "second" in discord.recorder.texts)
    assert gateway.identified == (2 if trouble in ("invalid", "4009", "1000") else 1)


async def test_a_redelivered_event_has_the_same_id() -> None:
    async with running_discord() as discord:
        await discord.server.write("once")
        await discord.server.gateway.redeliver()
        first, again = await discord.recorder.wait_for(2)
    assert first == again


async def test_heartbeats_are_sent_while_connected() -> None:
    async with DiscordServer().serving() as server:
        server.gateway.heartbeat_ms = 20
        async with running_surface(make_discord_surface(server), server, DeliveryRecorder()):
            await server.until(lambda: server.gateway.heartbeats > 3)


async def test_an_unknown_event_is_ignored() -> None:
    async with running_discord() as discord:
        await discord.server.gateway.dispatch("MESSAGE_CREATE", {"id": "1"})
        await discord.server.gateway.dispatch("SOMETHING_NEW", {"a": [1]})
        await discord.server.write("still here")
        await discord.recorder.wait_for(1)
    assert discord.recorder.texts == ["still here"]


# Sending.


async def test_a_message_is_sent_and_edited_without_pinging_anyone() -> None:
    async with running_discord() as discord:
        number = await discord.surface.send(
            DIRECT_ADDRESS, OutgoingMessage("@everyone **hi** <@1002>", (Button("⏹ Stop", "stop:1"),))
        )
        assert discord.server.bot_messages[0]["components"][0]["components"][0]["custom_id"] == "stop:1"
        await discord.surface.edit(DIRECT_ADDRESS, number, OutgoingMessage("done @everyone"))
        await discord.surface.show_typing(THREAD_ADDRESS)
    assert discord.server.bot_texts == ["done @everyone"]
    assert discord.server.bot_messages[0]["components"] == []
    assert discord.server.pings == []
    assert discord.server.typing == [THREAD]


async def test_a_message_with_a_repeated_key_is_sent_once_and_shows_the_newest_text() -> None:
    async with running_discord() as discord:
        first = await discord.surface.send(
            DIRECT_ADDRESS, OutgoingMessage("half ▌", (Button("Stop", "stop:1"),), key="turn:1")
        )
        second = await discord.surface.send(DIRECT_ADDRESS, OutgoingMessage("complete", key="turn:1"))
        other = await discord.surface.send(CHANNEL_ADDRESS, OutgoingMessage("complete", key="turn:1"))
    assert first == second != other
    assert discord.server.bot_texts == ["complete", "complete"]


async def test_a_connection_lost_after_sending_causes_no_duplicate() -> None:
    async with running_discord() as discord:
        discord.server.fail("POST", "/messages", 0, is_processed=True)
        with pytest.raises(ChatError):
            await discord.surface.send(DIRECT_ADDRESS, OutgoingMessage("once", key="k"))
        await discord.surface.send(DIRECT_ADDRESS, OutgoingMessage("once", key="k"))
    assert discord.server.bot_texts == ["once"]


async def test_a_reply_references_its_message_unless_that_message_was_deleted() -> None:
    async with running_discord() as discord:
        number = await discord.server.write("question")
        await discord.surface.send(DIRECT_ADDRESS, OutgoingMessage("answer", reply_to=number))
        await discord.surface.send(DIRECT_ADDRESS, OutgoingMessage("too late", reply_to="123"))
    assert discord.server.bot_messages[0]["message_reference"]["message_id"] == number
    assert discord.server.bot_texts == ["answer", "too late"]


async def test_long_messages_empty_messages_and_many_buttons_are_accepted() -> None:
    async with running_discord() as discord:
        await discord.surface.send(DIRECT_ADDRESS, OutgoingMessage("a" * 2000))
        await discord.surface.send(DIRECT_ADDRESS, OutgoingMessage("b" * 3000))
        await discord.surface.send(DIRECT_ADDRESS, OutgoingMessage("  \n"))
        many = tuple(Button("label " * 30, f"v{index}") for index in range(30))
        await discord.surface.send(DIRECT_ADDRESS, OutgoingMessage("choose", many))
    assert [len(text) for text in discord.server.bot_texts] == [2000, 2000, 1, 6]
    assert sum(len(row["components"]) for row in discord.server.bot_messages[-1]["components"]) == 25


async def test_a_message_whose_format_is_refused_is_sent_as_plain_text() -> None:
    async with running_discord() as discord:
        twice = (Button("a", "same"), Button("b", "same"))
        number = await discord.surface.send(DIRECT_ADDRESS, OutgoingMessage("#### choose", twice))
        assert discord.server.bot_texts == ["#### choose"]
        await discord.surface.edit(DIRECT_ADDRESS, number, OutgoingMessage("#### again", twice))
    assert discord.server.bot_texts == ["#### again"]


async def test_a_voice_recording_is_sent_as_a_file() -> None:
    async with running_discord() as discord:
        await discord.surface.send(DIRECT_ADDRESS, OutgoingMessage("spoken", voice=b"OggS-speech", key="v"))
    assert discord.server.uploads == [b"OggS-speech"]
    assert discord.server.bot_texts == ["spoken"]


async def test_reactions_use_discords_emoji_format_and_replace_the_previous_reaction() -> None:
    async with running_discord() as discord:
        number, other = await discord.server.write("hi"), await discord.server.write("ho")
        for reaction in "👀⚡↪⏳⏸🗑🗑":
            await discord.surface.react(DIRECT_ADDRESS, number, reaction)
        await discord.surface.react(DIRECT_ADDRESS, other, "⏳")
        with pytest.raises(ChatGone, match="Unknown Emoji"):
            await discord.surface.react(DIRECT_ADDRESS, number, "?")
    assert discord.server.reactions == [(number, "🗑\ufe0f"), (other, "⏳")]
    assert len([path for method, path in discord.server.requests if method == "PUT"]) == 8


# Refusals of Discord.


async def test_a_rate_limit_delays_only_its_own_chat() -> None:
    async with running_discord() as discord:
        server = discord.server
        await discord.surface.send(DIRECT_ADDRESS, OutgoingMessage("warm"))
        await discord.surface.send(CHANNEL_ADDRESS, OutgoingMessage("warm"))
        server.rate_limit("POST", f"/channels/{DIRECT}/messages", 25.0)
        held = asyncio.create_task(discord.surface.send(DIRECT_ADDRESS, OutgoingMessage("held")))
        await server.until(lambda: not server.failures)
        async with asyncio.timeout(20):
            await discord.surface.send(CHANNEL_ADDRESS, OutgoingMessage("free"))
        assert not held.done()
        assert server.bot_texts[2:] == ["free"]
        while held.cancel() and not held.done():
            await asyncio.wait([held], timeout=0.05)


async def test_a_rate_limited_message_is_sent_after_the_rate_limit_expires() -> None:
    async with running_discord() as discord:
        discord.server.rate_limit("POST", "/messages", 0.05)
        await discord.surface.send(DIRECT_ADDRESS, OutgoingMessage("held"))
    assert discord.server.bot_texts == ["held"]


async def test_a_long_rate_limit_is_reported_with_its_wait_time() -> None:
    async with running_discord() as discord:
        discord.server.rate_limit("POST", "/messages", 300.0)
        with pytest.raises(ChatError) as error:
            await discord.surface.send(DIRECT_ADDRESS, OutgoingMessage("hi"))
        assert error.value.retry_after == 300.0
        discord.server.rate_limit("PATCH", "/messages", 7.0, is_ban=True)
        with pytest.raises(ChatError) as error:
            await discord.surface.edit(DIRECT_ADDRESS, "1", OutgoingMessage("hi"))
        assert error.value.retry_after == 7.0


async def test_a_call_cancelled_during_a_global_rate_limit_does_not_block_others() -> None:
    async with running_discord() as discord:
        server = discord.server
        server.rate_limit("POST", "/typing", 25.0, is_global=True)
        held = asyncio.create_task(discord.surface.show_typing(DIRECT_ADDRESS))
        await server.until(lambda: not server.failures)
        while held.cancel() and not held.done():
            await asyncio.wait([held], timeout=0.05)
        async with asyncio.timeout(20):
            await discord.surface.send(DIRECT_ADDRESS, OutgoingMessage("free"))
    assert server.bot_texts == ["free"]


async def test_a_server_error_is_retried() -> None:
    async with running_discord() as discord:
        discord.server.fail("POST", "/messages", 502)
        await discord.surface.send(DIRECT_ADDRESS, OutgoingMessage("through", key="k"))
    assert discord.server.bot_texts == ["through"]


@pytest.mark.parametrize(("status", "code"), [(403, 50007), (403, 50013), (404, 10003), (400, 50083)])
async def test_a_permanent_refusal_raises_chat_gone(status: int, code: int) -> None:
    async with running_discord() as discord:
        discord.server.fail("POST", "/messages", status, code, "No way")
        with pytest.raises(ChatGone, match="No way"):
            await discord.surface.send(DIRECT_ADDRESS, OutgoingMessage("hi"))
        with pytest.raises(ChatGone, match="Unknown Message"):
            await discord.surface.edit(DIRECT_ADDRESS, "123", OutgoingMessage("hi"))
        with pytest.raises(ChatGone, match="Unknown Channel"):
            await discord.surface.send(Address("discord", "4"), OutgoingMessage("hi"))
        discord.server.fail("POST", "/messages", 503, 0, "later")
        with pytest.raises(ChatError, match="later") as error:
            await discord.surface.send(DIRECT_ADDRESS, OutgoingMessage("hi"))
        assert not isinstance(error.value, ChatGone)


async def test_a_wrong_token_is_reported_without_showing_the_token(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with DiscordServer().serving() as server:
        surface = DiscordSurface(DiscordSettings(api_base=server.base), "wrong.secret.token")
        with pytest.raises(ChatError, match="rejected the bot token") as error:
            await surface.run(DeliveryRecorder())
        with pytest.raises(ChatError, match="needs a bot token"):
            await DiscordSurface(DiscordSettings(api_base=server.base), "").run(DeliveryRecorder())
    assert "secret" not in str(error.value) + caplog.text


async def test_a_missing_intent_is_reported_with_instructions() -> None:
    async with DiscordServer().serving() as server:
        server.gateway.allowed_intents = 0
        with pytest.raises(ChatError, match="MESSAGE CONTENT INTENT"):
            await make_discord_surface(server).run(DeliveryRecorder())


async def test_a_gateway_that_closes_before_its_hello_is_retried() -> None:
    async with DiscordServer().serving() as server:
        server.gateway.connections_to_refuse = 1
        async with running_surface(make_discord_surface(server), server, DeliveryRecorder()) as discord:
            await server.write("hello")
            await discord.recorder.wait_for(1)


async def test_no_session_is_started_when_discords_session_limit_is_almost_reached() -> None:
    async with DiscordServer().serving() as server:
        server.gateway.session_starts_left = 5
        with pytest.raises(ChatError, match="session limit") as error:
            await make_discord_surface(server).run(DeliveryRecorder())
        assert error.value.retry_after == 1.0
        assert server.gateway.identified == 0


async def test_a_server_that_is_not_discord_is_reported() -> None:
    async with DiscordServer().serving() as server:
        server.fail("GET", "/users/@me", 200)
        with pytest.raises(ChatError, match="is not Discord"):
            await make_discord_surface(server).run(DeliveryRecorder())


async def test_a_message_waits_for_the_connection_and_fails_after_a_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with DiscordServer().serving() as server:
        surface = make_discord_surface(server)
        early = asyncio.create_task(surface.send(DIRECT_ADDRESS, OutgoingMessage("early")))
        async with running_surface(surface, server, DeliveryRecorder()):
            await early
        assert server.bot_texts == ["early"]
        monkeypatch.setattr("hark.surfaces.discord.surface.DiscordSurface.connect_seconds", 0.01)
        with pytest.raises(ChatError, match="not connected"):
            await surface.send(DIRECT_ADDRESS, OutgoingMessage("late"))
    with pytest.raises(ChatError, match="can't be reached"):
        await surface.run(DeliveryRecorder())


# Shutdown.


async def test_cancelling_leaves_no_tasks_and_keeps_the_session_resumable() -> None:
    async with DiscordServer().serving() as server:
        before, threads = other_tasks(), set(threading.enumerate())
        recorder = DeliveryRecorder()
        async with running_surface(make_discord_surface(server), server, recorder) as discord:
            recorder.gate.clear()
            await server.write("held")
            discord.running.cancel()
            async with asyncio.timeout(SHUTDOWN_SECONDS):
                await asyncio.wait([discord.running])
        assert set(threading.enumerate()) <= threads
        await server.until(lambda: server.gateway.closings == [4000])
        leftover_tasks = {task for task in other_tasks() - before if "discord" in repr(task.get_coro())}
        assert leftover_tasks == set()


async def test_cancelling_is_quick_while_the_login_hangs() -> None:
    async with DiscordServer().serving() as server:
        server.slow["/users/@me"] = asyncio.Event()
        task = asyncio.create_task(make_discord_surface(server).run(DeliveryRecorder()))
        await server.until(lambda: bool(server.requests))
        task.cancel()
        async with asyncio.timeout(SHUTDOWN_SECONDS):
            await asyncio.wait([task])
        assert task.cancelled()
        server.slow["/users/@me"].set()


async def test_a_slow_chat_does_not_delay_another() -> None:
    async with running_discord() as discord:
        gate = discord.server.slow[f"/channels/{DIRECT}/"] = asyncio.Event()
        slow = asyncio.create_task(discord.surface.send(DIRECT_ADDRESS, OutgoingMessage("slow")))
        await discord.surface.send(CHANNEL_ADDRESS, OutgoingMessage("quick"))
        assert discord.server.bot_texts == ["quick"]
        gate.set()
        await slow


async def test_cancelling_is_quick_when_discord_does_not_respond() -> None:
    async with DiscordServer().serving() as server:
        server.gateway.ignores_closing = True
        async with running_surface(make_discord_surface(server), server, DeliveryRecorder()) as discord:
            threads = [thread for thread in threading.enumerate() if "keep-alive" in thread.name]
            discord.running.cancel()
            async with asyncio.timeout(SHUTDOWN_SECONDS):
                await asyncio.wait([discord.running])
        assert threads
        assert not any(thread.is_alive() for thread in threads)


async def test_closing_stops_the_heartbeat_thread_of_a_failed_connection() -> None:
    from hark.surfaces.discord.client import DiscordClient, KeepAliveHandler  # the fixture has loaded discord.py

    client = DiscordClient("", lambda event, arguments: None)
    socket = SimpleNamespace(thread_id=0, _max_heartbeat_timeout=60.0, _connection=client._connection)
    heartbeat = KeepAliveHandler(ws=cast("Any", socket), interval=1000.0)
    heartbeat.start()
    try:
        async with asyncio.timeout(at_most(2)):
            await client.close_resumable()
        assert not heartbeat.is_alive()
    finally:
        heartbeat.stop()
