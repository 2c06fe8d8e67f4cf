"""The inbox for voice messages keeps them in order, processes each once and loses none. A stop never waits."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import anyio
import pytest

from hark.protocol.meaning import Meaning, MessageMeaning, StopMeaning
from hark.protocol.receipts import Receipt, ReceiptState
from hark.protocol.session import Session
from hark.protocol.speech import Audio, SpeechError, Transcriber, Utterance
from hark.protocol.voice_messages import VoiceNote, VoiceOutcome
from hark.voice.inbox import TranscribingVoiceInbox
from hark.voice.pending_recordings import PendingRecordings
from hark.voice.settings import VoiceSettings
from hark.voice.voice_message_delivery import VoiceMessageDelivery
from tests.voice.voice_fixture import load_recording, normalize_text, open_moonshine
from tests.waiting import until


class FakeVoiceClient:
    """A fake voice client and session in one, which records the calls in order."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.queued: list[str] = []
        self.error: Exception | None = None

    @property
    def session(self) -> Session:
        return cast("Session", self)

    def interpret(self, text: str) -> Meaning:
        return StopMeaning() if normalize_text(text) == "stop" else MessageMeaning(text)

    def show(self, text: str) -> None:
        self.calls.append(f"show {text}")

    async def say(self, text: str, *, is_stopped: bool = False) -> Receipt:
        if self.error is not None:
            raise self.error
        await asyncio.sleep(0)
        self.calls.append(f"say {text}{' (stopped)' if is_stopped else ''}")
        return Receipt("id", "session", ReceiptState.STARTED)

    async def queue(self, text: str) -> Receipt:
        self.calls.append("queue")
        self.queued.append(text)
        return Receipt("id", "session", ReceiptState.QUEUED)

    async def interrupt(self, source: str = "voice") -> None:
        self.calls.append("interrupt")
        await asyncio.sleep(0)

    async def withdraw(self) -> None:
        await asyncio.sleep(0)

    def make_sender(self, text: str) -> Callable[[bool], "asyncio.Future[Receipt]"]:
        return lambda is_stopped: asyncio.ensure_future(self.say(text, is_stopped=is_stopped))


class FakeTranscriber:
    """A fake transcriber controlled by the test. A recording's bytes are its transcript."""

    def __init__(self, *blocked: str) -> None:
        self.started: list[str] = []
        self.cancelled: list[str] = []
        self.release = {word: anyio.Event() for word in blocked}
        self.is_closed = False

    def warm_up(self) -> None:
        pass

    async def transcribe(self, audio: Audio, progress: Callable[[str], None] = lambda _: None) -> Utterance:
        words = audio.data.decode()
        self.started.append(words)
        try:
            if words in self.release:
                await self.release[words].wait()
        except asyncio.CancelledError:
            self.cancelled.append(words)
            raise
        if words.startswith("broken"):
            raise SpeechError("The recording is broken. Send it again.")
        return Utterance(words)

    async def close(self) -> None:
        self.is_closed = True


@asynccontextmanager
async def open_inbox(
    home: Path, transcriber: Transcriber | None, settings: VoiceSettings | None = None
) -> AsyncGenerator[TranscribingVoiceInbox]:
    inbox = TranscribingVoiceInbox(transcriber, PendingRecordings(home / "voice"), settings or VoiceSettings())
    try:
        yield inbox
    finally:
        await inbox.close()
        if transcriber is not None:
            await transcriber.close()


def voice_note(text: str, id_: str = "", conversation: str = "a") -> VoiceNote:
    return VoiceNote(id_ or text, conversation, Audio(text.encode(), "audio/ogg"), {"chat": "1"})


def stored_files(home: Path) -> list[Path]:
    return sorted((home / "voice").iterdir()) if (home / "voice").exists() else []


def stored_count(home: Path) -> int:
    return sum(file.suffix == ".json" for file in stored_files(home))


