"""Discord, by its own client library: what comes in is kept before it is passed by, what goes out is shown once."""

import asyncio
import base64
import logging
import threading
import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from hark.protocol.chat import (
    Address,
    Author,
    Button,
    ChatError,
    ChatGone,
    Outgoing,
    Pressed,
    Removed,
    Rewritten,
    Written,
)
from hark.surfaces.discord.platform import DiscordSettings
from hark.surfaces.discord.surface import DiscordSurface
from tests.fakes.discord_payloads import BEN, DIRECT, GENERAL, GUILD, ROBOT, THREAD, Json, message
from tests.fakes.discord_server import TOKEN, DiscordServer, idle_tasks
from tests.surfaces.discord.discord_fixture import HOME, ROOM, SIDE, Taken, discord_world, running, surface_for

END_SECONDS = 20  # less than a second on an idle machine


def edited_at(one: Json) -> float:
    return datetime.fromisoformat(one["edited_timestamp"]).timestamp()


# In.


async def test_a_direct_message_comes_in_with_its_author() -> None:
    async with discord_world() as world:
        number = await world.server.write("hello")
        [written] = await world.taken.count(1)
        assert isinstance(written, Written)
        assert written.at == pytest.approx(time.time(), abs=60)
    assert (written.id, written.address, written.text) == (number, HOME, "hello")
    assert (written.author, written.is_for_us) == (Author("1001", "Ann"), True)


async def test_in_a_server_it_is_for_us_when_it_names_us_or_our_role_or_replies_to_us() -> None:
    async with discord_world() as world:
        server = world.server
        ours = message("5", GENERAL, ROBOT, "I think so")
        reference = {"type": 0, "message_id": "5", "channel_id": GENERAL, "guild_id": GUILD}
        await server.write("just chatting", GENERAL)
        await server.write("<@9000> do it, <@1002>", GENERAL, mentions=[ROBOT, BEN])
        await server.write("<@&510> you too", GENERAL, mention_roles=["510"])
        await server.write("really?", GENERAL, type=19, message_reference=reference, referenced_message=ours)
        taken = await world.taken.count(4)
    written = [one for one in taken if isinstance(one, Written)]
    assert [one.is_for_us for one in written] == [False, True, True, True]
    assert [one.text for one in written] == ["just chatting", "do it, @Ben", "@Hark you too", "really?"]
    assert written[3].quoted == "I think so"
    assert {one.address for one in written} == {ROOM}


async def test_bots_ourselves_and_notices_are_not_heard() -> None:
    async with discord_world() as world:
        await world.surface.send(HOME, Outgoing("our own"))
        await world.server.write("beep", author={**BEN, "bot": True})
        await world.server.write("", GENERAL, type=7)
        await world.server.write("hook", GENERAL, webhook_id="77")
        await world.server.write("a person")
        await world.taken.count(1)
    assert world.taken.texts == ["a person"]


async def test_a_thread_is_a_place_of_its_own_even_when_it_is_not_known_yet(tmp_path: Path) -> None:
    async with DiscordServer().serving() as server:
        async with running(surface_for(server, tmp_path / "p"), server, Taken()) as world:
            await server.write("in the thread", THREAD)
            [first] = await world.taken.count(1)
            await world.surface.send(SIDE, Outgoing("answer"))
            assert server.ours[-1]["channel_id"] == THREAD
        async with running(surface_for(server, tmp_path / "p"), server, Taken()) as world:  # resumed: nothing is cached
            await server.write("again", THREAD)
            await server.write("and outside", GENERAL)
            later = await world.taken.count(2)  # two places: which of them is told first is not known
    assert first.address == SIDE
    assert {one.text: one.address for one in later if isinstance(one, Written)} == {"again": SIDE, "and outside": ROOM}


