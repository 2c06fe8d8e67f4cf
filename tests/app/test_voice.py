"""Spoken commands to a busy session, with real speech and the real engine, over HTTP."""

import statistics
import sys
import time
from pathlib import Path

from hark.app.voice import make_speaker, make_transcriber
from hark.processes.cookies import current_owner
from hark.processes.piped_process import create_spawner
from hark.voice.settings import VoiceSettings
from tests.fakes.models.behaviours import hanging
from tests.surfaces.web.web_fixture import run_web_server
from tests.tools.fake_context import find_processes
from tests.voice.voice_fixture import load_recording, open_moonshine
from tests.waiting import at_most

OGG = {"Content-Type": "audio/ogg"}


async def test_a_voice_message_interrupts_a_busy_session_with_the_right_transcript(tmp_path: Path) -> None:
    took: list[float] = []
    async with (
        open_moonshine(tmp_path) as transcriber,
        run_web_server(tmp_path, [hanging(1) for _ in range(6)], transcriber=transcriber) as world,
        world.events("demo") as events,
    ):
        await world.say("demo", "a long task")
        for number in range(5):
            await world.model.request(number + 1)
            began = time.perf_counter()
            path = f"/api/sessions/demo/voice?id=v{number}"
            status, receipt = await world.call("POST", path, data=load_recording("weather").data, headers=OGG)
            took.append(time.perf_counter() - began)
            assert (status, receipt["state"]) == (202, "interrupting")
            assert receipt["transcript"] == "What is the weather like in London today?"
            notice = await events.wait_for("notice")
            assert notice["text"] == '🎙️ "What is the weather like in London today?"'
        await world.model.request(6)
        _, stop = await world.call("POST", "/api/sessions/demo/voice", data=load_recording("stop").data, headers=OGG)
        assert (stop["state"], stop["transcript"]) == ("interrupting", "Stop.")
        await world.idle("demo")
        user_texts = [row["text"] for row in await world.messages("demo") if row["role"] == "user"]
    assert user_texts == ["a long task"] + ["What is the weather like in London today?"] * 5
    print(f"audio to receipt: p50 {statistics.median(took) * 1000:.0f} ms", file=sys.stderr)
    assert statistics.median(took) < at_most(5), took
    assert find_processes(current_owner(tmp_path).home) == {}


def test_voice_services_are_created_according_to_the_settings(tmp_path: Path) -> None:
    spawn = create_spawner(current_owner(tmp_path))
    made = [type(make_transcriber(VoiceSettings(stt=stt), spawn)).__name__ for stt in ("moonshine", "openai", "off")]
    assert made == ["Moonshine", "OpenAiSpeech", "NoneType"]
    assert make_speaker(VoiceSettings(), spawn) is not None
