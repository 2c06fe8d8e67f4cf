"""Receiving from Telegram: each message is delivered once, confirmed after it is stored, and parsed correctly."""

import asyncio
import base64
import logging
import sys
import traceback
from typing import Any

import pytest

from hark.protocol.chat import Address, Author, Button, ButtonPressed, ChatError, IncomingMessage, MessageEdited
from hark.protocol.messages import Attachment
from hark.protocol.store import StoreError
from hark.surfaces.telegram.platform import TelegramSettings
from hark.surfaces.telegram.surface import TelegramSurface
from tests.fakes.telegram_payloads import ANN, BOT, GROUP, TOKEN, TelegramFailure
from tests.fakes.telegram_server import telegram_server
from tests.surfaces.telegram.telegram_fixture import HOME, RunningBot, running_bot

ANN_AUTHOR = Author("1", "Ann Bee")


async def received_messages(bot: RunningBot, count: int = 1) -> list[IncomingMessage]:
    events = await bot.recorder.wait_for(count)
    return [event for event in events if isinstance(event, IncomingMessage)]


async def until_confirmed(bot: RunningBot, update: int) -> None:
    await bot.server.until(lambda: bot.server.confirmed > update)


async def test_a_text_message_is_delivered_and_confirmed_only_after_it_was_accepted() -> None:
    async with running_bot() as bot:
        bot.recorder.gate.clear()
        number = await bot.server.write("hello")
        update = bot.server.updates[0]["update_id"]
        await bot.recorder.has_begun.wait()
        polls = bot.server.calls.count("getupdates")
        await bot.server.until(lambda: bot.server.calls.count("getupdates") > polls + 1)
        assert bot.server.confirmed <= update  # The bot asks for more updates, but has not confirmed this one.
        bot.recorder.gate.set()
        [message] = await received_messages(bot)
        await until_confirmed(bot, update)
    assert message.at > 0
    assert message == IncomingMessage(str(number), HOME, ANN_AUTHOR, "hello", at=message.at, is_private=True)
    assert bot.recorder.events == [message]  # The update was requested several times but delivered once.


async def test_a_message_that_could_not_be_stored_is_delivered_again_with_the_same_id() -> None:
    async with running_bot() as bot:
        bot.recorder.errors.append(StoreError("the disk is full"))
        number = await bot.server.write("hello")
        await bot.server.write("second")
        with pytest.raises(StoreError):
            await bot.running
        assert bot.recorder.events == []
        second_run = asyncio.create_task(bot.surface.run(bot.recorder.deliver))
        messages = await received_messages(bot, 2)
        second_run.cancel()
        await asyncio.wait([second_run])
    assert [(message.id, message.text) for message in messages[:1]] == [(str(number), "hello")]
    assert [message.text for message in messages] == ["hello", "second"]


async def test_each_edit_is_delivered_even_if_it_restores_an_earlier_text() -> None:
    async with running_bot() as bot:
        number = await bot.server.write("helo")
        await bot.server.edit(number, "hello", at=1000)
        await bot.server.edit(number, "helo", at=1001)
        await bot.server.edit(number, "hello", at=1002)
        events = await bot.recorder.wait_for(4)
    texts = [("hello", 1000.0), ("helo", 1001.0), ("hello", 1002.0)]
    assert events[1:] == [MessageEdited(str(number), HOME, ANN_AUTHOR, text, at) for text, at in texts]


async def test_an_edit_that_adds_a_mention_of_the_bot_is_delivered_as_a_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hark.surfaces.telegram.receiving.MAX_CLOCK_SKEW_SECONDS", -10.0)
    async with running_bot() as bot:
        number = await bot.server.write("do it", chat=GROUP)
        await bot.server.edit(number, "@HarkTestBot do it", chat=GROUP)
        await bot.server.edit(number, "@HarkTestBot do it now", chat=GROUP)
        events = await bot.recorder.wait_for(2)
    assert [(type(event), event.id) for event in events] == [
        (IncomingMessage, str(number)),
        (MessageEdited, str(number)),
    ]


async def test_the_images_of_an_album_arrive_in_order_with_the_same_album_id() -> None:
    async with running_bot() as bot:
        slow = asyncio.Event()
        bot.server.fail("download", *(TelegramFailure(wait_for=slow) for _ in range(3)))
        for name in ("a", "b", "c"):
            bot.server.files[name] = name.encode()
            photo = [{"file_id": "small", "file_unique_id": "s", "width": 1, "height": 1}, file_payload(name)]
            await bot.server.write(photo=photo, media_group_id="g1", caption="look" if name == "a" else "")
        await bot.server.until(lambda: bot.server.calls.count("download") >= 3)
        assert bot.recorder.events == []
        slow.set()
        messages = await received_messages(bot, 3)
    assert [message.album for message in messages] == ["g1"] * 3
    assert [message.text for message in messages] == ["look", "", ""]
    assert [decode_content(message.attachments[0]) for message in messages] == [b"a", b"b", b"c"]
    assert messages[0].attachments[0].media_type == "image/jpeg"


