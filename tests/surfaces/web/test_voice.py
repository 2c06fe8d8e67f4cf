"""Voice over HTTP: words before they reach the session, in their order, and ended by a stop."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from hark.protocol.speech import Audio, SpeechError, Utterance
from tests.fakes.models.behaviours import echo, hanging
from tests.surfaces.web.web_fixture import served
from tests.waiting import until

VOICE = "/api/sessions/demo/voice"
OGG = {"Content-Type": "audio/ogg"}


class Ear:
    """Hears what the bytes say: `words`, `` for silence, `!` for what nobody can understand, `(for ever)`,
    `(slow)` until the gate is open."""

    def __init__(self) -> None:
        self.heard: list[Audio] = []
        self.cancelled = 0
        self.gate = asyncio.Event()
        self._changed = asyncio.Event()

    async def until(self, count: int) -> None:
        """Return when so many recordings came."""
        await until(lambda: len(self.heard) >= count, changed=self._changed, shows=lambda: self.heard)

    def warm_up(self) -> None:
        pass

    async def transcribe(self, audio: Audio, progress: Callable[[str], None] = lambda _: None) -> Utterance:
        self.heard.append(audio)
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


@pytest.mark.parametrize(("data", "why"), [(b"!", "That is no audio."), (b" ", "No words were heard")])
async def test_what_has_no_words_is_told_and_queued_with_its_recording(tmp_path: Path, data: bytes, why: str) -> None:
    async with (
        served(tmp_path, [hanging(1), echo()], transcriber=Ear()) as world,
        world.events("demo") as events,
    ):
        await world.say("demo", "long")
        await world.model.request(1)
        status, receipt = await world.call("POST", f"{VOICE}?id=v1", data=data, headers=OGG)
        assert (status, receipt["state"], receipt["transcript"]) == (202, "queued", "")
        notice = await events.until("notice")
        assert notice["text"].startswith("🎙️")
        assert why in notice["text"]
        (kept,) = (tmp_path / "home" / "voice").iterdir()
        _, waiting = await world.call("GET", "/api/sessions/demo/queue")
        assert [item["id"] for item in waiting["queue"]] == ["v1"]
        assert str(kept) in waiting["queue"][0]["text"]
        assert str(kept) not in notice["text"]
        assert kept.read_bytes() == data


async def test_texts_and_recordings_keep_their_order(tmp_path: Path) -> None:
    ear = Ear()
    async with served(tmp_path, None, transcriber=ear, delivery={"default": "queue"}) as world:
        slow = asyncio.create_task(world.call("POST", f"{VOICE}?id=v1", data=b"(slow) one", headers=OGG))
        await ear.until(1)
        text = asyncio.create_task(world.say("demo", "two", id="t2"))
        quick = asyncio.create_task(world.call("POST", f"{VOICE}?id=v3", data=b"three", headers=OGG))
        await ear.until(2)
        assert not text.done()
        ear.gate.set()
        await asyncio.gather(slow, text, quick)
        await world.idle("demo")
        asked = [row["text"] for row in await world.messages("demo") if row["role"] == "user"]
    assert asked == ["(slow) one", "two", "three"]


async def test_a_stop_overtakes_and_what_waited_behind_the_recording_sets_nothing_off(tmp_path: Path) -> None:
    ear = Ear()
    async with served(tmp_path, [hanging(1)], transcriber=ear) as world:
        await world.say("demo", "long")
        await world.model.request(1)
        hearing = asyncio.create_task(world.call("POST", VOICE, data=b"(for ever)", headers=OGG))
        await ear.until(1)
        text = asyncio.create_task(world.say("demo", "behind it", id="t2"))
        await until(lambda: world.place.ingress.waiting("demo") >= 2)
        _, settled = await world.call("POST", "/api/sessions/demo/interrupt")
        assert settled["outcome"]["type"] == "interrupted"
        assert (await hearing)[0] == 409
        receipt = await text
        await world.idle("demo")
        rows = await world.messages("demo")
        _, waiting = await world.call("GET", "/api/sessions/demo/queue")
    assert receipt["state"] in ("held", "started")
    assert [row["text"] for row in rows if row["role"] == "user"] + [item["text"] for item in waiting["queue"]] == [
        "long",
        "behind it",
    ]
    assert len(world.model.requests) == 1, "no model was asked after the stop"


async def test_a_spoken_stop_word_stops_and_is_no_message(tmp_path: Path) -> None:
    async with served(tmp_path, [hanging(1)], transcriber=Ear()) as world:
        await world.say("demo", "long")
        await world.model.request(1)
        status, receipt = await world.call("POST", VOICE, data=b"Stop!", headers=OGG)
        assert (status, receipt["state"], receipt["transcript"]) == (202, "interrupting", "Stop!")
        await world.idle("demo")
        asked = [row["text"] for row in await world.messages("demo") if row["role"] == "user"]
    assert asked == ["long"]


async def test_the_same_recording_again_is_taken_once(tmp_path: Path) -> None:
    ear = Ear()
    async with served(tmp_path, None, transcriber=ear) as world:
        for state in ("started", "duplicate"):
            _, receipt = await world.call("POST", f"{VOICE}?id=v1", data=b"hello", headers=OGG)
            assert receipt["state"] == state
            await world.idle("demo")
    assert len(ear.heard) == 1


async def test_a_stop_ends_a_transcription(tmp_path: Path) -> None:
    ear = Ear()
    async with served(tmp_path, transcriber=ear) as world:
        hearing = asyncio.create_task(world.call("POST", VOICE, data=b"(for ever)", headers=OGG))
        await ear.until(1)
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
        assert (status, answer["error"]["code"]) == (404, "no_voice")
    async with served(tmp_path, transcriber=Ear()) as world:
        for query, data, headers, expected in (
            ("", b"", OGG, 400),
            ("", b"x", {"Content-Type": "application/json"}, 415),
            ("?delivery=soon", b"x", OGG, 400),
            ("?id=" + "x" * 300, b"x", OGG, 400),
        ):
            assert (await world.call("POST", VOICE + query, data=data, headers=headers))[0] == expected
