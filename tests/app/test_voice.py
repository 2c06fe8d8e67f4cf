"""Spoken commands to a session at work: real speech, the real engine."""

import statistics
import sys
import time
from pathlib import Path

import hark
from hark.app.mcp_processes import spawner
from hark.app.voice import make_ingress, make_speaker, make_transcriber
from hark.app.voice_listener import SessionListener, VoiceLine
from hark.protocol.hearing import Fate, VoiceNote
from hark.protocol.outcomes import Interrupted
from hark.protocol.receipts import ReceiptState
from hark.protocol.speech import Audio
from hark.providers.scripted import Hang, ScriptedProvider
from hark.tools.processes.cookies import this_process
from hark.voice.settings import VoiceSettings
from tests.tools.context import living
from tests.voice.world import plain, recording


def is_stop(text: str) -> bool:
    return plain(text) == "stop"


async def test_a_voice_message_interrupts_a_session_at_work_with_the_right_words(tmp_path: Path) -> None:
    hangs = [Hang() for _ in range(6)]
    provider = ScriptedProvider([[hang] for hang in hangs])
    shown: list[str] = []
    took: list[float] = []
    async with hark.open(home=tmp_path, routes=[{"provider": provider}], workspace=tmp_path) as agent:
        ingress = make_ingress(VoiceSettings(), tmp_path, spawner(this_process(tmp_path)))
        try:
            session = agent.session("demo")
            await session.say("a long task")
            for number, hang in enumerate(hangs[:5]):
                await hang.reached.wait()
                listener = SessionListener(session, VoiceLine(shown.append, is_stop), f"voice-{number}")
                began = time.perf_counter()
                heard = await ingress.hear(VoiceNote(f"voice-{number}", "demo", recording("weather")), listener).ended()
                took.append(time.perf_counter() - began)
                assert heard.fate is Fate.SAID
                assert heard.receipt is not None
                assert heard.receipt.state is ReceiptState.INTERRUPTING
                assert heard.receipt.transcript == "What is the weather like in London today?"
                await hang.closed.wait()
            await hangs[5].reached.wait()
            listener = SessionListener(session, VoiceLine(shown.append, is_stop), "voice-stop")
            stop = ingress.hear(VoiceNote("voice-stop", "demo", recording("stop")), listener)
            assert (await stop.ended()).fate is Fate.STOPPED
            assert await session.idle() == Interrupted("voice")
        finally:
            await ingress.close()
    assert shown == ['🎙️ "What is the weather like in London today?"'] * 5 + ['🎙️ "Stop."']
    print(f"audio to receipt: p50 {statistics.median(took) * 1000:.0f} ms", file=sys.stderr)
    assert statistics.median(took) < 5, took
    assert living(this_process(tmp_path).home) == {}


async def test_a_recording_without_words_is_queued_and_the_turn_goes_on(tmp_path: Path) -> None:
    hang = Hang()
    provider = ScriptedProvider([[hang]])
    shown: list[str] = []
    async with hark.open(home=tmp_path, routes=[{"provider": provider}], workspace=tmp_path) as agent:
        ingress = make_ingress(VoiceSettings(), tmp_path, spawner(this_process(tmp_path)))
        session = agent.session("demo")
        await session.say("a long task")
        await hang.reached.wait()
        listener = SessionListener(session, VoiceLine(shown.append, is_stop), "voice")
        heard = await ingress.hear(VoiceNote("voice", "demo", Audio(b"nonsense", "audio/ogg")), listener).ended()
        assert heard.receipt is not None
        assert heard.receipt.state is ReceiptState.QUEUED
        assert not hang.closed.is_set()
        (waiting,) = await session.queue()
        (kept,) = (tmp_path / "voice").iterdir()
        assert str(kept) in waiting.text
        assert shown[0].startswith("🎙️ The recording could not be transcribed")
        assert kept.name not in shown[0]
        await ingress.close()


def test_the_parts_are_what_the_settings_say(tmp_path: Path) -> None:
    spawn = spawner(this_process(tmp_path))
    made = [type(make_transcriber(VoiceSettings(stt=stt), spawn)).__name__ for stt in ("moonshine", "openai", "off")]
    assert made == ["Moonshine", "OpenAiSpeech", "NoneType"]
    assert make_speaker(VoiceSettings(), spawn) is None
    assert make_speaker(VoiceSettings(speak=True), spawn) is not None