async def test_an_edit_comes_in_and_a_preview_of_a_link_does_not() -> None:
    async with discord_world() as world:
        number = await world.server.write("see http://a.example")
        await world.server.gateway.dispatch("MESSAGE_UPDATE", world.server.messages[number])
        await world.server.rewrite(number, "see http://b.example")
        taken = await world.taken.count(2)
        at = edited_at(world.server.messages[number])
        await world.server.rewrite(number, "see http://a.example")
        await world.server.rewrite(number, "see http://b.example")
        later = await world.taken.count(4)
    assert taken[1] == Rewritten(number, HOME, Author("1001", "Ann"), "see http://b.example", at)
    assert later[3] != taken[1]  # the same text, but another edit


async def test_edits_and_deletions_of_what_was_not_for_us_are_no_business_of_ours() -> None:
    async with discord_world() as world:
        server = world.server
        chat = await server.write("chat", GENERAL)
        named = await server.write("<@9000> hi", GENERAL, mentions=[ROBOT])
        await world.taken.count(2)
        await server.rewrite(chat, "chat!")
        await server.remove(chat)
        await server.rewrite(named, "<@9000> hi!")
        at = edited_at(server.messages[named])
        await server.remove(named)
        taken = await world.taken.count(4)
    assert taken[2:] == [Rewritten(named, ROOM, Author("1001", "Ann"), "hi!", at), Removed(named, ROOM)]


async def test_an_edit_that_first_names_us_is_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hark.surfaces.discord.gateway.CLOCKS_DIFFER", timedelta(seconds=-1))
    async with discord_world() as world:
        server = world.server
        number = await server.write("do it", GENERAL)
        await server.rewrite(number, "<@9000> do it", mentions=[ROBOT])
        await server.rewrite(number, "<@9000> do it now", mentions=[ROBOT])
        taken = await world.taken.count(3)
    assert [(type(one), one.id) for one in taken] == [(Written, number), (Written, number), (Rewritten, number)]
    assert [one.is_for_us for one in taken if isinstance(one, Written)] == [False, True]


async def test_an_edit_and_a_deletion_right_behind_a_slow_message_are_not_lost() -> None:
    async with discord_world() as world:
        server = world.server
        world.taken.gate.clear()
        number = await server.write("<@9000> do it", GENERAL, mentions=[ROBOT])
        await server.rewrite(number, "<@9000> do that", mentions=[ROBOT])
        await server.remove(number)
        last = await server.write("<@9000> end", GENERAL, mentions=[ROBOT])
        world.taken.gate.set()
        taken = await world.taken.count(4)
    assert [type(one) for one in taken] == [Written, Rewritten, Removed, Written]
    assert taken[3].id == last


async def test_a_deletion_in_a_server_is_heard_by_the_process_after_the_one_that_heard_the_message(
    tmp_path: Path,
) -> None:
    async with DiscordServer().serving() as server:
        async with running(surface_for(server, tmp_path / "position"), server, Taken()) as world:
            number = await server.write("<@9000> do it", GENERAL, mentions=[ROBOT])
            await world.taken.count(1)
        async with running(surface_for(server, tmp_path / "position"), server, Taken()) as world:
            await server.remove(number)
            assert await world.taken.count(1) == [Removed(number, ROOM)]


async def test_a_deletion_in_a_direct_chat_and_many_at_once() -> None:
    async with discord_world() as world:
        one, two, three = [await world.server.write(text, THREAD, mentions=[ROBOT]) for text in ("1", "2", "3")]
        await world.taken.count(3)
        await world.server.remove(one)
        many = {"ids": [three, two], "channel_id": THREAD, "guild_id": GUILD}
        await world.server.gateway.dispatch("MESSAGE_DELETE_BULK", many)
        direct = await world.server.write("direct")
        await world.server.remove(direct)
        taken = await world.taken.count(8)
    gone = [(each.id, each.address) for each in taken if isinstance(each, Removed)]
    assert sorted(gone) == sorted([(one, SIDE), (two, SIDE), (three, SIDE), (direct, HOME)], key=lambda pair: pair[0])


