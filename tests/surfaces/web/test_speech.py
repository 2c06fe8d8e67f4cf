"""Speech over HTTP: text is converted to WAV audio, and a disconnect ends the speech program."""

import asyncio
import io
import wave
from pathlib import Path

import aiohttp
import pytest

from hark.processes.cookies import current_owner
from tests.surfaces.web.web_fixture import run_web_server
from tests.tools.fake_context import find_processes
from tests.waiting import until

SPEECH = "/api/speech"


async def test_a_text_is_returned_as_one_wav_file_of_plausible_length(tmp_path: Path) -> None:
    async with run_web_server(tmp_path) as web:
        async with web.client.post(SPEECH, json={"text": "**Hello.** How are `you` today?"}) as answer:
            assert (answer.status, answer.content_type) == (200, "audio/wav")
            with wave.open(io.BytesIO(await answer.read())) as sound:
                seconds = sound.getnframes() / sound.getframerate()
        assert 0.5 < seconds < 20
        async with web.client.post(SPEECH, json={"text": "*** \n---\n"}) as answer:
            assert (answer.status, await answer.read()) == (204, b"")


@pytest.mark.parametrize(
    ("command", "message"),
    [(["sh", "-c", "cat >/dev/null; echo broken >&2"], "broken"), (["echo", "no sound"], "did not write a WAV")],
)
async def test_a_failed_speech_command_is_reported(tmp_path: Path, command: list[str], message: str) -> None:
    async with run_web_server(tmp_path, voice={"speak_command": command}) as web:
        status, answer = await web.call("POST", SPEECH, {"text": "Hello."})
        assert (status, answer["error"]["code"]) == (404, "no_speech")
        assert message in answer["error"]["message"]
        assert (await web.call("POST", SPEECH, {"text": "x" * 5_001}))[0] == 400
        assert (await web.call("POST", SPEECH, {"words": "Hello."}))[0] == 400


async def test_a_disconnect_ends_the_speech_command(tmp_path: Path) -> None:
    slow = {"speak_command": ["sh", "-c", "cat >/dev/null; sleep 1000"]}
    home = current_owner(tmp_path / "home").home
    async with asyncio.timeout(60), run_web_server(tmp_path, voice=slow) as web:
        request = asyncio.create_task(web.client.post(SPEECH, json={"text": "Hello."}))
        await until(lambda: any("sleep 1000" in command for command in find_processes(home).values()))
        request.cancel()
        with pytest.raises((asyncio.CancelledError, aiohttp.ClientError)):
            await request
        await until(lambda: not any("sleep 1000" in command for command in find_processes(home).values()))