async def test_a_slow_download_does_not_delay_another_chat() -> None:
    async with running_bot() as bot:
        slow = asyncio.Event()
        bot.server.fail("download", TelegramFailure(wait_for=slow))
        bot.server.files["v"] = b"OggS"
        await bot.server.write(voice={**file_payload("v"), "duration": 3})
        await bot.server.until(lambda: "download" in bot.server.calls)
        await bot.server.write("@HarkTestBot are you there?", chat=GROUP)
        await received_messages(bot)
        slow.set()
        messages = await received_messages(bot, 2)
    assert [message.text for message in messages] == ["are you there?", ""]
    assert messages[1].voice is not None
    assert decode_content(messages[1].voice) == b"OggS"


async def test_a_voice_recording_is_delivered_as_voice_but_an_audio_file_with_a_caption_is_not() -> None:
    async with running_bot() as bot:
        bot.server.files["v"] = b"OggS1"
        voice = {**file_payload("v"), "duration": 3, "mime_type": "audio/ogg"}
        await bot.server.write(voice=voice)
        audio = {**file_payload("v"), "duration": 3, "mime_type": "audio/mp4", "file_name": "x.m4a"}
        await bot.server.write(audio=audio, caption="which song is this?")
        note = {**file_payload("v"), "duration": 3, "length": 240}
        await bot.server.write(video_note=note)
        recording, song, round_video = await received_messages(bot, 3)
    assert recording.voice is not None
    assert (recording.voice.media_type, recording.attachments) == ("audio/ogg", ())
    assert round_video.voice is not None
    assert (round_video.voice.media_type, round_video.attachments) == ("video/mp4", ())
    assert song.voice is None
    assert [(attachment.name, attachment.media_type) for attachment in song.attachments] == [("x.m4a", "audio/mp4")]


@pytest.mark.parametrize(
    ("claimed", "name"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\windows\\evil.exe", "evil.exe"),
        (".bashrc", "bashrc"),
        ("gpj.\u202eexe\x00.png", "gpj.exe.png"),
        ("..", ""),
        ("a" * 300 + ".pdf", "a" * 96 + ".pdf"),
    ],
)
async def test_an_unsafe_file_name_is_sanitized(claimed: str, name: str) -> None:
    async with running_bot() as bot:
        bot.server.files["d"] = b"%PDF"
        number = await bot.server.write(document={**file_payload("d"), "file_name": claimed, "mime_type": "../x; y"})
        [message] = await received_messages(bot)
    assert message.attachments == (
        Attachment("application/octet-stream", name or f"file-{number}", base64.b64encode(b"%PDF").decode()),
    )


async def test_a_file_that_is_too_large_or_missing_is_named_in_the_text() -> None:
    async with running_bot() as bot:
        bot.server.files["big"] = b"x" * (20 * 1024 * 1024 + 1)
        await bot.server.write(
            document={**file_payload("big"), "file_name": "a.bin", "file_size": 30_000_000}, caption="look"
        )
        await bot.server.write(document={**file_payload("big"), "file_name": "b.bin"})
        await bot.server.write(document={**file_payload("none"), "file_name": "c.bin"})
        messages = await received_messages(bot, 3)
    assert all(message.attachments == () for message in messages)
    assert messages[0].text == "look\n[The file a.bin was not downloaded: the file is larger than 20 MB.]"
    assert "b.bin was not downloaded" in messages[1].text
    assert "c.bin was not downloaded" in messages[2].text


