"""Words spoken aloud over HTTP: as sound that a browser plays, by a program that ends with its listener."""

import asyncio
import io
import wave
from pathlib import Path

import aiohttp
import pytest

from hark.processes.cookies import this_process
from tests.surfaces.web.web_fixture import served
from tests.tools.context import living
from tests.waiting import until

SPEECH = "/api/speech"


async def test_a_text_is_spoken_as_one_wav_of_its_true_length(tmp_path: Path) -> None:
    async with served(tmp_path) as world:
        async with world.client.post(SPEECH, json={"text": "**Hello.** How are `you` today?"}) as answer:
            assert (answer.status, answer.content_type) == (200, "audio/wav")
            with wave.open(io.BytesIO(await answer.read())) as sound:
                seconds = sound.getnframes() / sound.getframerate()
        assert 0.5 < seconds < 20
        async with world.client.post(SPEECH, json={"text": "*** \n---\n"}) as answer:
            assert (answer.status, await answer.read()) == (204, b"")


@pytest.mark.parametrize(
    ("command", "words"),
    [(["sh", "-c", "cat >/dev/null; echo broken >&2"], "broken"), (["echo", "no sound"], "printed no WAV")],
)
async def test_what_can_not_be_spoken_is_told(tmp_path: Path, command: list[str], words: str) -> None:
    async with served(tmp_path, voice={"speak_command": command}) as world:
        status, told = await world.call("POST", SPEECH, {"text": "Hello."})
        assert (status, told["error"]["code"]) == (404, "no_speech")
        assert words in told["error"]["message"]
        assert (await world.call("POST", SPEECH, {"text": "x" * 5_001}))[0] == 400
        assert (await world.call("POST", SPEECH, {"words": "Hello."}))[0] == 400


async def test_a_listener_that_goes_away_ends_what_speaks(tmp_path: Path) -> None:
    slow = {"speak_command": ["sh", "-c", "cat >/dev/null; sleep 1000"]}
    ours = this_process(tmp_path / "home").home
    async with asyncio.timeout(60), served(tmp_path, voice=slow) as world:
        speaking = asyncio.create_task(world.client.post(SPEECH, json={"text": "Hello."}))
        await until(lambda: any("sleep 1000" in command for command in living(ours).values()))
        speaking.cancel()
        with pytest.raises((asyncio.CancelledError, aiohttp.ClientError)):
            await speaking
        await until(lambda: not any("sleep 1000" in command for command in living(ours).values()))
