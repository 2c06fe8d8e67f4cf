"""The embedded speech recognition, with real speech and real processes."""

import asyncio
import contextlib
import os
import signal
import struct
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
import pytest

from hark.processes.cookies import this_process
from hark.processes.piped import spawner
from hark.protocol.speech import Audio, SpeechError
from hark.voice.moonshine import Moonshine
from hark.voice.settings import VoiceSettings
from tests.tools.context import is_living, living
from tests.voice.voice_fixture import long_recording, moonshine, open_files, packed, plain, recording, samples
from tests.waiting import at_most, until


async def test_what_is_said_is_heard_whatever_was_heard_before(tmp_path: Path) -> None:
    async with moonshine(tmp_path) as transcriber:
        assert living(this_process(tmp_path).home) == {}, "nothing runs before it is needed"
        first = await transcriber.transcribe(recording("list"))
        assert plain(first.text) == "stop that and list the files in the source folder instead"
        assert first.seconds == pytest.approx(4.4, abs=0.2)
        assert plain((await transcriber.transcribe(recording("stop"))).text) == "stop"
        assert (
            plain((await transcriber.transcribe(recording("weather"))).text)
            == "what is the weather like in london today"
        )
        assert await transcriber.transcribe(recording("list")) == first
        assert len(transcriber.pids) == 1, "and the process is kept warm"


async def test_it_can_be_ready_before_the_first_recording_comes(tmp_path: Path) -> None:
    async with moonshine(tmp_path) as transcriber:
        transcriber.warm_up()
        transcriber.warm_up()
        (pid,) = transcriber.pids
        assert plain((await transcriber.transcribe(recording("stop"))).text) == "stop"
        assert transcriber.pids == {pid}


