"""Spoken commands to a session at work: real speech, the real engine, over HTTP."""

import statistics
import sys
import time
from pathlib import Path

from hark.app.voice import make_speaker, make_transcriber
from hark.processes.cookies import this_process
from hark.processes.piped import spawner
from hark.voice.settings import VoiceSettings
from tests.fakes.models.behaviours import hanging
from tests.surfaces.web.web_fixture import served
from tests.tools.context import living
from tests.voice.voice_fixture import moonshine, recording
from tests.waiting import at_most

OGG = {"Content-Type": "audio/ogg"}


async def test_a_voice_message_interrupts_a_session_at_work_with_the_right_words(tmp_path: Path) -> None:
    took: list[float] = []
    async with (
        moonshine(tmp_path) as ears,
        served(tmp_path, [hanging(1) for _ in range(6)], transcriber=ears) as world,
        world.events("demo") as events,
    ):
        await world.say("demo", "a long task")
        for number in range(5):
            await world.model.request(number + 1)
            began = time.perf_counter()
            path = f"/api/sessions/demo/voice?id=v{number}"
            status, receipt = await world.call("POST", path, data=recording("weather").data, headers=OGG)
            took.append(time.perf_counter() - began)
            assert (status, receipt["state"]) == (202, "interrupting")
            assert receipt["transcript"] == "What is the weather like in London today?"
            shown = await events.until("notice")
            assert shown["text"] == '🎙️ "What is the weather like in London today?"'
        await world.model.request(6)
        _, stop = await world.call("POST", "/api/sessions/demo/voice", data=recording("stop").data, headers=OGG)
        assert (stop["state"], stop["transcript"]) == ("interrupting", "Stop.")
        await world.idle("demo")
        said = [row["text"] for row in await world.messages("demo") if row["role"] == "user"]
    assert said == ["a long task"] + ["What is the weather like in London today?"] * 5
    print(f"audio to receipt: p50 {statistics.median(took) * 1000:.0f} ms", file=sys.stderr)
    assert statistics.median(took) < at_most(5), took
    assert living(this_process(tmp_path).home) == {}


def test_the_parts_are_what_the_settings_say(tmp_path: Path) -> None:
    spawn = spawner(this_process(tmp_path))
    made = [type(make_transcriber(VoiceSettings(stt=stt), spawn)).__name__ for stt in ("moonshine", "openai", "off")]
    assert made == ["Moonshine", "OpenAiSpeech", "NoneType"]
    assert make_speaker(VoiceSettings(), spawn) is not None