async def test_files_come_along_under_safe_names_and_those_that_do_not_are_told() -> None:
    async with discord_world() as world:
        server = world.server
        picture = server.file("../../etc/pass\u0000wd.png", b"picture", "image/png")
        text = server.file("notes.txt", b"notes", None)
        big = server.file("big.iso", b"x", "application/octet-stream", size=21 * 1024 * 1024)
        gone = {**server.file("gone.txt", b"x", "text/plain"), "url": f"{server.root}/cdn-not-there"}
        await server.write("look", attachments=[picture, text, big, gone])
        [written] = await world.taken.count(1)
    assert isinstance(written, Written)
    names = [(file.name, file.media_type, base64.b64decode(file.data)) for file in written.attachments]
    assert names == [("passwd.png", "image/png", b"picture"), ("notes.txt", "text/plain", b"notes")]
    assert written.text.split("\n") == [
        "look",
        "[The file big.iso was not fetched: it is larger than 20 MB.]",
        "[The file gone.txt was not fetched: Discord answered 404.]",
    ]


async def test_a_voice_message_is_a_voice() -> None:
    async with discord_world() as world:
        file = world.server.file("voice-message.ogg", b"OggS...", "audio/ogg")
        await world.server.write("", flags=1 << 13, attachments=[{**file, "waveform": "AA==", "duration_secs": 2.0}])
        [written] = await world.taken.count(1)
    assert isinstance(written, Written)
    assert written.voice is not None
    assert (written.voice.media_type, written.attachments, written.text) == ("audio/ogg", (), "")


async def test_a_forwarded_message_comes_with_its_words_and_files() -> None:
    async with discord_world() as world:
        file = world.server.file("plan.txt", b"the plan", "text/plain")
        inner = {**message("1", DIRECT, BEN, "look at this"), "attachments": [file]}
        reference = {"type": 1, "message_id": "1", "channel_id": DIRECT}
        await world.server.write("", message_reference=reference, message_snapshots=[{"message": inner}])
        [written] = await world.taken.count(1)
    assert isinstance(written, Written)
    assert written.text == "[Forwarded]\nlook at this"
    assert [one.name for one in written.attachments] == ["plan.txt"]


async def test_texts_keep_their_order_though_a_file_before_them_is_slow() -> None:
    async with discord_world() as world:
        server = world.server
        slow = server.file("slow.bin", b"x", None)
        may_answer = server.slow[slow["id"]] = asyncio.Event()
        await server.write("first", attachments=[slow])
        await server.write("second")
        await server.write("elsewhere", GENERAL, mentions=[ROBOT])
        await world.taken.count(1)
        assert world.taken.texts == ["elsewhere"]
        may_answer.set()
        await world.taken.count(3)
    assert world.taken.texts == ["elsewhere", "first", "second"]


async def test_a_press_is_acknowledged_at_once_and_overtakes_messages() -> None:
    async with discord_world() as world:
        long = "answer:" + "q" * 200 + ":1"
        buttons = (Button("⏹ Stop", "stop:t1"), Button("Yes", long))
        await world.surface.send(SIDE, Outgoing("working", buttons))
        world.taken.gate.clear()
        stop = await world.server.press(world.server.ours[-1], "Stop")
        await world.server.until(lambda: bool(world.server.acks))
        assert world.taken.all == []
        world.taken.gate.set()
        yes = await world.server.press(world.server.ours[-1], "Yes", BEN)
        await world.server.until(lambda: len(world.server.acks) == 2)
        taken = await world.taken.count(2)
    assert taken[0] == Pressed(stop, SIDE, Author("1001", "Ann"), "stop:t1")
    assert taken[1] == Pressed(yes, SIDE, Author("1002", "Ben"), long)
    assert [body for _, body in world.server.acks] == [{"type": 6}, {"type": 6}]


async def test_a_button_of_which_nothing_is_known_any_more_is_answered() -> None:
    async with DiscordServer().serving() as server:
        async with running(surface_for(server), server, Taken()) as world:
            await world.surface.send(HOME, Outgoing("?", (Button("Yes", "x" * 101),)))
        async with running(surface_for(server), server, Taken()) as world:
            await server.press(server.ours[-1], "Yes")
            await server.until(lambda: bool(server.acks))
        assert server.acks[0][1]["data"]["flags"] == 64
        assert world.taken.all == []


# What is not kept comes again.