async def test_nothing_of_one_recording_is_heard_in_the_next(tmp_path: Path) -> None:
    numpy: Any = import_module("numpy")
    speech = samples(recording("list"))
    loud = (numpy.random.default_rng(0).standard_normal(48_000) * 12_000).clip(-32_000, 32_000).astype(numpy.int16)
    tone = (numpy.sin(numpy.arange(48_000) / 16_000 * 2 * numpy.pi * 440) * 16_000).astype(numpy.int16)
    odd = [packed(speech[: len(speech) // 2]), packed(loud), packed(tone), packed(speech[-4_000:]), Audio(b"nothing")]
    async with moonshine(tmp_path) as transcriber:
        expected = await transcriber.transcribe(recording("mail"))
        for one in odd:
            with contextlib.suppress(SpeechError):
                await transcriber.transcribe(one)
            assert await transcriber.transcribe(recording("mail")) == expected
        assert len(transcriber.pids) == 1


async def test_all_kinds_of_recordings_are_understood(tmp_path: Path) -> None:
    speech = samples(recording("tests"))
    kinds = [
        packed(speech, "wav", "pcm_s16le", 8_000),
        packed(speech, "wav", "pcm_s24le", 48_000, "stereo"),
        packed(speech, "webm", "libopus", 48_000, "stereo"),
        packed(speech, "mp3", "libmp3lame", 44_100),
        packed(speech, "mp4", "aac", 44_100),
        packed(speech, "flac", "flac", 22_050),
    ]
    async with moonshine(tmp_path) as transcriber:
        for kind in kinds:
            text = plain((await transcriber.transcribe(kind)).text)
            assert text.startswith("please run"), kind.media_type
            assert text.endswith("again"), kind.media_type


async def test_silence_and_noise_are_no_words(tmp_path: Path) -> None:
    numpy: Any = import_module("numpy")
    noise = (numpy.random.default_rng(0).standard_normal(48_000) * 2_000).astype(numpy.int16)
    async with moonshine(tmp_path) as transcriber:
        assert (await transcriber.transcribe(packed(numpy.zeros(48_000, numpy.int16)))).text == ""
        assert (await transcriber.transcribe(packed(noise))).text == ""


async def test_what_is_no_recording_is_refused_and_hurts_nobody(tmp_path: Path) -> None:
    secret = tmp_path / "secret.wav"
    secret.write_bytes(packed(samples(recording("mail"))).data)
    whole = recording("list").data
    not_numbers = struct.pack("<f", float("nan")) * 16_000
    header = (
        b"RIFF"
        + struct.pack("<I", 36 + len(not_numbers))
        + b"WAVEfmt "
        + struct.pack("<IHHIIHH", 16, 3, 1, 16_000, 64_000, 4, 32)
    )
    hostile = [
        b"not a recording " * 1000,
        os.urandom(100_000),
        whole[:60],
        b"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nfile://" + str(secret).encode() + b"\n#EXT-X-ENDLIST\n",
        b"ffconcat version 1.0\nfile '" + str(secret).encode() + b"'\n",
    ]
    async with moonshine(tmp_path) as transcriber:
        for bytes_ in hostile:
            with pytest.raises(SpeechError, match="could not be transcribed: there is no sound in it"):
                await transcriber.transcribe(Audio(bytes_))
        with pytest.raises(SpeechError, match="is empty"):
            await transcriber.transcribe(Audio(b""))
        with pytest.raises(SpeechError, match="larger than 64 MB"):
            await transcriber.transcribe(Audio(bytes((64 << 20) + 1)))
        deaf = header + b"data" + struct.pack("<I", len(not_numbers)) + not_numbers
        assert (await transcriber.transcribe(Audio(deaf))).text == ""
        cut = await transcriber.transcribe(Audio(whole[: len(whole) * 2 // 3]))
        assert plain(cut.text).startswith("stop"), "what is there of a broken one"
        assert plain((await transcriber.transcribe(recording("mail"))).text) == "send an email to my brother"


async def test_a_long_recording_is_heard_in_pieces(tmp_path: Path) -> None:
    so_far: list[str] = []
    async with moonshine(tmp_path) as transcriber:
        utterance = await transcriber.transcribe(long_recording(60), so_far.append)
    assert utterance.seconds >= 60
    times = utterance.seconds // 5.5
    assert plain(utterance.text).count("email to my brother") >= times - 1
    assert len(so_far) >= 3
    assert [len(text) for text in so_far] == sorted(len(text) for text in so_far)


async def test_cancelling_ends_it_at_once_and_the_others_are_not_touched(tmp_path: Path) -> None:
    async with moonshine(tmp_path) as transcriber:
        under_way = anyio.Event()
        long = asyncio.create_task(transcriber.transcribe(long_recording(60), lambda _: under_way.set()))
        await under_way.wait()
        (pid,) = transcriber.pids
        others = [asyncio.create_task(transcriber.transcribe(recording(name))) for name in ("mail", "weather", "stop")]
        await asyncio.sleep(0)
        long.cancel()
        with anyio.fail_after(at_most(1)):
            await asyncio.wait([long])
        assert long.cancelled()
        await until(lambda: not is_living(pid))
        assert [plain((await other).text) for other in others] == [
            "send an email to my brother",
            "what is the weather like in london today",
            "stop",
        ]


async def test_a_process_that_was_killed_is_replaced(tmp_path: Path) -> None:
    async with moonshine(tmp_path) as transcriber:
        await transcriber.transcribe(recording("stop"))
        (idle,) = transcriber.pids
        os.kill(idle, signal.SIGKILL)
        assert plain((await transcriber.transcribe(recording("mail"))).text) == "send an email to my brother"
        under_way = anyio.Event()
        long = asyncio.create_task(transcriber.transcribe(long_recording(20), lambda _: under_way.set()))
        await under_way.wait()
        (busy,) = transcriber.pids
        os.kill(busy, signal.SIGKILL)
        assert "email to my brother" in plain((await long).text), "it is done again"


async def test_an_idle_process_ends_by_itself_and_leaves_nothing(tmp_path: Path) -> None:
    files = open_files()
    async with moonshine(tmp_path, idle_seconds=0.05) as transcriber:
        assert plain((await transcriber.transcribe(recording("stop"))).text) == "stop"
        await until(lambda: not transcriber.pids)
        await until(lambda: living(this_process(tmp_path).home) == {})
        await until(lambda: open_files() == files)


async def test_closing_ends_all_in_the_middle_of_their_work(tmp_path: Path) -> None:
    async with moonshine(tmp_path) as transcriber:
        under_way = anyio.Event()
        long = asyncio.create_task(transcriber.transcribe(long_recording(60), lambda _: under_way.set()))
        await under_way.wait()
        with anyio.fail_after(at_most(2)):
            await transcriber.close()
        assert living(this_process(tmp_path).home) == {}
        with pytest.raises(SpeechError):
            await long


HARK = """
import asyncio, sys
from pathlib import Path
from tests.voice.voice_fixture import long_recording, moonshine
async def main():
    async with moonshine(Path(sys.argv[1])) as transcriber:
        await transcriber.transcribe(long_recording(120), lambda _: print(*transcriber.pids, flush=True))
asyncio.run(main())
"""


async def test_when_hark_is_killed_its_speech_recognition_goes_with_it(tmp_path: Path) -> None:
    hark = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HARK, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert hark.stdout is not None
    pid = int(await hark.stdout.readline())
    hark.kill()
    await hark.wait()
    await until(lambda: not is_living(pid))


async def test_another_language_than_english_is_refused_with_a_way_out(tmp_path: Path) -> None:
    transcriber = Moonshine(VoiceSettings(language="de"), spawner(this_process(tmp_path)))
    with pytest.raises(SpeechError, match=r'English only.*"de".*stt = "openai"'):
        await transcriber.transcribe(recording("stop"))