async def test_voice_message_is_stored_echoed_and_sent_and_its_recording_is_deleted(tmp_path: Path) -> None:
    client, transcriber = FakeVoiceClient(), FakeTranscriber("list the files")
    async with open_inbox(tmp_path, transcriber) as inbox:
        delivery = inbox.accept(voice_note("list the files"), client)
        await until(lambda: stored_count(tmp_path) == 1)
        assert len(stored_files(tmp_path)) == 2
        assert all(file.stat().st_mode & 0o077 == 0 for file in stored_files(tmp_path))
        transcriber.release["list the files"].set()
        result = await delivery.result()
        assert (result.outcome, result.text) == (VoiceOutcome.SAID, "list the files")
        assert result.receipt == Receipt("id", "session", ReceiptState.STARTED)
    assert client.calls == ['show 🎙️ "list the files"', "say list the files"]
    assert stored_files(tmp_path) == []
    assert transcriber.is_closed


async def test_recording_withdrawn_just_as_its_transcript_is_ready_is_not_sent(tmp_path: Path) -> None:
    client, withdrawn = FakeVoiceClient(), list[bool]()

    class WithdrawingTranscriber(FakeTranscriber):
        async def transcribe(self, audio: Audio, progress: Callable[[str], None] = lambda _: None) -> Utterance:
            asyncio.get_running_loop().call_soon(lambda: withdrawn.append(inbox.withdraw("a", "v")))
            return await super().transcribe(audio, progress)

    async with open_inbox(tmp_path, WithdrawingTranscriber()) as inbox:
        result = await inbox.accept(voice_note("hello", "v"), client).result()
    assert withdrawn == [True]
    assert result.outcome is VoiceOutcome.WITHDRAWN
    assert "say hello" not in client.calls


async def test_transcript_is_not_shown_when_echo_is_off(tmp_path: Path) -> None:
    client = FakeVoiceClient()
    async with open_inbox(tmp_path, FakeTranscriber(), VoiceSettings(echo=False)) as inbox:
        await inbox.accept(voice_note("hello"), client).result()
    assert client.calls == ["say hello"]


async def test_turn_is_stopped_when_a_voice_message_arrives_if_the_hold_setting_is_on(tmp_path: Path) -> None:
    client, transcriber = FakeVoiceClient(), FakeTranscriber("hello")
    async with open_inbox(tmp_path, transcriber, VoiceSettings(hold=True)) as inbox:
        delivery = inbox.accept(voice_note("hello"), client)
        await until(lambda: client.calls == ["interrupt"])
        transcriber.release["hello"].set()
        await delivery.result()
    assert client.calls == ["interrupt", 'show 🎙️ "hello"', "say hello"]


async def test_ten_voice_messages_and_text_messages_stay_in_order(tmp_path: Path) -> None:
    client, transcriber = FakeVoiceClient(), FakeTranscriber(*(f"voice {number}" for number in range(10)))
    async with open_inbox(tmp_path, transcriber) as inbox, anyio.create_task_group() as tasks:
        deliveries: list[VoiceMessageDelivery] = []
        for number in range(10):
            deliveries.append(inbox.accept(voice_note(f"voice {number}"), client))
            tasks.start_soon(inbox.send_in_order, "a", client.make_sender(f"text {number}"))
            await asyncio.sleep(0)
        await until(lambda: len(transcriber.started) == 10)
        other = FakeVoiceClient()
        await inbox.send_in_order("b", other.make_sender("elsewhere"))
        assert other.calls == ["say elsewhere"], "another conversation does not wait"
        for number in reversed(range(10)):
            transcriber.release[f"voice {number}"].set()
        for delivery in deliveries:
            await delivery.result()
    assert [event for event in client.calls if event.startswith("say")] == [
        f"say {kind} {number}" for number in range(10) for kind in ("voice", "text")
    ]
    assert [event for event in client.calls if event.startswith("show")] == [
        f'show 🎙️ "voice {number}"' for number in range(10)
    ]


async def test_text_message_is_sent_immediately_when_no_voice_message_is_pending(tmp_path: Path) -> None:
    client = FakeVoiceClient()
    async with open_inbox(tmp_path, FakeTranscriber()) as inbox:
        assert (await inbox.send_in_order("a", client.make_sender("hello"))).state is ReceiptState.STARTED


