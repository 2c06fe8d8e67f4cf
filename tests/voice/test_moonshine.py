"""The built-in speech recognition with real recordings and real processes."""

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

from hark.processes.cookies import current_owner
from hark.processes.piped_process import create_spawner
from hark.protocol.speech import Audio, SpeechError
from hark.voice.moonshine import Moonshine
from hark.voice.settings import VoiceSettings
from tests.tools.fake_context import find_processes, is_alive
from tests.voice.voice_fixture import (
    count_open_files,
    decode_samples,
    encode_audio,
    load_recording,
    long_recording,
    normalize_text,
    open_moonshine,
)
from tests.waiting import at_most, until

pytestmark = pytest.mark.time_limit(120, reason="a busy machine loads the speech model slowly")


async def test_transcripts_do_not_depend_on_earlier_recordings(tmp_path: Path) -> None:
    async with open_moonshine(tmp_path) as transcriber:
        assert find_processes(current_owner(tmp_path).home) == {}, "no process runs before it is needed"
        first = await transcriber.transcribe(load_recording("list"))
        assert normalize_text(first.text) == "stop that and list the files in the source folder instead"
        assert first.seconds == pytest.approx(4.4, abs=0.2)
        assert normalize_text((await transcriber.transcribe(load_recording("stop"))).text) == "stop"
        assert (
            normalize_text((await transcriber.transcribe(load_recording("weather"))).text)
            == "what is the weather like in london today"
        )
        assert await transcriber.transcribe(load_recording("list")) == first
        assert len(transcriber.pids) == 1, "the process is reused"


async def test_worker_can_be_started_before_the_first_recording(tmp_path: Path) -> None:
    async with open_moonshine(tmp_path) as transcriber:
        transcriber.warm_up()
        transcriber.warm_up()
        (pid,) = transcriber.pids
        assert normalize_text((await transcriber.transcribe(load_recording("stop"))).text) == "stop"
        assert transcriber.pids == {pid}


