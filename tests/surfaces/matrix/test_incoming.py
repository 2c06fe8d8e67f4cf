"""Matrix room events are delivered once and are parsed correctly."""

import base64
from pathlib import Path

import pytest

from hark.protocol.chat import (
    Address,
    Button,
    ButtonPressed,
    ChatError,
    IncomingEvent,
    IncomingMessage,
    MessageDeleted,
    MessageEdited,
    OutgoingMessage,
)
from tests.surfaces.matrix.matrix_fixture import (
    DeliveryRecorder,
    make_matrix_surface,
    matrix_user,
    room_address,
    running_surface,
)
from tests.surfaces.matrix.synapse import Account, Synapse
from tests.waiting import until


def as_message(event: IncomingEvent) -> IncomingMessage:
    assert isinstance(event, IncomingMessage)
    return event


def message_texts(events: list[IncomingEvent]) -> list[str]:
    return [one.text for one in events if isinstance(one, IncomingMessage)]


def joined_rooms(synapse: Synapse, account: Account) -> list[str]:
    return synapse.request("GET", "/_matrix/client/v3/joined_rooms", token=account.token)["joined_rooms"]


async def test_a_text_message_is_delivered_once_with_its_author_and_time(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark", "Hark")
    async with matrix_user(synapse) as ann, running_surface(make_matrix_surface(synapse, bot, tmp_path)) as recorder:
        room = await ann.create_room_with(bot)
        event = await ann.write(room, "hello <b>you</b>")
        await ann.write(room, "again")
        first, second = (as_message(one) for one in await recorder.wait_for(2))
    assert (first.id, first.address, first.text) == (event, room_address(room), "hello <b>you</b>")
    assert (first.author.id, first.author.name) == (ann.id, "Ann")
    assert first.is_for_us
    assert first.at > 1_700_000_000
    assert second.text == "again"


async def test_the_sync_token_advances_only_after_the_delivery(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    async with matrix_user(synapse) as ann:
        async with running_surface(make_matrix_surface(synapse, bot, tmp_path)) as recorder:
            room = await ann.create_room_with(bot)
            await ann.write(room, "first")
            await recorder.wait_for(1)
            recorder.gate.clear()
            await ann.write(room, "second")
            await recorder.until(lambda: len(recorder.attempts) == 2)
            await ann.write(room, "third")
        assert message_texts(recorder.events) == ["first"]
        async with running_surface(make_matrix_surface(synapse, bot, tmp_path)) as second_run:
            await second_run.until(lambda: message_texts(second_run.events)[-1:] == ["third"])
    # An event that was delivered just before the end may arrive again, with the same id.
    assert message_texts(second_run.events)[-2:] == ["second", "third"]
    assert as_message(second_run.events[-1]).is_for_us
    assert as_message(second_run.events[-1]).author.name == "Ann"
    assert as_message(second_run.events[-2]).id == as_message(recorder.attempts[1]).id


async def test_a_message_that_could_not_be_stored_is_delivered_again(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    async with matrix_user(synapse) as ann:
        async with running_surface(make_matrix_surface(synapse, bot, tmp_path)):
            room = await ann.create_room_with(bot)
        failing = DeliveryRecorder()
        failing.errors = [OSError("the disk is full")]
        await ann.write(room, "store me")
        with pytest.raises(OSError, match="disk is full"):
            await make_matrix_surface(synapse, bot, tmp_path).run(failing.deliver)
        async with running_surface(make_matrix_surface(synapse, bot, tmp_path)) as recorder:
            assert message_texts(await recorder.wait_for(1)) == ["store me"]


async def test_the_first_sync_delivers_no_past_messages(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    async with matrix_user(synapse) as ann:
        async with running_surface(make_matrix_surface(synapse, bot, tmp_path)) as recorder:
            room = await ann.create_room_with(bot)
            await ann.write(room, "old")
            await recorder.wait_for(1)
        async with running_surface(make_matrix_surface(synapse, bot, tmp_path / "elsewhere")) as fresh:
            await ann.create_room_with(bot)
            await ann.write(room, "new")
            assert message_texts(await fresh.wait_for(1)) == ["new"]


async def test_missed_messages_are_delivered_completely_and_in_order_after_a_restart(
    synapse: Synapse, tmp_path: Path
) -> None:
    bot = synapse.register("hark")
    async with matrix_user(synapse) as ann:
        async with running_surface(make_matrix_surface(synapse, bot, tmp_path)) as recorder:
            room = await ann.create_room_with(bot)
            await ann.write(room, "before")
            await recorder.wait_for(1)
        for number in range(120):
            await ann.write(room, f"{number}")
        async with running_surface(make_matrix_surface(synapse, bot, tmp_path)) as recorder:
            await recorder.until(lambda: message_texts(recorder.events)[-1:] == ["119"])
    assert [text for text in message_texts(recorder.events) if text != "before"] == [
        f"{number}" for number in range(120)
    ]


async def test_messages_since_the_invite_are_delivered_and_earlier_ones_are_not(
    synapse: Synapse, tmp_path: Path
) -> None:
    bot = synapse.register("hark")
    async with matrix_user(synapse) as ann:
        room = await ann.create_room()
        await ann.write(room, "private matters")
        await ann.client.room_invite(room, bot.id)
        await ann.write(room, "are you there?")
        async with running_surface(make_matrix_surface(synapse, bot, tmp_path)) as recorder:
            await ann.until(lambda: ann.is_member(room, bot.id))
            await ann.write(room, "welcome")
            await recorder.until(lambda: message_texts(recorder.events)[-1:] == ["welcome"])
    assert message_texts(recorder.events) == ["are you there?", "welcome"]


async def test_an_unknown_users_invite_is_accepted_only_for_a_direct_chat(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    async with matrix_user(synapse, "stranger") as stranger, matrix_user(synapse) as ann:
        group = await stranger.create_room(bot.id, ann.id)
        async with running_surface(make_matrix_surface(synapse, bot, tmp_path)) as recorder:
            chat = await stranger.create_room_with(bot)
            await stranger.write(chat, "may I?")
            assert message_texts(await recorder.wait_for(1)) == ["may I?"]
            assert group not in joined_rooms(synapse, bot)


async def test_invites_from_unknown_users_are_limited_per_hour(
    synapse: Synapse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hark.surfaces.matrix.receiving.MAX_UNKNOWN_INVITES_PER_HOUR", 1)
    bot = synapse.register("hark")
    async with matrix_user(synapse, "stranger") as stranger, matrix_user(synapse) as ann:
        async with running_surface(make_matrix_surface(synapse, bot, tmp_path)):
            first = await stranger.create_room_with(bot)
            await stranger.create_room(bot.id)
            known = await ann.create_room_with(bot)
        assert set(joined_rooms(synapse, bot)) == {first, known}


async def test_an_edit_and_a_deletion_refer_to_the_id_of_the_original_message(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    async with matrix_user(synapse) as ann, running_surface(make_matrix_surface(synapse, bot, tmp_path)) as recorder:
        room = await ann.create_room_with(bot)
        message = await ann.write(room, "teh text")
        await ann.edit(room, message, "the text")
        await ann.redact(room, message)
        events = await recorder.wait_for(3)
    assert isinstance(events[1], MessageEdited)
    assert (events[1].id, events[1].text, events[1].author.id) == (message, "the text", ann.id)
    assert events[1].at >= as_message(events[0]).at
    assert events[2] == MessageDeleted(message, room_address(room))


async def test_an_edit_that_adds_a_mention_of_the_bot_is_delivered_as_a_message(
    synapse: Synapse, tmp_path: Path
) -> None:
    bot = synapse.register("helper", "Hark")
    async with (
        matrix_user(synapse) as ann,
        matrix_user(synapse, "bob") as bob,
        running_surface(make_matrix_surface(synapse, bot, tmp_path)) as recorder,
    ):
        room = await ann.create_room_with(bot, bob.id)
        await bob.client.join(room)
        message = await ann.write(room, "do it")
        await ann.edit(room, message, "do it now")
        await ann.edit(room, message, "Hark: do it")
        events = [as_message(one) for one in await recorder.wait_for(2)]
    assert [(one.id, one.text, one.is_for_us) for one in events] == [
        (message, "do it", False),
        (message, "do it", True),
    ]


async def test_an_edit_by_another_user_is_ignored(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    surface = make_matrix_surface(synapse, bot, tmp_path, listen="all")
    async with matrix_user(synapse) as ann, matrix_user(synapse, "eve") as eve, running_surface(surface) as recorder:
        room = await ann.create_room_with(bot, eve.id)
        await eve.client.join(room)
        message = await ann.write(room, "water the plants")
        await eve.edit(room, message, "burn the plants")
        await ann.write(room, "thanks")
        events = await recorder.wait_for(2)
    assert message_texts(events) == ["water the plants", "thanks"]


async def test_messages_edits_and_deletions_in_a_thread_have_the_threads_address(
    synapse: Synapse, tmp_path: Path
) -> None:
    bot = synapse.register("hark")
    async with matrix_user(synapse) as ann:
        async with running_surface(make_matrix_surface(synapse, bot, tmp_path)) as recorder:
            room = await ann.create_room_with(bot)
            root = await ann.write(room, "root")
            reply = {"m.in_reply_to": {"event_id": root}, "is_falling_back": True}
            relation = {"rel_type": "m.thread", "event_id": root, **reply}
            message = await ann.write(room, "in it", **{"m.relates_to": relation})
            await ann.edit(room, message, "in there")
            events = await recorder.wait_for(3)
            await until(lambda: root in next((tmp_path / "matrix").glob("*.json")).read_text())
        await ann.redact(room, message)
        async with running_surface(make_matrix_surface(synapse, bot, tmp_path)) as later:
            await later.until(lambda: any(isinstance(one, MessageDeleted) for one in later.events))
    thread = Address("matrix", room, root)
    assert [one.address for one in events] == [room_address(room), thread, thread]
    assert as_message(events[1]).quoted == ""
    assert later.events[-1] == MessageDeleted(message, thread)


async def test_a_reply_is_delivered_with_the_text_of_the_message_that_it_answers(
    synapse: Synapse, tmp_path: Path
) -> None:
    bot = synapse.register("hark")
    async with matrix_user(synapse) as ann, running_surface(make_matrix_surface(synapse, bot, tmp_path)) as recorder:
        room = await ann.create_room_with(bot)
        message = await ann.write(room, "the old plan")
        await ann.edit(room, message, "the new plan")
        await ann.reply(room, message, "> <@ann> the old plan\n\nand this?")
        events = await recorder.wait_for(3)
    assert (as_message(events[2]).quoted, as_message(events[2]).text) == ("the new plan", "and this?")


async def test_a_group_message_is_addressed_to_the_bot_by_mention_or_reply(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("helper", "Hark")
    surface = make_matrix_surface(synapse, bot, tmp_path)
    async with matrix_user(synapse) as ann, matrix_user(synapse, "bob") as bob, running_surface(surface) as recorder:
        room = await ann.create_room_with(bot, bob.id)
        await bob.client.join(room)
        await ann.write(room, "hi Bob, the harkness is great")
        picture = await ann.upload(b"picture", "image/png")
        await ann.send_event(
            room, {"msgtype": "m.image", "body": "x.png", "url": picture}
        )  # for Bob, so it is not downloaded
        await ann.write(room, "Hark: stop")
        await ann.write(room, "you there?", **{"m.mentions": {"user_ids": [bot.id]}})
        await ann.write(room, f"do you agree, {bot.id}?")
        message_id = await surface.send(room_address(room), OutgoingMessage("I am here"))
        await bob.reply(room, message_id, "good")
        events = [as_message(one) for one in await recorder.wait_for(6)]
    assert (events.pop(1).attachments, [one.is_for_us for one in events]) == ((), [False, True, True, True, True])
    assert events[1].text == "stop"
    assert (events[4].author.name, events[4].quoted) == ("Bob", "I am here")


async def test_messages_from_the_bot_itself_and_from_other_bots_are_ignored(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    surface = make_matrix_surface(synapse, bot, tmp_path)
    async with matrix_user(synapse) as ann, running_surface(surface) as recorder:
        room = await ann.create_room_with(bot)
        await surface.send(room_address(room), OutgoingMessage("mine"))
        await ann.send_event(room, {"msgtype": "m.notice", "body": "beep"})
        await ann.write(room, "end")
        assert message_texts(await recorder.wait_for(1)) == ["end"]


async def test_a_message_with_invalid_extra_fields_keeps_its_text(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    async with matrix_user(synapse) as ann, running_surface(make_matrix_surface(synapse, bot, tmp_path)) as recorder:
        room = await ann.create_room_with(bot)
        await ann.write(room, "one", info="x")
        message = await ann.write(room, "two")
        await ann.write(room, "three", **{"m.relates_to": {"rel_type": "m.replace", "event_id": message}})
        await ann.send_event(room, {"m.relates_to": {"rel_type": "m.annotation", "event_id": 7}}, "m.unknown")
        await ann.write(room, "end")
        assert message_texts(await recorder.wait_for(3)) == ["one", "two", "end"]


async def test_files_are_downloaded_with_safe_names(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    async with matrix_user(synapse) as ann, running_surface(make_matrix_surface(synapse, bot, tmp_path)) as recorder:
        room = await ann.create_room_with(bot)
        uri = await ann.upload(b"\x89PNG picture", "image/png")
        image = {"msgtype": "m.image", "url": uri, "info": {"mimetype": "image/png"}}
        await ann.send_event(room, {**image, "body": "../../etc/passwd"})
        await ann.send_event(room, {**image, "body": "look at this", "filename": "cat.png"})
        events = [as_message(one) for one in await recorder.wait_for(2)]
    assert [one.text for one in events] == ["", "look at this"]
    assert [one.attachments[0].name for one in events] == ["passwd", "cat.png"]
    assert base64.b64decode(events[0].attachments[0].data) == b"\x89PNG picture"
    assert events[0].attachments[0].media_type == "image/png"


async def test_a_file_that_is_too_large_is_named_but_not_downloaded(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    surface = make_matrix_surface(synapse, bot, tmp_path, attachment_megabytes=0.1)
    async with matrix_user(synapse) as ann, running_surface(surface) as recorder:
        room = await ann.create_room_with(bot)
        uri = await ann.upload(b"x" * 200_000, "text/plain")
        for size in (200_000, 5):
            await ann.send_event(room, {"msgtype": "m.file", "body": "big.txt", "url": uri, "info": {"size": size}})
        await ann.send_event(room, {"msgtype": "m.file", "body": "odd.txt", "url": "mxc://hark.test/../../x"})
        await ann.send_event(room, {"msgtype": "m.file", "body": "gone.txt", "url": "mxc://hark.test/nothing"})
        events = [as_message(one) for one in await recorder.wait_for(4)]
    assert [one.attachments for one in events] == [()] * 4
    assert events[0].text == events[1].text == "[The file big.txt was not downloaded: the file is larger than 0.1 MB.]"
    assert "odd.txt" in events[2].text
    assert "gone.txt" in events[3].text


async def test_a_voice_message_is_delivered_as_voice(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    async with matrix_user(synapse) as ann, running_surface(make_matrix_surface(synapse, bot, tmp_path)) as recorder:
        room = await ann.create_room_with(bot)
        uri = await ann.upload(b"OggS sound", "audio/ogg")
        audio = {"msgtype": "m.audio", "body": "Voice message", "url": uri, "info": {"mimetype": "audio/ogg"}}
        await ann.send_event(room, {**audio, "org.matrix.msc3245.voice": {}})
        await ann.send_event(room, audio)
        spoken, song = (as_message(one) for one in await recorder.wait_for(2))
    assert spoken.voice is not None
    assert base64.b64decode(spoken.voice.data) == b"OggS sound"
    assert (spoken.text, spoken.attachments) == ("", ())
    assert song.voice is None
    assert len(song.attachments) == 1


async def test_a_slow_room_does_not_delay_other_rooms(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    async with matrix_user(synapse) as ann, running_surface(make_matrix_surface(synapse, bot, tmp_path)) as recorder:
        slow, quick = await ann.create_room_with(bot), await ann.create_room_with(bot)
        recorder.held_room = slow
        recorder.gate.clear()
        await ann.write(slow, "hold")
        await recorder.until(lambda: len(recorder.attempts) == 1)
        for number in range(3):
            await ann.write(quick, f"{number}")
            await recorder.wait_for(number + 1)
        recorder.gate.set()
        await recorder.wait_for(4)
    assert message_texts(recorder.events) == ["0", "1", "2", "hold"]


async def test_an_encrypted_message_is_answered_once_with_instructions(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    async with matrix_user(synapse) as ann, running_surface(make_matrix_surface(synapse, bot, tmp_path)) as recorder:
        room = await ann.create_room_with(bot)
        secret = {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "x", "session_id": "s", "sender_key": "k"}
        for _ in range(2):
            await ann.send_event(room, {**secret, "device_id": "D"}, "m.room.encrypted")
        await ann.write(room, "plainly")
        await recorder.wait_for(1)
        await ann.until(lambda: bool(ann.texts_of(bot.id)))
        assert [text[:12] for text in ann.texts_of(bot.id)] == ["I can't read"]


async def test_an_encrypted_direct_message_from_an_unknown_user_requests_pairing(
    synapse: Synapse, tmp_path: Path
) -> None:
    bot = synapse.register("hark")
    async with (
        matrix_user(synapse, "stranger") as eve,
        running_surface(make_matrix_surface(synapse, bot, tmp_path)) as recorder,
    ):
        room = await eve.create_room_with(bot)
        secret = {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "x", "session_id": "s", "sender_key": "k"}
        event = await eve.send_event(room, {**secret, "device_id": "D"}, "m.room.encrypted")
        [request] = await recorder.wait_for(1)
        await eve.sync()
        assert eve.texts_of(bot.id) == []
    assert (request.id, as_message(request).author.id) == (event, eve.id)


async def test_a_choice_in_a_group_is_made_by_reaction_and_texts_are_delivered_with_the_message_they_reply_to(
    synapse: Synapse, tmp_path: Path
) -> None:
    bot = synapse.register("hark", "Hark")
    surface = make_matrix_surface(synapse, bot, tmp_path)
    buttons = (Button("Allow", "answer:q:0"), Button("Deny", "answer:q:1"))
    async with matrix_user(synapse) as ann, matrix_user(synapse, "bob") as bob, running_surface(surface) as recorder:
        room = await ann.create_room_with(bot, bob.id)
        await bob.client.join(room)
        asked = await surface.send(room_address(room), OutgoingMessage("❓ May I?", buttons))
        await ann.until(lambda: len(ann.events_of(bot.id, "m.reaction")) == 2)
        assert ann.texts_of(bot.id)[-1] == "❓ May I?\n\n1. Allow\n2. Deny\n\nTap a number or reply with it."
        await bob.write(room, "allow")  # not addressed to the bot
        await ann.react(room, asked, "2️⃣")
        await ann.write(room, "Hark: 1")
        await ann.reply(room, asked, "deny")
        await recorder.wait_for(4)
        await surface.edit(room_address(room), asked, OutgoingMessage("❓ May I?\n(answered)"))
        await ann.write(room, "Hark: 1")
        await ann.react(room, asked, "1️⃣")
        await ann.write(room, "end")
        events = await recorder.wait_for(6)
        await ann.until(lambda: len(ann.events_of(bot.id, "m.room.redaction")) == 2)
    assert message_texts(events) == ["allow", "1", "deny", "1", "end"]
    messages = [one for one in events if isinstance(one, IncomingMessage)]
    assert [one.replied_to for one in messages] == ["", "", asked, "", ""]
    assert not any(one.is_private for one in messages)
    [pressed] = [one for one in events if isinstance(one, ButtonPressed)]
    assert (pressed.value, pressed.author.id) == ("answer:q:1", ann.id)


async def test_a_rejected_access_token_is_reported_without_showing_the_token(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    surface = make_matrix_surface(synapse, type(bot)(bot.id, "syt_secret_token"), tmp_path)
    with pytest.raises(ChatError, match="rejected the access token") as caught:
        await surface.run(DeliveryRecorder().deliver)
    assert "syt_secret" not in repr(caught.value)


async def test_an_invalid_sync_token_is_reported_with_advice(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    async with matrix_user(synapse) as ann, running_surface(make_matrix_surface(synapse, bot, tmp_path)):
        await ann.create_room_with(bot)
    file = next((tmp_path / "matrix").glob("*.json"))
    assert file.stat().st_mode & 0o077 == 0
    file.write_text('{"since": "nonsense"}')
    with pytest.raises(ChatError, match=r"delete .*\.json"):
        await make_matrix_surface(synapse, bot, tmp_path).run(DeliveryRecorder().deliver)


async def test_a_damaged_sync_file_is_set_aside_and_new_messages_arrive(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    async with matrix_user(synapse) as ann:
        async with running_surface(make_matrix_surface(synapse, bot, tmp_path)):
            room = await ann.create_room_with(bot)
        file = next((tmp_path / "matrix").glob("*.json"))
        file.write_text("{")
        async with running_surface(make_matrix_surface(synapse, bot, tmp_path)) as recorder:
            await recorder.until(lambda: ann.is_member(room, bot.id))
            await ann.write(room, "still there?")
            await recorder.until(lambda: "still there?" in message_texts(recorder.events))
    assert [path.read_text() for path in (tmp_path / "matrix").glob("*.damaged")] == ["{"]
