"""What people do in rooms comes in once, as what it means."""

import base64
from pathlib import Path

import pytest

from hark.protocol.chat import Address, Button, ChatError, Incoming, Outgoing, Pressed, Removed, Rewritten, Written
from tests.surfaces.matrix.matrix_fixture import Inbox, at_work, home, matrix, person
from tests.surfaces.matrix.synapse import Account, Synapse
from tests.waiting import until


def written(incoming: Incoming) -> Written:
    assert isinstance(incoming, Written)
    return incoming


def texts(taken: list[Incoming]) -> list[str]:
    return [one.text for one in taken if isinstance(one, Written)]


def joined_rooms(synapse: Synapse, account: Account) -> list[str]:
    return synapse.ask("GET", "/_matrix/client/v3/joined_rooms", token=account.token)["joined_rooms"]


async def test_a_text_comes_in_once_with_its_author_and_time(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark", "Hark")
    async with person(synapse) as ann, at_work(matrix(synapse, bot, tmp_path)) as inbox:
        room = await ann.room_with(bot)
        event = await ann.write(room, "hello <b>you</b>")
        await ann.write(room, "again")
        first, second = (written(one) for one in await inbox.of(2))
    assert (first.id, first.address, first.text) == (event, home(room), "hello <b>you</b>")
    assert (first.author.id, first.author.name) == (ann.id, "Ann")
    assert first.is_for_us
    assert first.at > 1_700_000_000
    assert second.text == "again"


async def test_the_token_moves_only_after_the_delivery(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    async with person(synapse) as ann:
        async with at_work(matrix(synapse, bot, tmp_path)) as inbox:
            room = await ann.room_with(bot)
            await ann.write(room, "first")
            await inbox.of(1)
            inbox.free.clear()
            await ann.write(room, "second")
            await inbox.until(lambda: len(inbox.begun) == 2)
            await ann.write(room, "third")
        assert texts(inbox.taken) == ["first"]
        async with at_work(matrix(synapse, bot, tmp_path)) as again:
            await again.until(lambda: texts(again.taken)[-1:] == ["third"])
    # What was delivered just before the end may come again; its id is the same.
    assert texts(again.taken)[-2:] == ["second", "third"]
    assert written(again.taken[-1]).is_for_us
    assert written(again.taken[-1]).author.name == "Ann"
    assert written(again.taken[-2]).id == written(inbox.begun[1]).id


async def test_what_could_not_be_kept_is_delivered_again(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    async with person(synapse) as ann:
        async with at_work(matrix(synapse, bot, tmp_path)):
            room = await ann.room_with(bot)
        failing = Inbox()
        failing.failing = [OSError("the disk is full")]
        await ann.write(room, "keep me")
        with pytest.raises(OSError, match="disk is full"):
            await matrix(synapse, bot, tmp_path).run(failing.deliver)
        async with at_work(matrix(synapse, bot, tmp_path)) as inbox:
            assert texts(await inbox.of(1)) == ["keep me"]


async def test_the_first_sync_replays_nothing_of_the_past(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    async with person(synapse) as ann:
        async with at_work(matrix(synapse, bot, tmp_path)) as inbox:
            room = await ann.room_with(bot)
            await ann.write(room, "old")
            await inbox.of(1)
        async with at_work(matrix(synapse, bot, tmp_path / "elsewhere")) as fresh:
            await ann.room_with(bot)
            await ann.write(room, "new")
            assert texts(await fresh.of(1)) == ["new"]


async def test_what_was_said_while_we_were_away_comes_in_whole_and_in_order(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    async with person(synapse) as ann:
        async with at_work(matrix(synapse, bot, tmp_path)) as inbox:
            room = await ann.room_with(bot)
            await ann.write(room, "before")
            await inbox.of(1)
        for number in range(120):
            await ann.write(room, f"{number}")
        async with at_work(matrix(synapse, bot, tmp_path)) as inbox:
            await inbox.until(lambda: texts(inbox.taken)[-1:] == ["119"])
    assert [text for text in texts(inbox.taken) if text != "before"] == [f"{number}" for number in range(120)]


async def test_what_was_said_since_the_invite_is_heard_and_nothing_before(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    async with person(synapse) as ann:
        room = await ann.room()
        await ann.write(room, "private matters")
        await ann.client.room_invite(room, bot.id)
        await ann.write(room, "are you there?")
        async with at_work(matrix(synapse, bot, tmp_path)) as inbox:
            await ann.until(lambda: ann.is_in(room, bot.id))
            await ann.write(room, "welcome")
            await inbox.until(lambda: texts(inbox.taken)[-1:] == ["welcome"])
    assert texts(inbox.taken) == ["are you there?", "welcome"]


async def test_a_strangers_invite_is_followed_into_a_chat_of_two_and_no_other_room(
    synapse: Synapse, tmp_path: Path
) -> None:
    bot = synapse.register("hark")
    async with person(synapse, "stranger") as stranger, person(synapse) as ann:
        lure = await stranger.room(bot.id, ann.id)
        async with at_work(matrix(synapse, bot, tmp_path)) as inbox:
            chat = await stranger.room_with(bot)
            await stranger.write(chat, "may I?")
            assert texts(await inbox.of(1)) == ["may I?"]
            assert lure not in joined_rooms(synapse, bot)


async def test_strangers_can_t_fill_us_with_rooms(
    synapse: Synapse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hark.surfaces.matrix.receiving.STRANGERS_AN_HOUR", 1)
    bot = synapse.register("hark")
    async with person(synapse, "stranger") as stranger, person(synapse) as ann:
        async with at_work(matrix(synapse, bot, tmp_path)):
            first = await stranger.room_with(bot)
            await stranger.room(bot.id)
            known = await ann.room_with(bot)
        assert set(joined_rooms(synapse, bot)) == {first, known}


async def test_an_edit_and_a_deletion_name_the_message_that_they_change(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    async with person(synapse) as ann, at_work(matrix(synapse, bot, tmp_path)) as inbox:
        room = await ann.room_with(bot)
        message = await ann.write(room, "teh text")
        await ann.edit(room, message, "the text")
        await ann.redact(room, message)
        taken = await inbox.of(3)
    assert isinstance(taken[1], Rewritten)
    assert (taken[1].id, taken[1].text, taken[1].author.id) == (message, "the text", ann.id)
    assert taken[1].at >= written(taken[0]).at
    assert taken[2] == Removed(message, home(room))


async def test_an_edit_that_first_names_us_is_a_message(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("helper", "Hark")
    async with person(synapse) as ann, person(synapse, "bob") as bob, at_work(matrix(synapse, bot, tmp_path)) as inbox:
        room = await ann.room_with(bot, bob.id)
        await bob.client.join(room)
        message = await ann.write(room, "do it")
        await ann.edit(room, message, "do it now")
        await ann.edit(room, message, "Hark: do it")
        taken = [written(one) for one in await inbox.of(2)]
    assert [(one.id, one.text, one.is_for_us) for one in taken] == [(message, "do it", False), (message, "do it", True)]


async def test_nobody_edits_what_another_wrote(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    surface = matrix(synapse, bot, tmp_path, listen="all")
    async with person(synapse) as ann, person(synapse, "eve") as eve, at_work(surface) as inbox:
        room = await ann.room_with(bot, eve.id)
        await eve.client.join(room)
        message = await ann.write(room, "water the plants")
        await eve.edit(room, message, "burn the plants")
        await ann.write(room, "thanks")
        taken = await inbox.of(2)
    assert texts(taken) == ["water the plants", "thanks"]


async def test_threads_are_addresses_of_their_own_also_for_edits_and_deletions(
    synapse: Synapse, tmp_path: Path
) -> None:
    bot = synapse.register("hark")
    async with person(synapse) as ann:
        async with at_work(matrix(synapse, bot, tmp_path)) as inbox:
            room = await ann.room_with(bot)
            root = await ann.write(room, "root")
            reply = {"m.in_reply_to": {"event_id": root}, "is_falling_back": True}
            relation = {"rel_type": "m.thread", "event_id": root, **reply}
            message = await ann.write(room, "in it", **{"m.relates_to": relation})
            await ann.edit(room, message, "in there")
            taken = await inbox.of(3)
            await until(lambda: root in next((tmp_path / "matrix").glob("*.json")).read_text())
        await ann.redact(room, message)
        async with at_work(matrix(synapse, bot, tmp_path)) as later:
            await later.until(lambda: any(isinstance(one, Removed) for one in later.taken))
    thread = Address("matrix", room, root)
    assert [one.address for one in taken] == [home(room), thread, thread]
    assert written(taken[1]).quoted == ""
    assert later.taken[-1] == Removed(message, thread)


async def test_a_reply_brings_the_text_that_it_answers(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    async with person(synapse) as ann, at_work(matrix(synapse, bot, tmp_path)) as inbox:
        room = await ann.room_with(bot)
        message = await ann.write(room, "the old plan")
        await ann.edit(room, message, "the new plan")
        await ann.reply(room, message, "> <@ann> the old plan\n\nwhat of this?")
        taken = await inbox.of(3)
    assert (written(taken[2]).quoted, written(taken[2]).text) == ("the new plan", "what of this?")


async def test_in_a_group_it_is_for_us_when_we_are_named_or_answered(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("helper", "Hark")
    surface = matrix(synapse, bot, tmp_path)
    async with person(synapse) as ann, person(synapse, "bob") as bob, at_work(surface) as inbox:
        room = await ann.room_with(bot, bob.id)
        await bob.client.join(room)
        await ann.write(room, "hi Bob, the harkness is great")
        picture = await ann.upload(b"picture", "image/png")
        await ann.put(room, {"msgtype": "m.image", "body": "x.png", "url": picture})  # for Bob: it is not fetched
        await ann.write(room, "Hark: stop")
        await ann.write(room, "you there?", **{"m.mentions": {"user_ids": [bot.id]}})
        await ann.write(room, f"what do you think, {bot.id}?")
        ours = await surface.send(home(room), Outgoing("I am here"))
        await bob.reply(room, ours, "good")
        taken = [written(one) for one in await inbox.of(6)]
    assert (taken.pop(1).attachments, [one.is_for_us for one in taken]) == ((), [False, True, True, True, True])
    assert taken[1].text == "stop"
    assert (taken[4].author.name, taken[4].quoted) == ("Bob", "I am here")


async def test_our_own_words_and_those_of_bots_are_not_heard(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    surface = matrix(synapse, bot, tmp_path)
    async with person(synapse) as ann, at_work(surface) as inbox:
        room = await ann.room_with(bot)
        await surface.send(home(room), Outgoing("mine"))
        await ann.put(room, {"msgtype": "m.notice", "body": "beep"})
        await ann.write(room, "end")
        assert texts(await inbox.of(1)) == ["end"]


async def test_nonsense_beside_the_words_does_not_cost_the_words(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    async with person(synapse) as ann, at_work(matrix(synapse, bot, tmp_path)) as inbox:
        room = await ann.room_with(bot)
        await ann.write(room, "one", info="x")
        message = await ann.write(room, "two")
        await ann.write(room, "three", **{"m.relates_to": {"rel_type": "m.replace", "event_id": message}})
        await ann.put(room, {"m.relates_to": {"rel_type": "m.annotation", "event_id": 7}}, "m.unknown")
        await ann.write(room, "end")
        assert texts(await inbox.of(3)) == ["one", "two", "end"]


async def test_files_are_fetched_under_names_that_do_no_harm(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    async with person(synapse) as ann, at_work(matrix(synapse, bot, tmp_path)) as inbox:
        room = await ann.room_with(bot)
        uri = await ann.upload(b"\x89PNG picture", "image/png")
        image = {"msgtype": "m.image", "url": uri, "info": {"mimetype": "image/png"}}
        await ann.put(room, {**image, "body": "../../etc/passwd"})
        await ann.put(room, {**image, "body": "look at this", "filename": "cat.png"})
        taken = [written(one) for one in await inbox.of(2)]
    assert [one.text for one in taken] == ["", "look at this"]
    assert [one.attachments[0].name for one in taken] == ["passwd", "cat.png"]
    assert base64.b64decode(taken[0].attachments[0].data) == b"\x89PNG picture"
    assert taken[0].attachments[0].media_type == "image/png"


async def test_a_file_that_is_too_large_is_named_and_not_fetched(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    surface = matrix(synapse, bot, tmp_path, attachment_megabytes=0.1)
    async with person(synapse) as ann, at_work(surface) as inbox:
        room = await ann.room_with(bot)
        uri = await ann.upload(b"x" * 200_000, "text/plain")
        for size in (200_000, 5):
            await ann.put(room, {"msgtype": "m.file", "body": "big.txt", "url": uri, "info": {"size": size}})
        await ann.put(room, {"msgtype": "m.file", "body": "odd.txt", "url": "mxc://hark.test/../../x"})
        await ann.put(room, {"msgtype": "m.file", "body": "gone.txt", "url": "mxc://hark.test/nothing"})
        taken = [written(one) for one in await inbox.of(4)]
    assert [one.attachments for one in taken] == [()] * 4
    assert taken[0].text == taken[1].text == "[The file big.txt was not fetched: it is larger than 0.1 MB.]"
    assert "odd.txt" in taken[2].text
    assert "gone.txt" in taken[3].text


async def test_a_voice_message_is_voice(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    async with person(synapse) as ann, at_work(matrix(synapse, bot, tmp_path)) as inbox:
        room = await ann.room_with(bot)
        uri = await ann.upload(b"OggS sound", "audio/ogg")
        audio = {"msgtype": "m.audio", "body": "Voice message", "url": uri, "info": {"mimetype": "audio/ogg"}}
        await ann.put(room, {**audio, "org.matrix.msc3245.voice": {}})
        await ann.put(room, audio)
        spoken, song = (written(one) for one in await inbox.of(2))
    assert spoken.voice is not None
    assert base64.b64decode(spoken.voice.data) == b"OggS sound"
    assert (spoken.text, spoken.attachments) == ("", ())
    assert song.voice is None
    assert len(song.attachments) == 1


async def test_a_slow_room_holds_no_other(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    async with person(synapse) as ann, at_work(matrix(synapse, bot, tmp_path)) as inbox:
        slow, quick = await ann.room_with(bot), await ann.room_with(bot)
        inbox.held = slow
        inbox.free.clear()
        await ann.write(slow, "hold")
        await inbox.until(lambda: len(inbox.begun) == 1)
        for number in range(3):
            await ann.write(quick, f"{number}")
            await inbox.of(number + 1)
        inbox.free.set()
        await inbox.of(4)
    assert texts(inbox.taken) == ["0", "1", "2", "hold"]


async def test_an_encrypted_message_is_answered_once_with_what_to_do(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    async with person(synapse) as ann, at_work(matrix(synapse, bot, tmp_path)) as inbox:
        room = await ann.room_with(bot)
        secret = {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "x", "session_id": "s", "sender_key": "k"}
        for _ in range(2):
            await ann.put(room, {**secret, "device_id": "D"}, "m.room.encrypted")
        await ann.write(room, "plainly")
        await inbox.of(1)
        await ann.until(lambda: bool(ann.texts_of(bot.id)))
        assert [text[:12] for text in ann.texts_of(bot.id)] == ["I can't read"]


async def test_a_stranger_who_writes_encrypted_to_us_alone_knocks(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    async with person(synapse, "stranger") as eve, at_work(matrix(synapse, bot, tmp_path)) as inbox:
        room = await eve.room_with(bot)
        secret = {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "x", "session_id": "s", "sender_key": "k"}
        event = await eve.put(room, {**secret, "device_id": "D"}, "m.room.encrypted")
        [knock] = await inbox.of(1)
        await eve.sync()
        assert eve.texts_of(bot.id) == []
    assert (knock.id, written(knock).author.id) == (event, eve.id)


async def test_a_choice_is_taken_by_tap_number_or_words_and_in_groups_only_when_said_to_us(
    synapse: Synapse, tmp_path: Path
) -> None:
    bot = synapse.register("hark", "Hark")
    surface = matrix(synapse, bot, tmp_path)
    buttons = (Button("Allow", "answer:q:0"), Button("Deny", "answer:q:1"))
    async with person(synapse) as ann, person(synapse, "bob") as bob, at_work(surface) as inbox:
        room = await ann.room_with(bot, bob.id)
        await bob.client.join(room)
        asked = await surface.send(home(room), Outgoing("❓ May I?", buttons))
        await ann.until(lambda: len(ann.events_of(bot.id, "m.reaction")) == 2)
        assert ann.texts_of(bot.id)[-1] == "❓ May I?\n\n1. Allow\n2. Deny\n\nTap a number, or answer with it."
        await bob.write(room, "allow")  # to somebody else
        await ann.react(room, asked, "2️⃣")
        await ann.write(room, "Hark: 1")
        await ann.reply(room, asked, "deny")
        await inbox.of(4)
        await surface.edit(home(room), asked, Outgoing("❓ May I?\n(answered)"))
        await ann.write(room, "Hark: 1")
        await ann.react(room, asked, "1️⃣")
        await ann.write(room, "end")
        taken = await inbox.of(6)
        await ann.until(lambda: len(ann.events_of(bot.id, "m.room.redaction")) == 2)
    assert texts(taken) == ["allow", "1", "end"]
    pressed = [one for one in taken if isinstance(one, Pressed)]
    assert [one.value for one in pressed] == ["answer:q:1", "answer:q:0", "answer:q:1"]
    assert {one.author.id for one in pressed} == {ann.id}


async def test_an_access_token_that_is_refused_is_said_and_never_shown(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    surface = matrix(synapse, type(bot)(bot.id, "syt_secret_token"), tmp_path)
    with pytest.raises(ChatError, match="refuses our access token") as refused:
        await surface.run(Inbox().deliver)
    assert "syt_secret" not in repr(refused.value)


async def test_a_token_of_another_homeserver_is_refused_with_advice(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    async with person(synapse) as ann, at_work(matrix(synapse, bot, tmp_path)):
        await ann.room_with(bot)
    file = next((tmp_path / "matrix").glob("*.json"))
    assert file.stat().st_mode & 0o077 == 0
    file.write_text('{"since": "nonsense"}')
    with pytest.raises(ChatError, match=r"remove .*\.json"):
        await matrix(synapse, bot, tmp_path).run(Inbox().deliver)
    file.write_text("{")
    with pytest.raises(ChatError, match="can't be read"):
        await matrix(synapse, bot, tmp_path).run(Inbox().deliver)
    assert file.read_text() == "{"
