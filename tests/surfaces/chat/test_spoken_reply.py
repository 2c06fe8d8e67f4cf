"""Spoken replies are sent after the text, can be configured per chat, and are cancelled with the turn."""

import asyncio
import base64
from pathlib import Path

from hark.processes.cookies import current_owner
from hark.protocol.chat import IncomingMessage
from hark.protocol.messages import Attachment
from hark.protocol.provider import EndChunk, TextChunk
from hark.providers.scripted import Hang
from hark.surfaces.chat.spoken_reply import SentenceSplitter
from tests.surfaces.chat.chat_fixture import ANN, HOME, TestChat, chat_platform
from tests.tools.fake_context import find_processes
from tests.voice.voice_fixture import load_recording, open_moonshine
from tests.waiting import until

SPEAK = {"speak": True}
TIMEOUT_SECONDS = 40
REPLY = [TextChunk("It is noon. "), TextChunk("The sun shines."), EndChunk()]


def voice_message(message_id: str) -> IncomingMessage:
    data = base64.b64encode(load_recording("weather").data).decode()
    return IncomingMessage(message_id, HOME, ANN, voice=Attachment("audio/ogg", data))


def sent_voices(chat: TestChat) -> list[bytes]:
    return [one.message.voice for one in chat.shown if one.message.voice]


async def test_a_reply_to_a_voice_message_is_spoken_after_its_text(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(TIMEOUT_SECONDS),
        open_moonshine(tmp_path) as ears,
        chat_platform(tmp_path, [REPLY, REPLY], transcriber=ears, voice=SPEAK) as (chat, _),
    ):
        await chat.deliver(voice_message("v1"))
        await chat.until(lambda: bool(sent_voices(chat)))
        assert sent_voices(chat)[0].startswith(b"OggS")
        assert [one.message.text for one in chat.shown][-2:] == ["It is noon. The sun shines.", ""]
        await chat.write("and now in writing")
        await chat.until(lambda: chat.texts.count("It is noon. The sun shines.") == 2)
    assert len(sent_voices(chat)) == 1


async def test_voice_replies_can_be_turned_on_and_off_per_chat_and_the_choice_is_stored(tmp_path: Path) -> None:
    async with asyncio.timeout(TIMEOUT_SECONDS), chat_platform(tmp_path, [REPLY]) as (chat, _):
        await chat.write("/voice sometimes")
        await chat.until(lambda: any("Use /voice on" in text for text in chat.texts))
        await chat.write("/voice on")
        await chat.until(lambda: any("Voice is on here" in text for text in chat.texts))
    async with asyncio.timeout(TIMEOUT_SECONDS), chat_platform(tmp_path, [REPLY, REPLY]) as (chat, _):
        await chat.write("what time is it", "q1")
        await chat.until(lambda: bool(sent_voices(chat)))
        await chat.write("/voice off", "q2")
        await chat.until(lambda: any("Voice is off here" in text for text in chat.texts))
        await chat.write("what time is it", "q3")
        await chat.until(lambda: chat.texts.count("It is noon. The sun shines.") == 2)
    assert len(sent_voices(chat)) == 1


async def test_an_interrupt_cancels_the_speech_and_its_process(tmp_path: Path) -> None:
    hang, owner = Hang(), current_owner(tmp_path).home
    long = [TextChunk("This goes on and on. " * 20), hang]
    slow = {"speak_command": ["sh", "-c", "cat >/dev/null; sleep 1000"]}
    async with asyncio.timeout(TIMEOUT_SECONDS), chat_platform(tmp_path, [long, REPLY], voice=slow) as (chat, _):
        await chat.write("/voice on")
        await chat.write("write a story")
        await hang.reached.wait()
        await until(lambda: any("sleep 1000" in command for command in find_processes(owner).values()))
        await chat.write("stop")
        await chat.until(lambda: any("stopped" in text for text in chat.texts))
        await until(lambda: not any("sleep 1000" in command for command in find_processes(owner).values()))
        assert sent_voices(chat) == []


async def test_a_failed_speech_synthesis_is_reported_after_the_text_was_sent(tmp_path: Path) -> None:
    failing = {"speak_command": ["sh", "-c", "cat >/dev/null; echo no voice >&2"]}
    async with asyncio.timeout(TIMEOUT_SECONDS), chat_platform(tmp_path, [REPLY], voice=failing) as (chat, _):
        await chat.write("/voice on")
        await chat.write("what time is it")
        await chat.until(lambda: any("no voice" in text for text in chat.texts))
        assert "It is noon. The sun shines." in chat.texts


def test_sentences_are_returned_before_the_text_is_complete() -> None:
    splitter = SentenceSplitter()
    chunks = ["Hel", "lo. How a", "re you? Lo", "ok:\n```py", "thon\nx = 1.\n`", "``\nThere. T", "he end"]
    assert [splitter.add(chunk) for chunk in chunks] == [
        [],
        ["Hello. "],
        ["How are you? "],
        ["Look:\n"],
        [],
        ["```python\nx = 1.\n```\n", "There. "],
        [],
    ]
    assert splitter.flush() == ["The end"]