async def test_what_could_not_be_kept_comes_again_with_the_next_run() -> None:
    async with DiscordServer().serving() as server:
        surface = surface_for(server)
        taken = Taken(failing=[OSError("the disk is full")])
        async with running(surface, server, taken) as world:
            number = await server.write("keep me")
            with pytest.raises(OSError, match="the disk is full"):
                await world.running
        async with running(surface, server, taken):
            [written] = await taken.count(1)
        assert (written.id, server.gateway.identified, len(server.gateway.resumed)) == (number, 1, 1)


async def test_a_restart_resumes_and_misses_nothing(tmp_path: Path) -> None:
    async with DiscordServer().serving() as server:
        async with running(surface_for(server, tmp_path / "position"), server, Taken()) as world:
            first = await server.write("before")
            await world.taken.count(1)
            world.taken.gate.clear()
            lost = await server.write("while we end")
        gone = await server.write("while we are away")
        async with running(surface_for(server, tmp_path / "position"), server, Taken()) as world:
            taken = await world.taken.count(2)
        assert [one.id for one in taken if one.id != first] == [lost, gone]
        assert server.gateway.identified == 1
    assert TOKEN not in (tmp_path / "position").read_text()
    assert (tmp_path / "position").stat().st_mode & 0o077 == 0


async def test_after_a_lost_session_what_was_said_meanwhile_is_read(tmp_path: Path) -> None:
    async with DiscordServer().serving() as server:
        async with running(surface_for(server, tmp_path / "position"), server, Taken()) as world:
            await server.write("before")
            await server.write("hello <@9000>", GENERAL, mentions=[ROBOT])
            await world.taken.count(2)
        server.gateway.sessions.clear()
        one = await server.write("one")
        await server.write("chatter", GENERAL)
        two = await server.write("<@9000> two", GENERAL, mentions=[ROBOT])
        async with running(surface_for(server, tmp_path / "position"), server, Taken()) as world:
            await world.taken.until(lambda: {"one", "two"} <= set(world.taken.texts))
        assert {one, two} <= {each.id for each in world.taken.all}
        assert server.gateway.identified == 2


async def test_what_was_said_meanwhile_is_asked_for_again_and_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hark.surfaces.discord.missed_messages.FIRST_PAUSE_SECONDS", 0.01)
    async with DiscordServer().serving() as server:
        async with running(surface_for(server, tmp_path / "position"), server, Taken()) as world:
            await server.write("before")
            await world.taken.count(1)
        server.gateway.sessions.clear()
        said = [f"message {number}" for number in range(120)]
        for text in said:
            await server.write(text)
        server.fail("GET", "/messages", 503)
        server.limit("GET", "/messages", 0.01)
        async with running(surface_for(server, tmp_path / "position"), server, Taken()) as world:
            await world.taken.until(lambda: said[-1] in world.taken.texts)
    assert [text for text in world.taken.texts if text != "before"] == said


async def test_a_chat_that_is_closed_to_us_meanwhile_holds_up_nothing(tmp_path: Path) -> None:
    async with DiscordServer().serving() as server:
        async with running(surface_for(server, tmp_path / "position"), server, Taken()) as world:
            await server.write("before")
            await world.taken.count(1)
        server.gateway.sessions.clear()
        server.fail("GET", "/messages", 403, 50001, "Missing Access")
        async with running(surface_for(server, tmp_path / "position"), server, Taken()) as world:
            await server.write("after")
            await world.taken.until(lambda: "after" in world.taken.texts)


