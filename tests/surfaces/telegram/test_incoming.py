"""Telegram, inwards: every message once, confirmed when it is safe, and understood as it was meant."""

import asyncio
import base64
import logging
import sys
import traceback
from typing import Any

import pytest

from hark.protocol.chat import Address, Author, Button, ChatError, Pressed, Rewritten, Written
from hark.protocol.messages import Attachment
from hark.protocol.store import StoreError
from hark.surfaces.telegram.platform import TelegramSettings
from hark.surfaces.telegram.surface import Telegram
from tests.fakes.telegram_payloads import ANN, BOT, GROUP, TOKEN, Trouble
from tests.fakes.telegram_server import telegram_server
from tests.surfaces.telegram.telegram_fixture import HOME, Bot, telegram_bot

BEE = Author("1", "Ann Bee")


async def first(bot: Bot, count: int = 1) -> list[Written]:
    found = await bot.taken.number(count)
    return [one for one in found if isinstance(one, Written)]


async def confirmed(bot: Bot, update: int) -> None:
    await bot.server.until(lambda: bot.server.confirmed > update)


async def test_a_text_comes_in_and_is_confirmed_after_it_was_taken() -> None:
    async with telegram_bot() as bot:
        bot.taken.gate.clear()
        number = await bot.server.write("hello")
        update = bot.server.updates[0]["update_id"]
        await bot.taken.begun.wait()
        polls = bot.server.calls.count("getupdates")
        await bot.server.until(lambda: bot.server.calls.count("getupdates") > polls + 1)
        assert bot.server.confirmed <= update  # it asks for more, and still has not confirmed
        bot.taken.gate.set()
        [message] = await first(bot)
        await confirmed(bot, update)
    assert message.at > 0
    assert message == Written(str(number), HOME, BEE, "hello", at=message.at)
    assert bot.taken.incoming == [message]  # asked for again and again, taken once


async def test_what_could_not_be_taken_comes_again_with_the_same_id() -> None:
    async with telegram_bot() as bot:
        bot.taken.failing.append(StoreError("the disk is full"))
        number = await bot.server.write("hello")
        await bot.server.write("second")
        with pytest.raises(StoreError):
            await bot.running
        assert bot.taken.incoming == []
        again = asyncio.create_task(bot.surface.run(bot.taken.deliver))
        messages = await first(bot, 2)
        again.cancel()
        await asyncio.wait([again])
    assert [(message.id, message.text) for message in messages[:1]] == [(str(number), "hello")]
    assert [message.text for message in messages] == ["hello", "second"]


async def test_an_edit_is_told_and_the_same_text_later_is_another_edit() -> None:
    async with telegram_bot() as bot:
        number = await bot.server.write("helo")
        await bot.server.rewrite(number, "hello", at=1000)
        await bot.server.rewrite(number, "helo", at=1001)
        await bot.server.rewrite(number, "hello", at=1002)
        found = await bot.taken.number(4)
    texts = [("hello", 1000.0), ("helo", 1001.0), ("hello", 1002.0)]
    assert found[1:] == [Rewritten(str(number), HOME, BEE, text, at) for text, at in texts]


async def test_an_edit_that_first_names_us_is_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hark.surfaces.telegram.receiving.CLOCK_SECONDS", -10.0)
    async with telegram_bot() as bot:
        number = await bot.server.write("do it", chat=GROUP)
        await bot.server.rewrite(number, "@HarkTestBot do it", chat=GROUP)
        await bot.server.rewrite(number, "@HarkTestBot do it now", chat=GROUP)
        found = await bot.taken.number(2)
    assert [(type(one), one.id) for one in found] == [(Written, str(number)), (Rewritten, str(number))]


async def test_the_pictures_of_an_album_come_in_order_and_belong_together() -> None:
    async with telegram_bot() as bot:
        slow = asyncio.Event()
        bot.server.fail("download", *(Trouble(waits=slow) for _ in range(3)))
        for name in ("a", "b", "c"):
            bot.server.files[name] = name.encode()
            photo = [{"file_id": "small", "file_unique_id": "s", "width": 1, "height": 1}, file(name)]
            await bot.server.write(photo=photo, media_group_id="g1", caption="look" if name == "a" else "")
        await bot.server.until(lambda: bot.server.calls.count("download") >= 3)
        assert bot.taken.incoming == []
        slow.set()
        messages = await first(bot, 3)
    assert [message.album for message in messages] == ["g1"] * 3
    assert [message.text for message in messages] == ["look", "", ""]
    assert [content(message.attachments[0]) for message in messages] == [b"a", b"b", b"c"]
    assert messages[0].attachments[0].media_type == "image/jpeg"


