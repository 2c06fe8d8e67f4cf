"""Voice over HTTP: transcription, order with typed messages, and stops."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from hark.protocol.speech import Audio, SpeechError, Utterance
from tests.fakes.models.behaviours import echo, hanging
from tests.surfaces.web.web_fixture import run_web_server
from tests.waiting import until

VOICE = "/api/sessions/demo/voice"
OGG = {"Content-Type": "audio/ogg"}


class EchoTranscriber:
    """Returns the audio bytes as the transcript.

    `!` and invalid UTF-8 fail, `(for ever)` never ends, and audio that starts with `(slow)` waits for the gate.
    """

    def __init__(self) -> None:
        self.recordings: list[Audio] = []
        self.cancelled = 0
        self.gate = asyncio.Event()
        self._changed = asyncio.Event()

    async def wait_for_recordings(self, count: int) -> None:
        """Wait until this many recordings have arrived."""
        await until(lambda: len(self.recordings) >= count, changed=self._changed, shows=lambda: self.recordings)

    def warm_up(self) -> None:
        pass

    async def transcribe(self, audio: Audio, progress: Callable[[str], None] = lambda _: None) -> Utterance:
        self.recordings.append(audio)
        self._changed.set()
        if audio.data.startswith(b"(slow)"):
            await self.gate.wait()
        if audio.data == b"!":
            raise SpeechError("That is no audio.")
        if audio.data == b"(for ever)":
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                self.cancelled += 1
        try:
            return Utterance(audio.data.decode().strip())
        except UnicodeDecodeError as error:
            raise SpeechError("That is no audio.") from error

    async def close(self) -> None:
        pass


async def test_a_voice_message_is_transcribed_echoed_and_answered(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [echo()], transcriber=EchoTranscriber()) as web, web.events("demo") as events:
        status, receipt = await web.call("POST", f"{VOICE}?id=v1", data=b"what time is it", headers=OGG)
        assert status == 202
        assert receipt | {"turn": ""} == {
            "id": "v1",
            "session": "demo",
            "state": "started",
            "turn": "",
            "transcript": "what time is it",
        }
        notice = await events.wait_for("notice")
        assert notice["text"].startswith("🎙️")
        assert "what time is it" in notice["text"]
        end = await events.wait_for("turn.ended")
        assert end["outcome"]["text"] == "what time is it"


@pytest.mark.parametrize(("data", "reason"), [(b"!", "That is no audio."), (b" ", "No speech was recognised")])
async def test_a_failed_transcription_is_reported_and_its_recording_is_queued(
    tmp_path: Path, data: bytes, reason: str
) -> None:
    async with (
        run_web_server(tmp_path, [hanging(1), echo()], transcriber=EchoTranscriber()) as web,
        web.events("demo") as events,
    ):
        await web.say("demo", "long")
        await web.model.request(1)
        status, receipt = await web.call("POST", f"{VOICE}?id=v1", data=data, headers=OGG)
        assert (status, receipt["state"], receipt["transcript"]) == (202, "queued", "")
        notice = await events.wait_for("notice")
        assert notice["text"].startswith("🎙️")
        assert reason in notice["text"]
        (recording,) = (tmp_path / "home" / "voice").iterdir()
        _, answer = await web.call("GET", "/api/sessions/demo/queue")
        assert [item["id"] for item in answer["queue"]] == ["v1"]
        assert str(recording) in answer["queue"][0]["text"]
        assert str(recording) not in notice["text"]
        assert recording.read_bytes() == data


async def test_typed_and_voice_messages_stay_in_order(tmp_path: Path) -> None:
    ear = EchoTranscriber()
    async with run_web_server(tmp_path, None, transcriber=ear, delivery={"default": "queue"}) as web:
        slow = asyncio.create_task(web.call("POST", f"{VOICE}?id=v1", data=b"(slow) one", headers=OGG))
        await ear.wait_for_recordings(1)
        text = asyncio.create_task(web.say("demo", "two", id="t2"))
        quick = asyncio.create_task(web.call("POST", f"{VOICE}?id=v3", data=b"three", headers=OGG))
        await ear.wait_for_recordings(2)
        assert not text.done()
        ear.gate.set()
        await asyncio.gather(slow, text, quick)
        await web.idle("demo")
        prompts = [row["text"] for row in await web.messages("demo") if row["role"] == "user"]
    assert prompts == ["(slow) one", "two", "three"]


async def test_a_stop_withdraws_a_pending_recording_and_later_messages_start_no_turn(tmp_path: Path) -> None:
    ear = EchoTranscriber()
    async with run_web_server(tmp_path, [hanging(1)], transcriber=ear) as web:
        await web.say("demo", "long")
        await web.model.request(1)
        voice_request = asyncio.create_task(web.call("POST", VOICE, data=b"(for ever)", headers=OGG))
        await ear.wait_for_recordings(1)
        text = asyncio.create_task(web.say("demo", "behind it", id="t2"))
        await until(lambda: web.context.voice_inbox.pending_count("demo") >= 2)
        _, settled = await web.call("POST", "/api/sessions/demo/interrupt")
        assert settled["outcome"]["type"] == "interrupted"
        assert (await voice_request)[0] == 409
        receipt = await text
        await web.idle("demo")
        rows = await web.messages("demo")
        _, answer = await web.call("GET", "/api/sessions/demo/queue")
    assert receipt["state"] in ("held", "started")
    assert [row["text"] for row in rows if row["role"] == "user"] + [item["text"] for item in answer["queue"]] == [
        "long",
        "behind it",
    ]
    assert len(web.model.requests) == 1, "no model was asked after the stop"


async def test_a_spoken_stop_word_stops_the_turn_and_is_not_sent_as_a_message(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [hanging(1)], transcriber=EchoTranscriber()) as web:
        await web.say("demo", "long")
        await web.model.request(1)
        status, receipt = await web.call("POST", VOICE, data=b"Stop!", headers=OGG)
        assert (status, receipt["state"], receipt["transcript"]) == (202, "interrupting", "Stop!")
        await web.idle("demo")
        prompts = [row["text"] for row in await web.messages("demo") if row["role"] == "user"]
    assert prompts == ["long"]


async def test_a_repeated_recording_id_is_accepted_once(tmp_path: Path) -> None:
    ear = EchoTranscriber()
    async with run_web_server(tmp_path, None, transcriber=ear) as web:
        for state in ("started", "duplicate"):
            _, receipt = await web.call("POST", f"{VOICE}?id=v1", data=b"hello", headers=OGG)
            assert receipt["state"] == state
            await web.idle("demo")
    assert len(ear.recordings) == 1


async def test_a_stop_cancels_a_transcription(tmp_path: Path) -> None:
    ear = EchoTranscriber()
    async with run_web_server(tmp_path, transcriber=ear) as web:
        voice_request = asyncio.create_task(web.call("POST", VOICE, data=b"(for ever)", headers=OGG))
        await ear.wait_for_recordings(1)
        await web.call("POST", "/api/sessions/demo/interrupt")
        status, answer = await voice_request
        assert (status, answer["error"]["code"], ear.cancelled) == (409, "stopped", 1)
        assert await web.messages("demo") == []


async def test_a_voice_message_interrupts_the_running_turn(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [hanging(1), echo()], transcriber=EchoTranscriber()) as web:
        await web.say("demo", "long")
        await web.model.request(1)
        _, receipt = await web.call("POST", VOICE, data=b"instead this", headers=OGG)
        assert receipt["state"] == "interrupting"
        await web.idle("demo")
        assert (await web.messages("demo"))[-1]["text"] == "instead this"


async def test_invalid_voice_requests_are_refused(tmp_path: Path) -> None:
    async with run_web_server(tmp_path) as web:
        status, answer = await web.call("POST", VOICE, data=b"x", headers=OGG)
        assert (status, answer["error"]["code"]) == (404, "no_voice")
    async with run_web_server(tmp_path, transcriber=EchoTranscriber()) as web:
        for query, data, headers, expected in (
            ("", b"", OGG, 400),
            ("", b"x", {"Content-Type": "application/json"}, 415),
            ("?delivery=soon", b"x", OGG, 400),
            ("?id=" + "x" * 300, b"x", OGG, 400),
        ):
            assert (await web.call("POST", VOICE + query, data=data, headers=headers))[0] == expected