@pytest.mark.parametrize("trouble", ["drop", "reconnect", "invalid", "4000", "4009", "1000"])
async def test_a_lost_connection_comes_back(trouble: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with discord_world() as world:
        monkeypatch.setattr("hark.surfaces.discord.client.IDENTIFY_SECONDS", 0.0)
        gateway = world.server.gateway
        await world.server.write("first")
        await world.taken.count(1)
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
        await world.server.until(lambda: len(gateway.closings) > seen)
        await world.server.write("second")
        await world.taken.until(lambda: "second" in world.taken.texts)
    assert gateway.identified == (2 if trouble in ("invalid", "4009", "1000") else 1)


async def test_the_same_event_again_has_the_same_id() -> None:
    async with discord_world() as world:
        await world.server.write("once")
        await world.server.gateway.redeliver()
        first, again = await world.taken.count(2)
    assert first == again


async def test_heartbeats_are_sent() -> None:
    async with DiscordServer().serving() as server:
        server.gateway.heartbeat_ms = 20
        async with running(surface_for(server), server, Taken()):
            await server.until(lambda: server.gateway.beats > 3)


async def test_an_event_that_nobody_knows_does_no_harm() -> None:
    async with discord_world() as world:
        await world.server.gateway.dispatch("MESSAGE_CREATE", {"id": "1"})
        await world.server.gateway.dispatch("SOMETHING_NEW", {"a": [1]})
        await world.server.write("still here")
        await world.taken.count(1)
    assert world.taken.texts == ["still here"]


# Out.


async def test_a_message_is_sent_and_edited_and_pings_nobody() -> None:
    async with discord_world() as world:
        number = await world.surface.send(HOME, Outgoing("@everyone **hi** <@1002>", (Button("⏹ Stop", "stop:1"),)))
        assert world.server.ours[0]["components"][0]["components"][0]["custom_id"] == "stop:1"
        await world.surface.edit(HOME, number, Outgoing("done @everyone"))
        await world.surface.typing(SIDE)
    assert world.server.texts == ["done @everyone"]
    assert world.server.ours[0]["components"] == []
    assert world.server.pings == []
    assert world.server.typing == [THREAD]


async def test_the_same_key_is_sent_once_and_shows_the_newest_words() -> None:
    async with discord_world() as world:
        first = await world.surface.send(HOME, Outgoing("half ▌", (Button("Stop", "stop:1"),), key="turn:1"))
        second = await world.surface.send(HOME, Outgoing("the whole", key="turn:1"))
        other = await world.surface.send(ROOM, Outgoing("the whole", key="turn:1"))
    assert first == second != other
    assert world.server.texts == ["the whole", "the whole"]


async def test_a_connection_cut_after_sending_doubles_nothing() -> None:
    async with discord_world() as world:
        world.server.fail("POST", "/messages", 0, takes=True)
        with pytest.raises(ChatError):
            await world.surface.send(HOME, Outgoing("once", key="k"))
        await world.surface.send(HOME, Outgoing("once", key="k"))
    assert world.server.texts == ["once"]


async def test_a_reply_points_at_its_message_and_stands_alone_when_that_is_gone() -> None:
    async with discord_world() as world:
        number = await world.server.write("question")
        await world.surface.send(HOME, Outgoing("answer", reply_to=number))
        await world.surface.send(HOME, Outgoing("too late", reply_to="123"))
    assert world.server.ours[0]["message_reference"]["message_id"] == number
    assert world.server.texts == ["answer", "too late"]


async def test_long_empty_and_many_buttoned_messages_are_taken() -> None:
    async with discord_world() as world:
        await world.surface.send(HOME, Outgoing("a" * 2000))
        await world.surface.send(HOME, Outgoing("b" * 3000))
        await world.surface.send(HOME, Outgoing("  \n"))
        many = tuple(Button("label " * 30, f"v{place}") for place in range(30))
        await world.surface.send(HOME, Outgoing("choose", many))
    assert [len(text) for text in world.server.texts] == [2000, 2000, 1, 6]
    assert sum(len(row["components"]) for row in world.server.ours[-1]["components"]) == 25


async def test_a_form_that_is_refused_is_sent_plain() -> None:
    async with discord_world() as world:
        twice = (Button("a", "same"), Button("b", "same"))
        number = await world.surface.send(HOME, Outgoing("#### choose", twice))
        assert world.server.texts == ["#### choose"]
        await world.surface.edit(HOME, number, Outgoing("#### again", twice))
    assert world.server.texts == ["#### again"]


async def test_a_voice_goes_out_as_a_file() -> None:
    async with discord_world() as world:
        await world.surface.send(HOME, Outgoing("spoken", voice=b"OggS-speech", key="v"))
    assert world.server.uploads == [b"OggS-speech"]
    assert world.server.texts == ["spoken"]


async def test_signs_are_put_in_the_form_that_discord_knows_each_in_place_of_the_last() -> None:
    async with discord_world() as world:
        number, other = await world.server.write("hi"), await world.server.write("ho")
        for sign in "👀⚡↪⏳⏸🗑🗑":
            await world.surface.react(HOME, number, sign)
        await world.surface.react(HOME, other, "⏳")
        with pytest.raises(ChatGone, match="Unknown Emoji"):
            await world.surface.react(HOME, number, "?")
    assert world.server.signs == [(number, "🗑\ufe0f"), (other, "⏳")]
    assert len([path for method, path in world.server.requests if method == "PUT"]) == 8


# When Discord says no.


async def test_a_limit_holds_its_own_chat_and_no_other() -> None:
    async with discord_world() as world:
        server = world.server
        await world.surface.send(HOME, Outgoing("warm"))
        await world.surface.send(ROOM, Outgoing("warm"))
        server.limit("POST", f"/channels/{DIRECT}/messages", 25.0)
        held = asyncio.create_task(world.surface.send(HOME, Outgoing("held")))
        await server.until(lambda: not server.troubles)
        async with asyncio.timeout(20):
            await world.surface.send(ROOM, Outgoing("free"))
        assert not held.done()
        assert server.texts[2:] == ["free"]
        while held.cancel() and not held.done():
            await asyncio.wait([held], timeout=0.05)


async def test_what_a_limit_held_is_sent_when_it_is_over() -> None:
    async with discord_world() as world:
        world.server.limit("POST", "/messages", 0.05)
        await world.surface.send(HOME, Outgoing("held"))
    assert world.server.texts == ["held"]


async def test_a_long_limit_is_told_with_its_seconds() -> None:
    async with discord_world() as world:
        world.server.limit("POST", "/messages", 300.0)
        with pytest.raises(ChatError) as error:
            await world.surface.send(HOME, Outgoing("hi"))
        assert error.value.retry_after == 300.0
        world.server.limit("PATCH", "/messages", 7.0, is_ban=True)
        with pytest.raises(ChatError) as error:
            await world.surface.edit(HOME, "1", Outgoing("hi"))
        assert error.value.retry_after == 7.0


async def test_who_is_cancelled_in_a_global_limit_holds_nobody_else() -> None:
    async with discord_world() as world:
        server = world.server
        server.limit("POST", "/typing", 25.0, is_global=True)
        held = asyncio.create_task(world.surface.typing(HOME))
        await server.until(lambda: not server.troubles)
        while held.cancel() and not held.done():
            await asyncio.wait([held], timeout=0.05)
        async with asyncio.timeout(20):
            await world.surface.send(HOME, Outgoing("free"))
    assert server.texts == ["free"]


async def test_a_server_error_is_tried_again() -> None:
    async with discord_world() as world:
        world.server.fail("POST", "/messages", 502)
        await world.surface.send(HOME, Outgoing("through", key="k"))
    assert world.server.texts == ["through"]


@pytest.mark.parametrize(("status", "code"), [(403, 50007), (403, 50013), (404, 10003), (400, 50083)])
async def test_what_will_never_be_taken_is_gone(status: int, code: int) -> None:
    async with discord_world() as world:
        world.server.fail("POST", "/messages", status, code, "No way")
        with pytest.raises(ChatGone, match="No way"):
            await world.surface.send(HOME, Outgoing("hi"))
        with pytest.raises(ChatGone, match="Unknown Message"):
            await world.surface.edit(HOME, "123", Outgoing("hi"))
        with pytest.raises(ChatGone, match="Unknown Channel"):
            await world.surface.send(Address("discord", "4"), Outgoing("hi"))
        world.server.fail("POST", "/messages", 503, 0, "later")
        with pytest.raises(ChatError, match="later") as error:
            await world.surface.send(HOME, Outgoing("hi"))
        assert not isinstance(error.value, ChatGone)


async def test_a_wrong_token_says_so_and_is_told_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with DiscordServer().serving() as server:
        surface = DiscordSurface(DiscordSettings(api_base=server.base), "wrong.secret.token")
        with pytest.raises(ChatError, match="refuses the bot token") as error:
            await surface.run(Taken())
        with pytest.raises(ChatError, match="needs a bot token"):
            await DiscordSurface(DiscordSettings(api_base=server.base), "").run(Taken())
    assert "secret" not in str(error.value) + caplog.text


async def test_missing_rights_say_where_they_are_given() -> None:
    async with DiscordServer().serving() as server:
        server.gateway.allowed_intents = 0
        with pytest.raises(ChatError, match="MESSAGE CONTENT INTENT"):
            await surface_for(server).run(Taken())


async def test_a_gateway_that_closes_before_it_says_hello_is_tried_again() -> None:
    async with DiscordServer().serving() as server:
        server.gateway.refuses = 1
        async with running(surface_for(server), server, Taken()) as world:
            await server.write("hello")
            await world.taken.count(1)


async def test_no_more_sessions_are_begun_than_discord_allows() -> None:
    async with DiscordServer().serving() as server:
        server.gateway.starts_left = 5
        with pytest.raises(ChatError, match="no more sessions") as error:
            await surface_for(server).run(Taken())
        assert error.value.retry_after == 1.0
        assert server.gateway.identified == 0


async def test_a_server_that_is_not_discord_is_told() -> None:
    async with DiscordServer().serving() as server:
        server.fail("GET", "/users/@me", 200)
        with pytest.raises(ChatError, match="is not Discord"):
            await surface_for(server).run(Taken())


async def test_what_is_sent_while_not_connected_waits_or_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async with DiscordServer().serving() as server:
        surface = surface_for(server)
        early = asyncio.create_task(surface.send(HOME, Outgoing("early")))
        async with running(surface, server, Taken()):
            await early
        assert server.texts == ["early"]
        monkeypatch.setattr("hark.surfaces.discord.surface.DiscordSurface.connect_seconds", 0.01)
        with pytest.raises(ChatError, match="not connected"):
            await surface.send(HOME, Outgoing("late"))
    with pytest.raises(ChatError, match="can't be reached"):
        await surface.run(Taken())


# The end.


async def test_cancelling_leaves_nothing_and_keeps_the_session() -> None:
    async with DiscordServer().serving() as server:
        before, threads = idle_tasks(), set(threading.enumerate())
        taken = Taken()
        async with running(surface_for(server), server, taken) as world:
            taken.gate.clear()
            await server.write("held")
            world.running.cancel()
            async with asyncio.timeout(END_SECONDS):
                await asyncio.wait([world.running])
        assert set(threading.enumerate()) <= threads
        await server.until(lambda: server.gateway.closings == [4000])
        left = {task for task in idle_tasks() - before if "discord" in repr(task.get_coro())}
        assert left == set()


async def test_cancelling_is_quick_though_the_login_hangs() -> None:
    async with DiscordServer().serving() as server:
        server.slow["/users/@me"] = asyncio.Event()
        task = asyncio.create_task(surface_for(server).run(Taken()))
        await server.until(lambda: bool(server.requests))
        task.cancel()
        async with asyncio.timeout(END_SECONDS):
            await asyncio.wait([task])
        assert task.cancelled()
        server.slow["/users/@me"].set()


async def test_a_slow_chat_does_not_hold_another() -> None:
    async with discord_world() as world:
        gate = world.server.slow[f"/channels/{DIRECT}/"] = asyncio.Event()
        slow = asyncio.create_task(world.surface.send(HOME, Outgoing("slow")))
        await world.surface.send(ROOM, Outgoing("quick"))
        assert world.server.texts == ["quick"]
        gate.set()
        await slow


async def test_cancelling_is_quick_though_discord_does_not_answer() -> None:
    async with DiscordServer().serving() as server:
        server.gateway.is_deaf = True
        async with running(surface_for(server), server, Taken()) as world:
            threads = [thread for thread in threading.enumerate() if "keep-alive" in thread.name]
            world.running.cancel()
            async with asyncio.timeout(END_SECONDS):
                await asyncio.wait([world.running])
        assert threads
        assert not any(thread.is_alive() for thread in threads)
