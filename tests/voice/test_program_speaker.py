"""Speech output with real programs."""

import asyncio
import shutil
from pathlib import Path

import anyio
import pytest

from hark.processes.cookies import current_owner
from hark.processes.piped_process import create_spawner
from hark.protocol.speech import Audio, SpeechError
from hark.voice.audio_files import join_as_ogg
from hark.voice.program_speaker import ProgramSpeaker
from hark.voice.settings import VoiceSettings
from tests.tools.fake_context import find_processes
from tests.voice.voice_fixture import normalize_text, open_moonshine
from tests.waiting import at_most, until


def make_speaker(home: Path, *command: str) -> ProgramSpeaker:
    return ProgramSpeaker(VoiceSettings(speak=True, speak_command=command), create_spawner(current_owner(home)))


async def test_reply_is_spoken_sentence_by_sentence_and_can_be_transcribed(tmp_path: Path) -> None:
    if shutil.which("espeak-ng") is None:
        pytest.fail("This test needs espeak-ng: apt-get install espeak-ng (macOS: brew install espeak-ng).")
    pieces = [
        piece async for piece in make_speaker(tmp_path).speak("Please run **all** the tests again. Send an email.")
    ]
    assert [(piece.data[:4], piece.media_type) for piece in pieces] == [(b"RIFF", "audio/wav")] * 2
    note = await join_as_ogg(pieces, create_spawner(current_owner(tmp_path)))
    assert (note.data[:4], note.media_type) == (b"OggS", "audio/ogg")
    async with open_moonshine(tmp_path) as transcriber:
        text = normalize_text((await transcriber.transcribe(note)).text)
    assert text.startswith("please run")
    assert "email" in text


async def test_user_program_gets_the_text_on_stdin_and_not_as_arguments(tmp_path: Path) -> None:
    own = make_speaker(tmp_path, "sh", "-c", "cat; echo $#")
    pieces = [piece.data async for piece in own.speak('It\'s "quoted" $(id) `id` \\n. -v --help!')]
    assert pieces == [b'It\'s "quoted" $(id) id \\n.\n0\n', b"-v --help!\n0\n"]


async def test_cancelling_kills_the_program_immediately(tmp_path: Path) -> None:
    mark = tmp_path / "started"
    slow = make_speaker(tmp_path, "sh", "-c", f"touch {mark}; trap '' TERM; sleep 1000")

    async def listen() -> None:
        async for _ in slow.speak("Never spoken."):
            raise AssertionError

    listening = asyncio.create_task(listen())
    await until(mark.exists)
    listening.cancel()
    with anyio.fail_after(at_most(2)):
        await asyncio.wait([listening])
    assert find_processes(current_owner(tmp_path).home) == {}


async def test_closing_the_generator_after_a_sentence_leaves_no_process_running(tmp_path: Path) -> None:
    speech = make_speaker(tmp_path, "cat").speak("One. Two. Three.")
    assert (await anext(speech)).data == b"One.\n"
    await speech.aclose()
    assert find_processes(current_owner(tmp_path).home) == {}


async def test_program_that_fails_is_named_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(SpeechError, match=r"no-such-program could not speak the reply: .*not found.*speak_command"):
        await anext(make_speaker(tmp_path, "no-such-program").speak("Hello."))
    with pytest.raises(SpeechError, match="false could not speak the reply: no reason given"):
        await anext(make_speaker(tmp_path, "false").speak("Hello."))


async def test_invalid_audio_cannot_become_a_voice_message(tmp_path: Path) -> None:
    with pytest.raises(SpeechError, match="Could not create the voice message"):
        await join_as_ogg([Audio(b"nonsense", "audio/wav")], create_spawner(current_owner(tmp_path)))
    with pytest.raises(SpeechError, match="Could not create the voice message"):
        await join_as_ogg([], create_spawner(current_owner(tmp_path)))
