"""Voice over HTTP: words before they reach the session, in their order, and ended by a stop."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from hark.protocol.speech import Audio, SpeechError, Utterance
from tests.fakes.behaviours import echo, hanging
from tests.surfaces.web.world import served

VOICE = "/api/sessions/demo/voice"
OGG = {"Content-Type": "audio/ogg"}


class Ear:
    """Hears what the bytes say: `words`, `` for silence, `!` for what nobody can understand, `(for ever)`."""

    def __init__(self) -> None:
        self.heard: list[Audio] = []
        self.cancelled = 0

    async def transcribe(self, audio: Audio, progress: Callable[[str], None] = lambda _: None) -> Utterance:
        self.heard.append(audio)
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


async def test_speech_becomes_a_message_and_is_echoed(tmp_path: Path) -> None:
    async with served(tmp_path, [echo()], transcriber=Ear()) as world, world.events("demo") as events:
        status, receipt = await world.call("POST", f"{VOICE}?id=v1", data=b"what time is it", headers=OGG)
        assert status == 202
        assert receipt | {"turn": ""} == {
            "id": "v1",
            "session": "demo",
            "state": "started",
            "turn": "",
            "transcript": "what time is it",
        }
        notice = await events.until("notice")
        assert notice["text"].startswith("🎙️")
        assert "what time is it" in notice["text"]
        end = await events.until("turn.ended")
        assert end["outcome"]["text"] == "what time is it"


@pytest.mark.parametrize(("data", "code"), [(b"!", "not_understood"), (b" ", "silence")])
async def test_what_has_no_words_is_told_and_says_nothing(tmp_path: Path, data: bytes, code: str) -> None:
    async with served(tmp_path, transcriber=Ear()) as world, world.events("demo") as events:
        status, answer = await world.call("POST", VOICE, data=data, headers=OGG)
        assert (status, answer["error"]["code"]) == (422, code)
        assert (await events.until("notice"))["text"].startswith("🎙️")
        assert await world.messages("demo") == []


async def test_a_stop_ends_a_transcription(tmp_path: Path) -> None:
    ear = Ear()
    async with served(tmp_path, transcriber=ear) as world:
        hearing = asyncio.create_task(world.call("POST", VOICE, data=b"(for ever)", headers=OGG))
        while not ear.heard:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        await world.call("POST", "/api/sessions/demo/interrupt")
        status, answer = await hearing
        assert (status, answer["error"]["code"], ear.cancelled) == (409, "stopped", 1)
        assert await world.messages("demo") == []


async def test_voice_interrupts_a_running_turn(tmp_path: Path) -> None:
    async with served(tmp_path, [hanging(1), echo()], transcriber=Ear()) as world:
        await world.say("demo", "long")
        await world.model.request(1)
        _, receipt = await world.call("POST", VOICE, data=b"instead this", headers=OGG)
        assert receipt["state"] == "interrupting"
        await world.idle("demo")
        assert (await world.messages("demo"))[-1]["text"] == "instead this"


async def test_voice_that_can_not_be_taken(tmp_path: Path) -> None:
    async with served(tmp_path) as world:
        status, answer = await world.call("POST", VOICE, data=b"x", headers=OGG)
        assert (status, answer["error"]["code"]) == (501, "no_voice")
    async with served(tmp_path, transcriber=Ear()) as world:
        for query, data, headers, expected in (
            ("", b"", OGG, 400),
            ("", b"x", {"Content-Type": "application/json"}, 415),
            ("?delivery=soon", b"x", OGG, 400),
            ("?id=" + "x" * 300, b"x", OGG, 400),
        ):
            assert (await world.call("POST", VOICE + query, data=data, headers=headers))[0] == expected