async def test_a_slow_file_holds_no_other_chat() -> None:
    async with telegram_bot() as bot:
        slow = asyncio.Event()
        bot.server.fail("download", Trouble(waits=slow))
        bot.server.files["v"] = b"OggS"
        await bot.server.write(voice={**file("v"), "duration": 3})
        await bot.server.until(lambda: "download" in bot.server.calls)
        await bot.server.write("@HarkTestBot are you there?", chat=GROUP)
        await first(bot)
        slow.set()
        messages = await first(bot, 2)
    assert [message.text for message in messages] == ["are you there?", ""]
    assert messages[1].voice is not None
    assert content(messages[1].voice) == b"OggS"


async def test_a_recording_stands_for_the_text_and_a_song_with_words_does_not() -> None:
    async with telegram_bot() as bot:
        bot.server.files["v"] = b"OggS1"
        voice = {**file("v"), "duration": 3, "mime_type": "audio/ogg"}
        await bot.server.write(voice=voice)
        audio = {**file("v"), "duration": 3, "mime_type": "audio/mp4", "file_name": "x.m4a"}
        await bot.server.write(audio=audio, caption="what song is this?")
        note = {**file("v"), "duration": 3, "length": 240}
        await bot.server.write(video_note=note)
        recording, song, round_video = await first(bot, 3)
    assert recording.voice is not None
    assert (recording.voice.media_type, recording.attachments) == ("audio/ogg", ())
    assert round_video.voice is not None
    assert (round_video.voice.media_type, round_video.attachments) == ("video/mp4", ())
    assert song.voice is None
    assert [(one.name, one.media_type) for one in song.attachments] == [("x.m4a", "audio/mp4")]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\windows\\evil.exe", "evil.exe"),
        (".bashrc", "bashrc"),
        ("gpj.\u202eexe\x00.png", "gpj.exe.png"),
        ("..", ""),
        ("a" * 300 + ".pdf", "a" * 96 + ".pdf"),
    ],
)
async def test_a_files_name_can_do_no_harm(given: str, name: str) -> None:
    async with telegram_bot() as bot:
        bot.server.files["d"] = b"%PDF"
        number = await bot.server.write(document={**file("d"), "file_name": given, "mime_type": "../x; y"})
        [message] = await first(bot)
    assert message.attachments == (
        Attachment("application/octet-stream", name or f"file-{number}", base64.b64encode(b"%PDF").decode()),
    )


async def test_a_file_that_is_too_large_or_gone_is_said_to_be_missing() -> None:
    async with telegram_bot() as bot:
        bot.server.files["big"] = b"x" * (20 * 1024 * 1024 + 1)
        await bot.server.write(document={**file("big"), "file_name": "a.bin", "file_size": 30_000_000}, caption="look")
        await bot.server.write(document={**file("big"), "file_name": "b.bin"})
        await bot.server.write(document={**file("none"), "file_name": "c.bin"})
        messages = await first(bot, 3)
    assert all(message.attachments == () for message in messages)
    assert messages[0].text == "look\n[The file a.bin was not fetched: it is larger than 20 MB.]"
    assert "b.bin was not fetched" in messages[1].text
    assert "c.bin was not fetched" in messages[2].text


async def test_a_download_that_fails_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with telegram_bot() as bot:
        bot.server.files["d"] = b"content"
        bot.server.fail("download", Trouble(status=500))
        bot.server.fail("getfile", Trouble(retry_after=1))
        await bot.server.write(document={**file("d"), "file_name": "d.txt", "mime_type": "text/plain"})
        [message] = await first(bot)
    assert content(message.attachments[0]) == b"content"
    assert TOKEN not in caplog.text


async def test_a_button_press_is_answered_at_once_and_goes_before_a_file() -> None:
    async with telegram_bot() as bot:
        slow = asyncio.Event()
        bot.server.fail("download", Trouble(waits=slow))
        bot.server.files["v"] = b"OggS"
        value = "answer:" + "very-long-" * 20 + ":0"
        await bot.send("Really?", Button("Yes", value), Button("Stop", "stop:t1"))
        await bot.server.write(voice={**file("v"), "duration": 3})
        await bot.server.until(lambda: "download" in bot.server.calls)
        query = await bot.server.press("Yes")
        [pressed] = await bot.taken.number(1)
        await bot.server.until(lambda: bot.server.answered == [(query, "")])
        other = await bot.server.press("Stop")
        await bot.taken.number(2)
        slow.set()
        await bot.taken.number(3)
    assert pressed == Pressed(query, HOME, BEE, value)
    assert bot.taken.incoming[1] == Pressed(other, HOME, BEE, "stop:t1")