async def test_message_order_is_preserved_when_a_text_message_is_cancelled(tmp_path: Path) -> None:
    client, transcriber = FakeVoiceClient(), FakeTranscriber("one")
    async with open_inbox(tmp_path, transcriber) as inbox:
        first = inbox.accept(voice_note("one"), client)
        second = asyncio.create_task(inbox.send_in_order("a", client.make_sender("two")))
        third = asyncio.create_task(inbox.send_in_order("a", client.make_sender("three")))
        await asyncio.sleep(0.01)
        second.cancel()
        await asyncio.wait([second])
        assert client.calls == []
        transcriber.release["one"].set()
        await first.result()
        await third
    assert client.calls[-2:] == ["say one", "say three"]


async def test_stop_takes_effect_immediately_and_withdraws_messages_that_are_not_transcribed_yet(
    tmp_path: Path,
) -> None:
    client, transcriber = FakeVoiceClient(), FakeTranscriber("one", "two")
    async with open_inbox(tmp_path, transcriber) as inbox:
        one = inbox.accept(voice_note("one"), client)
        text = asyncio.create_task(inbox.send_in_order("a", client.make_sender("between")))
        elsewhere = inbox.accept(voice_note("two", conversation="b"), client)
        await until(lambda: len(transcriber.started) == 2)

        async def interrupt() -> str:
            await client.interrupt()
            return "settled"

        assert await inbox.stop("a", interrupt) == "settled"
        assert (await one.result()).outcome is VoiceOutcome.WITHDRAWN
        await text
        assert transcriber.cancelled == ["one"]
        shown = "show 🎙️ Stopped. The voice message was not transcribed and was not sent."
        assert client.calls == ["interrupt", shown, "say between (stopped)"]
        transcriber.release["two"].set()
        assert (await elsewhere.result()).outcome is VoiceOutcome.SAID, "another conversation continues"
        await inbox.stop("a", interrupt)
        assert client.calls.count("interrupt") == 2
    assert stored_files(tmp_path) == []


async def test_spoken_stop_overtakes_a_long_recording_and_later_messages_are_sent(tmp_path: Path) -> None:
    client, transcriber = FakeVoiceClient(), FakeTranscriber("a long story", "next")
    async with open_inbox(tmp_path, transcriber) as inbox:
        story = inbox.accept(voice_note("a long story"), client)
        await until(lambda: transcriber.started == ["a long story"])
        stop = inbox.accept(voice_note("Stop."), client)
        after = inbox.accept(voice_note("next"), client)
        assert (await stop.result()).outcome is VoiceOutcome.STOPPED
        assert (await story.result()).outcome is VoiceOutcome.WITHDRAWN
        transcriber.release["next"].set()
        assert (await after.result()).outcome is VoiceOutcome.SAID
    assert client.calls[:2] == ['show 🎙️ "Stop."', "interrupt"]
    assert client.calls[-1] == "say next"
    assert stored_files(tmp_path) == []


@pytest.mark.parametrize(
    ("words", "notice"),
    [
        ("broken", "The recording is broken. Send it again."),
        ("", "No speech was recognised in the recording. Record it again or type your message."),
    ],
)
async def test_failed_transcription_is_reported_and_the_recording_is_queued(
    tmp_path: Path, words: str, notice: str
) -> None:
    client = FakeVoiceClient()
    async with open_inbox(tmp_path, FakeTranscriber()) as inbox:
        result = await inbox.accept(voice_note(words, "7"), client).result()
        assert (result.outcome, result.text) == (VoiceOutcome.LOST, "")
        await inbox.send_in_order("a", client.make_sender("later"))
        assert list(inbox.unfinished_notes()) == []
    assert client.calls == [f"show 🎙️ {notice}", "queue", "say later"]
    (stored,) = stored_files(tmp_path)
    assert stored.read_bytes() == words.encode()
    assert stored.suffix == ".ogg"
    assert str(stored) in client.queued[0]
    assert str(stored) not in notice


async def test_recording_is_stored_when_voice_is_off(tmp_path: Path) -> None:
    client = FakeVoiceClient()
    async with open_inbox(tmp_path, None, VoiceSettings(stt="off")) as inbox:
        assert (await inbox.accept(voice_note("hello"), client).result()).outcome is VoiceOutcome.LOST
    assert 'stt = "off"' in client.calls[0]


async def test_redelivered_message_is_processed_once(tmp_path: Path) -> None:
    client, transcriber = FakeVoiceClient(), FakeTranscriber("hello")
    async with open_inbox(tmp_path, transcriber) as inbox:
        first, second = inbox.accept(voice_note("hello"), client), inbox.accept(voice_note("hello"), client)
        assert first is second
        transcriber.release["hello"].set()
        await second.result()
    assert client.calls == ['show 🎙️ "hello"', "say hello"]


