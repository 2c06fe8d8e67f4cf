"""Replies that are spoken, by real programs."""

import asyncio
import shutil
from pathlib import Path

import anyio
import pytest

from hark.processes.cookies import this_process
from hark.processes.piped import spawner
from hark.protocol.speech import Audio, SpeechError
from hark.voice.audio_files import join_as_ogg
from hark.voice.program_speaker import ProgramSpeaker
from hark.voice.settings import VoiceSettings
from tests.tools.context import living
from tests.voice.voice_fixture import moonshine, plain
from tests.waiting import at_most, until


def speaker(home: Path, *command: str) -> ProgramSpeaker:
    return ProgramSpeaker(VoiceSettings(speak=True, speak_command=command), spawner(this_process(home)))


async def test_a_reply_is_spoken_sentence_by_sentence_and_understood(tmp_path: Path) -> None:
    if shutil.which("espeak-ng") is None:
        pytest.fail("This test needs espeak-ng: apt-get install espeak-ng (macOS: brew install espeak-ng).")
    pieces = [piece async for piece in speaker(tmp_path).speak("Please run **all** the tests again. Send an email.")]
    assert [(piece.data[:4], piece.media_type) for piece in pieces] == [(b"RIFF", "audio/wav")] * 2
    note = await join_as_ogg(pieces, spawner(this_process(tmp_path)))
    assert (note.data[:4], note.media_type) == (b"OggS", "audio/ogg")
    async with moonshine(tmp_path) as transcriber:
        text = plain((await transcriber.transcribe(note)).text)
    assert text.startswith("please run")
    assert "email" in text


async def test_the_persons_own_program_gets_the_text_on_its_input_and_not_as_words(tmp_path: Path) -> None:
    own = speaker(tmp_path, "sh", "-c", "cat; echo $#")
    pieces = [piece.data async for piece in own.speak('It\'s "quoted" $(id) `id` \\n. -v --help!')]
    assert pieces == [b'It\'s "quoted" $(id) id \\n.\n0\n', b"-v --help!\n0\n"]


async def test_cutting_it_ends_the_program_at_once(tmp_path: Path) -> None:
    mark = tmp_path / "started"
    slow = speaker(tmp_path, "sh", "-c", f"touch {mark}; trap '' TERM; sleep 1000")

    async def listen() -> None:
        async for _ in slow.speak("Never heard."):
            raise AssertionError

    listening = asyncio.create_task(listen())
    await until(mark.exists)
    listening.cancel()
    with anyio.fail_after(at_most(2)):
        await asyncio.wait([listening])
    assert living(this_process(tmp_path).home) == {}


async def test_who_stops_listening_after_a_sentence_leaves_nothing_running(tmp_path: Path) -> None:
    speech = speaker(tmp_path, "cat").speak("One. Two. Three.")
    assert (await anext(speech)).data == b"One.\n"
    await speech.aclose()
    assert living(this_process(tmp_path).home) == {}


async def test_a_program_that_does_not_speak_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpeechError, match=r"by no-such-program.*not found.*speak_command"):
        await anext(speaker(tmp_path, "no-such-program").speak("Hello."))
    with pytest.raises(SpeechError, match="by false: it does not say why"):
        await anext(speaker(tmp_path, "false").speak("Hello."))


async def test_what_is_no_sound_can_not_become_a_voice_message(tmp_path: Path) -> None:
    with pytest.raises(SpeechError, match="can't be made"):
        await join_as_ogg([Audio(b"nonsense", "audio/wav")], spawner(this_process(tmp_path)))
    with pytest.raises(SpeechError, match="can't be made"):
        await join_as_ogg([], spawner(this_process(tmp_path)))