async def test_unusual_recordings_do_not_affect_the_next_transcript(tmp_path: Path) -> None:
    numpy: Any = import_module("numpy")
    speech = decode_samples(load_recording("list"))
    loud = (numpy.random.default_rng(0).standard_normal(48_000) * 12_000).clip(-32_000, 32_000).astype(numpy.int16)
    tone = (numpy.sin(numpy.arange(48_000) / 16_000 * 2 * numpy.pi * 440) * 16_000).astype(numpy.int16)
    odd = [
        encode_audio(speech[: len(speech) // 2]),
        encode_audio(loud),
        encode_audio(tone),
        encode_audio(speech[-4_000:]),
        Audio(b"nothing"),
    ]
    async with open_moonshine(tmp_path) as transcriber:
        expected = await transcriber.transcribe(load_recording("mail"))
        for one in odd:
            with contextlib.suppress(SpeechError):
                await transcriber.transcribe(one)
            assert await transcriber.transcribe(load_recording("mail")) == expected
        assert len(transcriber.pids) == 1


async def test_all_audio_formats_are_transcribed(tmp_path: Path) -> None:
    speech = decode_samples(load_recording("tests"))
    kinds = [
        encode_audio(speech, "wav", "pcm_s16le", 8_000),
        encode_audio(speech, "wav", "pcm_s24le", 48_000, "stereo"),
        encode_audio(speech, "webm", "libopus", 48_000, "stereo"),
        encode_audio(speech, "mp3", "libmp3lame", 44_100),
        encode_audio(speech, "mp4", "aac", 44_100),
        encode_audio(speech, "flac", "flac", 22_050),
    ]
    async with open_moonshine(tmp_path) as transcriber:
        for kind in kinds:
            text = normalize_text((await transcriber.transcribe(kind)).text)
            assert text.startswith("please run"), kind.media_type
            assert text.endswith("again"), kind.media_type


async def test_silence_and_noise_have_an_empty_transcript(tmp_path: Path) -> None:
    numpy: Any = import_module("numpy")
    noise = (numpy.random.default_rng(0).standard_normal(48_000) * 2_000).astype(numpy.int16)
    async with open_moonshine(tmp_path) as transcriber:
        assert (await transcriber.transcribe(encode_audio(numpy.zeros(48_000, numpy.int16)))).text == ""
        assert (await transcriber.transcribe(encode_audio(noise))).text == ""


async def test_invalid_recordings_are_rejected_without_affecting_later_ones(tmp_path: Path) -> None:
    secret = tmp_path / "secret.wav"
    secret.write_bytes(encode_audio(decode_samples(load_recording("mail"))).data)
    whole = load_recording("list").data
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
    async with open_moonshine(tmp_path) as transcriber:
        for bytes_ in hostile:
            with pytest.raises(SpeechError, match="could not be transcribed: it contains no sound"):
                await transcriber.transcribe(Audio(bytes_))
        with pytest.raises(SpeechError, match="is empty"):
            await transcriber.transcribe(Audio(b""))
        with pytest.raises(SpeechError, match="larger than 64 MB"):
            await transcriber.transcribe(Audio(bytes((64 << 20) + 1)))
        deaf = header + b"data" + struct.pack("<I", len(not_numbers)) + not_numbers
        assert (await transcriber.transcribe(Audio(deaf))).text == ""
        cut = await transcriber.transcribe(Audio(whole[: len(whole) * 2 // 3]))
        assert normalize_text(cut.text).startswith("stop"), "the readable part is transcribed"
        assert (
            normalize_text((await transcriber.transcribe(load_recording("mail"))).text) == "send an email to my brother"
        )


async def test_long_recording_is_transcribed_in_pieces_with_progress(tmp_path: Path) -> None:
    so_far: list[str] = []
    async with open_moonshine(tmp_path) as transcriber:
        utterance = await transcriber.transcribe(long_recording(60), so_far.append)
    assert utterance.seconds >= 60
    times = utterance.seconds // 5.5
    assert normalize_text(utterance.text).count("email to my brother") >= times - 1
    assert len(so_far) >= 3
    assert [len(text) for text in so_far] == sorted(len(text) for text in so_far)


async def test_cancelling_kills_only_the_worker_of_that_recording(tmp_path: Path) -> None:
    async with open_moonshine(tmp_path) as transcriber:
        under_way = anyio.Event()
        long = asyncio.create_task(transcriber.transcribe(long_recording(60), lambda _: under_way.set()))
        await under_way.wait()
        (pid,) = transcriber.pids
        others = [
            asyncio.create_task(transcriber.transcribe(load_recording(name))) for name in ("mail", "weather", "stop")
        ]
        await asyncio.sleep(0)
        long.cancel()
        with anyio.fail_after(at_most(1)):
            await asyncio.wait([long])
        assert long.cancelled()
        await until(lambda: not is_alive(pid))
        assert [normalize_text((await other).text) for other in others] == [
            "send an email to my brother",
            "what is the weather like in london today",
            "stop",
        ]


async def test_killed_worker_is_replaced(tmp_path: Path) -> None:
    async with open_moonshine(tmp_path) as transcriber:
        await transcriber.transcribe(load_recording("stop"))
        (idle,) = transcriber.pids
        os.kill(idle, signal.SIGKILL)
        assert (
            normalize_text((await transcriber.transcribe(load_recording("mail"))).text) == "send an email to my brother"
        )
        under_way = anyio.Event()
        long = asyncio.create_task(transcriber.transcribe(long_recording(20), lambda _: under_way.set()))
        await under_way.wait()
        (busy,) = transcriber.pids
        os.kill(busy, signal.SIGKILL)
        assert "email to my brother" in normalize_text((await long).text), "the recording is transcribed again"


async def test_idle_worker_exits_and_leaves_no_process_or_open_file(tmp_path: Path) -> None:
    files = count_open_files()
    async with open_moonshine(tmp_path, idle_seconds=0.05) as transcriber:
        assert normalize_text((await transcriber.transcribe(load_recording("stop"))).text) == "stop"
        await until(lambda: not transcriber.pids)
        await until(lambda: find_processes(current_owner(tmp_path).home) == {})
        await until(lambda: count_open_files() == files)


async def test_close_stops_workers_that_are_transcribing(tmp_path: Path) -> None:
    async with open_moonshine(tmp_path) as transcriber:
        under_way = anyio.Event()
        long = asyncio.create_task(transcriber.transcribe(long_recording(60), lambda _: under_way.set()))
        await under_way.wait()
        with anyio.fail_after(at_most(2)):
            await transcriber.close()
        assert find_processes(current_owner(tmp_path).home) == {}
        with pytest.raises(SpeechError):
            await long


HARK_SCRIPT = """
import asyncio, sys
from pathlib import Path
from tests.voice.voice_fixture import long_recording, open_moonshine
async def main():
    async with open_moonshine(Path(sys.argv[1])) as transcriber:
        await transcriber.transcribe(long_recording(120), lambda _: print(*transcriber.pids, flush=True))
asyncio.run(main())
"""


async def test_workers_exit_when_hark_is_killed(tmp_path: Path) -> None:
    hark = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HARK_SCRIPT, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert hark.stdout is not None
    pid = int(await hark.stdout.readline())
    hark.kill()
    await hark.wait()
    await until(lambda: not is_alive(pid))


async def test_language_other_than_english_is_rejected_with_a_hint(tmp_path: Path) -> None:
    transcriber = Moonshine(VoiceSettings(language="de"), create_spawner(current_owner(tmp_path)))
    with pytest.raises(SpeechError, match=r'English only.*"de".*stt = "openai"'):
        await transcriber.transcribe(load_recording("stop"))