async def test_unsent_voice_messages_are_transcribed_at_the_next_start(tmp_path: Path) -> None:
    client, transcriber = FakeVoiceClient(), FakeTranscriber("one", "../../two")
    async with open_inbox(tmp_path, transcriber) as inbox:
        deliveries = [inbox.accept(voice_note("one"), client), inbox.accept(voice_note("../../two"), client)]
        await until(lambda: stored_count(tmp_path) == 2)
    for delivery in deliveries:
        with pytest.raises(SpeechError, match="next start"):
            await delivery.result()
    assert client.calls == []
    assert {file.suffix for file in stored_files(tmp_path)} == {".json", ".ogg"}, "an id is not used as a path"
    async with open_inbox(tmp_path, FakeTranscriber()) as again:
        left = list(again.unfinished_notes())
        assert [(stored.id, stored.conversation, stored.about) for stored in left] == [
            ("one", "a", {"chat": "1"}),
            ("../../two", "a", {"chat": "1"}),
        ]
        for stored in left:
            await again.accept(stored, client).result()
        assert list(again.unfinished_notes()) == []
    assert client.calls[1::2] == ["say one", "say ../../two"]


async def test_message_that_cannot_be_sent_stays_stored_and_does_not_block_others(tmp_path: Path) -> None:
    client, broken = FakeVoiceClient(), FakeVoiceClient()
    broken.error = RuntimeError("no store")
    async with open_inbox(tmp_path, FakeTranscriber()) as inbox:
        delivery = inbox.accept(voice_note("one"), broken)
        with pytest.raises(RuntimeError, match="no store"):
            await delivery.result()
        await inbox.send_in_order("a", client.make_sender("two"))
        assert [stored.id for stored in inbox.unfinished_notes()] == ["one"]
    assert client.calls == ["say two"]


async def test_message_that_cannot_be_stored_is_not_accepted(tmp_path: Path) -> None:
    (tmp_path / "voice").write_text("a file instead of the folder")
    client = FakeVoiceClient()
    async with open_inbox(tmp_path, FakeTranscriber()) as inbox:
        delivery = inbox.accept(voice_note("one"), client)
        with pytest.raises(SpeechError, match="can't be stored"):
            await delivery.result()
        await inbox.send_in_order("a", client.make_sender("two"))
    assert client.calls[0].startswith("show 🎙️ The voice message can't be stored")
    assert client.calls[1:] == ["say two"]


async def test_processing_continues_when_the_caller_stops_waiting(tmp_path: Path) -> None:
    client, transcriber = FakeVoiceClient(), FakeTranscriber("hello")
    async with open_inbox(tmp_path, transcriber) as inbox:
        delivery = inbox.accept(voice_note("hello"), client)
        with anyio.move_on_after(0.01):
            await delivery.result()
        transcriber.release["hello"].set()
        assert (await delivery.result()).outcome is VoiceOutcome.SAID


async def test_real_speech_stays_in_order_with_text_messages_and_a_spoken_stop(tmp_path: Path) -> None:
    client = FakeVoiceClient()
    names = ("mail", "tests", "weather", "mail", "tests")
    async with (
        open_moonshine(tmp_path) as transcriber,
        open_inbox(tmp_path, transcriber) as inbox,
        anyio.create_task_group() as tasks,
    ):
        for number, name in enumerate(names):
            inbox.accept(VoiceNote(str(number), "a", load_recording(name)), client)
            tasks.start_soon(inbox.send_in_order, "a", client.make_sender(f"text {number}"))
            await asyncio.sleep(0)
        await inbox.send_in_order("a", client.make_sender("last"))
        assert [normalize_text(event).split()[1] for event in client.calls if event.startswith("say")] == [
            *("send", "text", "please", "text", "what", "text", "send", "text", "please", "text"),
            "last",
        ]
        assert (
            await inbox.accept(VoiceNote("9", "a", load_recording("stop")), client).result()
        ).outcome is VoiceOutcome.STOPPED
    assert client.calls[-2:] == ['show 🎙️ "Stop."', "interrupt"]