async def test_a_failed_download_is_retried(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with running_bot() as bot:
        bot.server.files["d"] = b"content"
        bot.server.fail("download", TelegramFailure(status=500))
        bot.server.fail("getfile", TelegramFailure(retry_after=1))
        await bot.server.write(document={**file_payload("d"), "file_name": "d.txt", "mime_type": "text/plain"})
        [message] = await received_messages(bot)
    assert decode_content(message.attachments[0]) == b"content"
    assert TOKEN not in caplog.text


async def test_a_button_press_is_acknowledged_at_once_and_overtakes_a_download() -> None:
    async with running_bot() as bot:
        slow = asyncio.Event()
        bot.server.fail("download", TelegramFailure(wait_for=slow))
        bot.server.files["v"] = b"OggS"
        value = "answer:" + "very-long-" * 20 + ":0"
        await bot.send("Really?", Button("Yes", value), Button("Stop", "stop:t1"))
        await bot.server.write(voice={**file_payload("v"), "duration": 3})
        await bot.server.until(lambda: "download" in bot.server.calls)
        query = await bot.server.press("Yes")
        [pressed] = await bot.recorder.wait_for(1)
        await bot.server.until(lambda: bot.server.answered_queries == [(query, "")])
        other = await bot.server.press("Stop")
        await bot.recorder.wait_for(2)
        slow.set()
        await bot.recorder.wait_for(3)
    assert pressed == ButtonPressed(query, HOME, ANN_AUTHOR, value)
    assert bot.recorder.events[1] == ButtonPressed(other, HOME, ANN_AUTHOR, "stop:t1")


async def test_a_press_of_an_expired_button_is_answered_with_a_notice() -> None:
    async with running_bot() as bot:
        await bot.send("Really?", Button("Yes", "x" * 65))
        bot.server.posted[-1].buttons[0]["callback_data"] = "~forgotten"
        query = await bot.server.press("Yes")
        await bot.server.until(lambda: bot.server.answered_queries == [(query, "This button has expired.")])
        await until_confirmed(bot, bot.server.updates[-1]["update_id"])
    assert bot.recorder.events == []


async def test_group_messages_are_delivered_only_if_addressed_to_the_bot() -> None:
    async with running_bot() as bot:
        ours = {"message_id": 5, "date": 1, "chat": GROUP, "from": BOT, "text": "my *reply*"}
        other = {**ours, "from": {**ANN, "id": 2}}
        await bot.server.write("good morning all", chat=GROUP)
        await bot.server.write("@other_bot hi", chat=GROUP)
        await bot.server.write("/stop@other_bot", chat=GROUP)
        await bot.server.write("I agree", chat=GROUP, reply_to_message=other)
        number = await bot.server.write("unrelated", chat=GROUP)
        await bot.server.edit(number, "still unrelated", chat=GROUP)
        await bot.server.write("@harktestbot, stop", chat=GROUP)
        await bot.server.write("/stop@HarkTestBot now", chat=GROUP)
        await bot.server.write("😀 ask @HarkTestBot about it", chat=GROUP)
        await bot.server.write("and then?", chat=GROUP, reply_to_message=ours)
        messages = await received_messages(bot, 4)
    assert [message.text for message in messages] == ["stop", "/stop now", "😀 ask @HarkTestBot about it", "and then?"]
    assert all(message.is_for_us for message in messages)
    assert messages[3].quoted == "my *reply*"


async def test_messages_addressed_to_the_bot_are_marked_when_it_listens_to_all_messages() -> None:
    async with running_bot(listen="all") as bot:
        await bot.server.write("good morning all", chat=GROUP)
        await bot.server.write("hi @HarkTestBot", chat=GROUP)
        messages = await received_messages(bot, 2)
    assert [message.is_for_us for message in messages] == [False, True]


async def test_an_album_is_addressed_to_the_bot_if_one_caption_mentions_it() -> None:
    async with running_bot() as bot:
        bot.server.files["a"] = b"a"
        caption: dict[str, Any] = {
            "caption": "@HarkTestBot which is it?",
            "caption_entities": [{"type": "mention", "offset": 0, "length": 12}],
        }
        await bot.server.write(chat=GROUP, photo=[file_payload("a")], media_group_id="g")
        await bot.server.write(chat=GROUP, photo=[file_payload("a")], media_group_id="g", **caption)
        await bot.server.write(chat=GROUP, photo=[file_payload("a")], media_group_id="g")
        messages = await received_messages(bot, 3)
    assert [(message.text, message.is_for_us) for message in messages] == [
        ("", True),
        ("which is it?", True),
        ("", True),
    ]


async def test_messages_from_bots_and_channels_and_service_messages_are_ignored() -> None:
    async with running_bot() as bot:
        await bot.server.write("/help", author={**BOT, "id": 99})
        await bot.server.write("/help", chat=GROUP, sender_chat=GROUP)
        await bot.server.write(new_chat_title="Another name")
        await bot.server.write("a user")
        messages = await received_messages(bot)
    assert [message.text for message in messages] == ["a user"]


async def test_topics_are_threads_but_reply_chains_are_not() -> None:
    async with running_bot() as bot:
        begin = {"message_id": 7, "date": 1, "chat": GROUP, "from": ANN, "forum_topic_created": topic_payload()}
        in_topic: dict[str, Any] = {"message_thread_id": 7, "is_topic_message": True, "reply_to_message": begin}
        await bot.server.write("@HarkTestBot one", chat=GROUP, **in_topic)
        await bot.server.write("@HarkTestBot two", chat=GROUP, message_thread_id=9)
        messages = await received_messages(bot, 2)
        await bot.send("hello", Button("Stop", "stop:t1"), address=messages[0].address)
        await bot.server.press("Stop")
        pressed = (await bot.recorder.wait_for(3))[2]
    assert [message.address.thread for message in messages] == ["7", ""]
    assert messages[0].quoted == ""
    assert bot.server.posted[0].thread == 7
    assert pressed.address == Address("telegram", "-1001", "7")


async def test_content_without_text_is_described_in_text() -> None:
    async with running_bot() as bot:
        await bot.server.write("/start")
        await bot.server.write(location={"latitude": 52.5, "longitude": 13.4})
        sticker = {**file_payload("s"), "type": "regular", "is_animated": False, "is_video": False, "emoji": "😀"}
        await bot.server.write(sticker=sticker)
        quote = {"text": "a part", "position": 0}
        await bot.server.write("why?", quote=quote)
        await bot.server.write(dice={"emoji": "🎲", "value": 4})
        messages = await received_messages(bot, 5)
    texts = ["/help", "[location: 52.5, 13.4]", "[sticker 😀]", "why?", "[🎲 shows 4]"]
    assert [message.text for message in messages] == texts
    assert messages[3].quoted == "a part"


async def test_an_update_that_cannot_be_parsed_does_not_block_later_updates() -> None:
    async with running_bot() as bot:
        await bot.server.add_update("message", {"message_id": "?", "chat": 5})
        await bot.server.write("after it")
        [message] = await received_messages(bot)
        await until_confirmed(bot, bot.server.updates[-1]["update_id"] if bot.server.updates else 0)
    assert message.text == "after it"


async def test_polling_recovers_from_lost_connections_and_server_errors() -> None:
    async with running_bot() as bot:
        await bot.server.write("one")
        await bot.recorder.wait_for(1)
        bot.server.fail(
            "getupdates",
            TelegramFailure(drops_connection=True),
            TelegramFailure(html=True),
            TelegramFailure(retry_after=1),
        )
        await bot.server.write("two")
        await bot.recorder.wait_for(2)
        assert not bot.running.done()


async def test_a_wrong_token_is_reported_without_showing_the_token(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with telegram_server() as server:
        for token in ("654321:wrong-secret", "no token at all"):
            surface = TelegramSurface(TelegramSettings(token=token, api_base=server.address))
            with pytest.raises(ChatError) as caught:
                await surface.run(lambda _: asyncio.sleep(0))
            output = "".join(traceback.format_exception(caught.value)) + caplog.text
            assert "@BotFather" in str(caught.value)
            assert token not in output
    with pytest.raises(ChatError) as caught:
        await TelegramSurface(TelegramSettings(token=TOKEN, api_base=server.address)).run(lambda _: asyncio.sleep(0))
    assert TOKEN not in "".join(traceback.format_exception(caught.value)) + caplog.text
    with pytest.raises(ChatError, match="token_env"):
        await TelegramSurface(TelegramSettings(token_env="NOT_SET_ANYWHERE")).run(lambda _: asyncio.sleep(0))


async def test_a_conflicting_webhook_is_reported() -> None:
    async with running_bot() as bot:
        bot.server.has_webhook = True
        await bot.server.write("wake up")
        with pytest.raises(ChatError, match="webhook"):
            await bot.running


async def test_cancelling_the_surface_leaves_no_tasks() -> None:
    async with telegram_server() as server:
        before = asyncio.all_tasks()
        surface = TelegramSurface(TelegramSettings(token=TOKEN, api_base=server.address))
        begun = asyncio.Event()

        async def deliver(_: object) -> None:
            begun.set()
            await asyncio.get_running_loop().create_future()

        running = asyncio.create_task(surface.run(deliver))
        server.files["v"] = b"OggS"
        server.fail("download", TelegramFailure(wait_for=asyncio.Event()))
        await server.write("hello")
        await server.write(voice={**file_payload("v"), "duration": 3}, chat=PRIVATE_TWO)
        await begun.wait()
        await server.until(lambda: "download" in server.calls)
        running.cancel()
        async with asyncio.timeout(20):
            await asyncio.wait([running])
        assert running.cancelled()
        leftover_tasks = [
            task
            for task in asyncio.all_tasks() - before
            if "aiohttp" not in repr(task) and "TestServer" not in repr(task)
        ]
        with pytest.raises(ChatError):
            await surface.show_typing(HOME)
    assert leftover_tasks == []


async def test_importing_the_surface_does_not_import_the_telegram_library() -> None:
    code = (
        "import sys, hark.surfaces.telegram.surface; print([m for m in ('aiogram', 'markdown_it') if m in sys.modules])"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    printed, _ = await process.communicate()
    assert printed.strip() == b"[]"


PRIVATE_TWO = {"id": 2, "type": "private", "first_name": "Bo"}


def file_payload(name: str) -> dict[str, Any]:
    return {"file_id": name, "file_unique_id": name, "width": 9, "height": 9}


def topic_payload() -> dict[str, Any]:
    return {"name": "Plans", "icon_color": 1}


def decode_content(attachment: Attachment) -> bytes:
    return base64.b64decode(attachment.data)