async def test_a_button_that_nobody_remembers_says_so() -> None:
    async with telegram_bot() as bot:
        await bot.send("Really?", Button("Yes", "x" * 65))
        bot.server.posted[-1].buttons[0]["callback_data"] = "~forgotten"
        query = await bot.server.press("Yes")
        await bot.server.until(lambda: bot.server.answered == [(query, "This button is too old.")])
        await confirmed(bot, bot.server.updates[-1]["update_id"])
    assert bot.taken.incoming == []


async def test_in_a_group_only_what_is_said_to_us_is_heard() -> None:
    async with telegram_bot() as bot:
        ours = {"message_id": 5, "date": 1, "chat": GROUP, "from": BOT, "text": "my *reply*"}
        other = {**ours, "from": {**ANN, "id": 2}}
        await bot.server.write("good morning all", chat=GROUP)
        await bot.server.write("@other_bot hi", chat=GROUP)
        await bot.server.write("/stop@other_bot", chat=GROUP)
        await bot.server.write("I agree", chat=GROUP, reply_to_message=other)
        number = await bot.server.write("unrelated", chat=GROUP)
        await bot.server.rewrite(number, "still unrelated", chat=GROUP)
        await bot.server.write("@harktestbot, stop", chat=GROUP)
        await bot.server.write("/stop@HarkTestBot now", chat=GROUP)
        await bot.server.write("😀 ask @HarkTestBot about it", chat=GROUP)
        await bot.server.write("and then?", chat=GROUP, reply_to_message=ours)
        messages = await first(bot, 4)
    assert [message.text for message in messages] == ["stop", "/stop now", "😀 ask @HarkTestBot about it", "and then?"]
    assert all(message.is_for_us for message in messages)
    assert messages[3].quoted == "my *reply*"


async def test_listening_to_all_tells_what_is_for_us() -> None:
    async with telegram_bot(listen="all") as bot:
        await bot.server.write("good morning all", chat=GROUP)
        await bot.server.write("hi @HarkTestBot", chat=GROUP)
        messages = await first(bot, 2)
    assert [message.is_for_us for message in messages] == [False, True]


async def test_an_album_of_a_group_is_for_us_when_one_picture_names_us() -> None:
    async with telegram_bot() as bot:
        bot.server.files["a"] = b"a"
        caption: dict[str, Any] = {
            "caption": "@HarkTestBot what is it?",
            "caption_entities": [{"type": "mention", "offset": 0, "length": 12}],
        }
        await bot.server.write(chat=GROUP, photo=[file("a")], media_group_id="g")
        await bot.server.write(chat=GROUP, photo=[file("a")], media_group_id="g", **caption)
        await bot.server.write(chat=GROUP, photo=[file("a")], media_group_id="g")
        messages = await first(bot, 3)
    assert [(message.text, message.is_for_us) for message in messages] == [
        ("", True),
        ("what is it?", True),
        ("", True),
    ]


async def test_bots_channels_and_service_messages_are_ignored() -> None:
    async with telegram_bot() as bot:
        await bot.server.write("/help", author={**BOT, "id": 99})
        await bot.server.write("/help", chat=GROUP, sender_chat=GROUP)
        await bot.server.write(new_chat_title="Another name")
        await bot.server.write("a person")
        messages = await first(bot)
    assert [message.text for message in messages] == ["a person"]


async def test_topics_are_threads_and_rows_of_replies_are_not() -> None:
    async with telegram_bot() as bot:
        begin = {"message_id": 7, "date": 1, "chat": GROUP, "from": ANN, "forum_topic_created": topic()}
        in_topic: dict[str, Any] = {"message_thread_id": 7, "is_topic_message": True, "reply_to_message": begin}
        await bot.server.write("@HarkTestBot one", chat=GROUP, **in_topic)
        await bot.server.write("@HarkTestBot two", chat=GROUP, message_thread_id=9)
        messages = await first(bot, 2)
        await bot.send("hello", Button("Stop", "stop:t1"), address=messages[0].address)
        await bot.server.press("Stop")
        pressed = (await bot.taken.number(3))[2]
    assert [message.address.thread for message in messages] == ["7", ""]
    assert messages[0].quoted == ""
    assert bot.server.posted[0].thread == 7
    assert pressed.address == Address("telegram", "-1001", "7")


