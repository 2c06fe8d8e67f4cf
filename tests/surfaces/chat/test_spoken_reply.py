"""Replies as voice messages: with real speech, behind the text, as each person wants it, and cut with the turn."""

import asyncio
import base64
from pathlib import Path

from hark.processes.cookies import this_process
from hark.protocol.chat import Written
from hark.protocol.messages import Attachment
from hark.protocol.provider import EndChunk, TextChunk
from hark.providers.scripted import Hang
from hark.surfaces.chat.spoken_reply import Sentences
from tests.surfaces.chat.chat_fixture import ANN, HOME, TestChat, chatting
from tests.tools.context import living
from tests.voice.voice_fixture import moonshine, recording
from tests.waiting import until

SPEAK = {"speak": True}
PATIENCE_SECONDS = 60
REPLY = [TextChunk("It is noon. "), TextChunk("The sun shines."), EndChunk()]


def said_aloud(name: str) -> Written:
    data = base64.b64encode(recording("weather").data).decode()
    return Written(name, HOME, ANN, voice=Attachment("audio/ogg", data))


def voices(chat: TestChat) -> list[bytes]:
    return [one.message.voice for one in chat.shown if one.message.voice]


async def test_a_reply_to_a_voice_message_is_spoken_behind_its_text(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        moonshine(tmp_path) as ears,
        chatting(tmp_path, [REPLY, REPLY], ears=ears, voice=SPEAK) as (chat, _),
    ):
        await chat.put(said_aloud("v1"))
        await chat.until(lambda: bool(voices(chat)))
        assert voices(chat)[0].startswith(b"OggS")
        assert [one.message.text for one in chat.shown][-2:] == ["It is noon. The sun shines.", ""]
        await chat.write("and now in writing")
        await chat.until(lambda: chat.texts.count("It is noon. The sun shines.") == 2)
    assert len(voices(chat)) == 1


async def test_each_chat_says_whether_it_wants_to_hear_and_that_is_kept(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS), chatting(tmp_path, [REPLY]) as (chat, _):
        await chat.write("/voice sometimes")
        await chat.until(lambda: any("Say /voice on" in text for text in chat.texts))
        await chat.write("/voice on")
        await chat.until(lambda: any("Voice is on here" in text for text in chat.texts))
    async with asyncio.timeout(PATIENCE_SECONDS), chatting(tmp_path, [REPLY, REPLY]) as (chat, _):
        await chat.write("what time is it", "q1")
        await chat.until(lambda: bool(voices(chat)))
        await chat.write("/voice off", "q2")
        await chat.until(lambda: any("Voice is off here" in text for text in chat.texts))
        await chat.write("what time is it", "q3")
        await chat.until(lambda: chat.texts.count("It is noon. The sun shines.") == 2)
    assert len(voices(chat)) == 1


async def test_an_interrupt_cuts_the_voice_and_what_makes_it(tmp_path: Path) -> None:
    hang, ours = Hang(), this_process(tmp_path).home
    long = [TextChunk("This goes on and on. " * 20), hang]
    slow = {"speak_command": ["sh", "-c", "cat >/dev/null; sleep 1000"]}
    async with asyncio.timeout(PATIENCE_SECONDS), chatting(tmp_path, [long, REPLY], voice=slow) as (chat, _):
        await chat.write("/voice on")
        await chat.write("tell me a story")
        await hang.reached.wait()
        await until(lambda: any("sleep 1000" in command for command in living(ours).values()))
        await chat.write("stop")
        await chat.until(lambda: any("stopped" in text for text in chat.texts))
        await until(lambda: not any("sleep 1000" in command for command in living(ours).values()))
        assert voices(chat) == []


async def test_what_can_not_be_spoken_is_told_and_the_text_is_there(tmp_path: Path) -> None:
    dumb = {"speak_command": ["sh", "-c", "cat >/dev/null; echo no voice >&2"]}
    async with asyncio.timeout(PATIENCE_SECONDS), chatting(tmp_path, [REPLY], voice=dumb) as (chat, _):
        await chat.write("/voice on")
        await chat.write("what time is it")
        await chat.until(lambda: any("no voice" in text for text in chat.texts))
        assert "It is noon. The sun shines." in chat.texts


def test_sentences_are_whole_before_the_text_is() -> None:
    one = Sentences()
    pieces = ["Hel", "lo. How a", "re you? Lo", "ok:\n```py", "thon\nx = 1.\n`", "``\nThere. T", "he end"]
    assert [one.add(piece) for piece in pieces] == [
        [],
        ["Hello. "],
        ["How are you? "],
        ["Look:\n"],
        [],
        ["```python\nx = 1.\n```\n", "There. "],
        [],
    ]
    assert one.end() == ["The end"]