async def test_what_is_no_text_is_told_in_words() -> None:
    async with telegram_bot() as bot:
        await bot.server.write("/start")
        await bot.server.write(location={"latitude": 52.5, "longitude": 13.4})
        sticker = {**file("s"), "type": "regular", "is_animated": False, "is_video": False, "emoji": "😀"}
        await bot.server.write(sticker=sticker)
        quote = {"text": "a part", "position": 0}
        await bot.server.write("why?", quote=quote)
        await bot.server.write(dice={"emoji": "🎲", "value": 4})
        messages = await first(bot, 5)
    texts = ["/help", "[location: 52.5, 13.4]", "[sticker 😀]", "why?", "[🎲 shows 4]"]
    assert [message.text for message in messages] == texts
    assert messages[3].quoted == "a part"


async def test_an_update_that_can_t_be_read_holds_up_no_other() -> None:
    async with telegram_bot() as bot:
        await bot.server.put("message", {"message_id": "?", "chat": 5})
        await bot.server.write("after it")
        [message] = await first(bot)
        await confirmed(bot, bot.server.updates[-1]["update_id"] if bot.server.updates else 0)
    assert message.text == "after it"


async def test_lost_connections_and_trouble_of_the_server_are_got_over() -> None:
    async with telegram_bot() as bot:
        await bot.server.write("one")
        await bot.taken.number(1)
        bot.server.fail("getupdates", Trouble(drops=True), Trouble(html=True), Trouble(retry_after=1))
        await bot.server.write("two")
        await bot.taken.number(2)
        assert not bot.running.done()


async def test_a_wrong_token_is_told_and_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with telegram_server() as server:
        for token in ("654321:wrong-secret", "no token at all"):
            surface = Telegram(TelegramSettings(token=token, api_base=server.address))
            with pytest.raises(ChatError) as caught:
                await surface.run(lambda _: asyncio.sleep(0))
            shown = "".join(traceback.format_exception(caught.value)) + caplog.text
            assert "@BotFather" in str(caught.value)
            assert token not in shown
    with pytest.raises(ChatError) as caught:
        await Telegram(TelegramSettings(token=TOKEN, api_base=server.address)).run(lambda _: asyncio.sleep(0))
    assert TOKEN not in "".join(traceback.format_exception(caught.value)) + caplog.text
    with pytest.raises(ChatError, match="token_env"):
        await Telegram(TelegramSettings(token_env="NOT_SET_ANYWHERE")).run(lambda _: asyncio.sleep(0))


async def test_a_webhook_elsewhere_is_told() -> None:
    async with telegram_bot() as bot:
        bot.server.has_webhook = True
        await bot.server.write("wake up")
        with pytest.raises(ChatError, match="webhook"):
            await bot.running


async def test_cancelling_leaves_nothing() -> None:
    async with telegram_server() as server:
        before = asyncio.all_tasks()
        surface = Telegram(TelegramSettings(token=TOKEN, api_base=server.address))
        begun = asyncio.Event()

        async def deliver(_: object) -> None:
            begun.set()
            await asyncio.get_running_loop().create_future()

        running = asyncio.create_task(surface.run(deliver))
        server.files["v"] = b"OggS"
        server.fail("download", Trouble(waits=asyncio.Event()))
        await server.write("hello")
        await server.write(voice={**file("v"), "duration": 3}, chat=PRIVATE_TWO)
        await begun.wait()
        await server.until(lambda: "download" in server.calls)
        running.cancel()
        async with asyncio.timeout(20):
            await asyncio.wait([running])
        assert running.cancelled()
        ours = [
            task
            for task in asyncio.all_tasks() - before
            if "aiohttp" not in repr(task) and "TestServer" not in repr(task)
        ]
        with pytest.raises(ChatError):
            await surface.typing(HOME)
    assert ours == []


async def test_the_library_is_loaded_by_the_run_alone() -> None:
    code = (
        "import sys, hark.surfaces.telegram.surface; print([m for m in ('aiogram', 'markdown_it') if m in sys.modules])"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    printed, _ = await process.communicate()
    assert printed.strip() == b"[]"


PRIVATE_TWO = {"id": 2, "type": "private", "first_name": "Bo"}


def file(name: str) -> dict[str, Any]:
    return {"file_id": name, "file_unique_id": name, "width": 9, "height": 9}


def topic() -> dict[str, Any]:
    return {"name": "Plans", "icon_color": 1}


def content(attachment: Attachment) -> bytes:
    return base64.b64decode(attachment.data)
