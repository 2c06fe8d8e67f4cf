"""The way of voice messages: in order, once, never lost, and a stop never waits."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from hark.protocol.receipts import Receipt, ReceiptState
from hark.protocol.speech import Audio, SpeechError, Transcriber, Utterance
from hark.protocol.voice_messages import Fate, VoiceNote
from hark.voice.delivery import NoteHearing
from hark.voice.inbox import VoiceIngress
from hark.voice.pending_recordings import PendingRecordings
from hark.voice.settings import VoiceSettings
from tests.voice.voice_fixture import moonshine, plain, recording
from tests.waiting import until


class Chat:
    """A place that voice messages come from: writes down what happens, in order."""

    def __init__(self) -> None:
        self.happened: list[str] = []
        self.queued: list[str] = []
        self.error: Exception | None = None

    def is_stop(self, text: str) -> bool:
        return plain(text) == "stop"

    def echo(self, text: str) -> None:
        self.happened.append(f"echo {text}")

    def progress(self, text: str) -> None:
        self.happened.append(f"progress {text}")

    def tell(self, text: str) -> None:
        self.happened.append(f"tell {text}")

    async def say(self, text: str, *, is_stopped: bool = False) -> Receipt:
        if self.error is not None:
            raise self.error
        await asyncio.sleep(0)
        self.happened.append(f"say {text}{' (stopped)' if is_stopped else ''}")
        return Receipt("id", "session", ReceiptState.STARTED)

    async def queue(self, text: str) -> Receipt:
        self.happened.append("queue")
        self.queued.append(text)
        return Receipt("id", "session", ReceiptState.QUEUED)

    async def interrupt(self) -> None:
        self.happened.append("interrupt")
        await asyncio.sleep(0)

    async def withdraw(self) -> None:
        await asyncio.sleep(0)

    def text(self, text: str) -> Callable[[bool], "asyncio.Future[Receipt]"]:
        return lambda is_stopped: asyncio.ensure_future(self.say(text, is_stopped=is_stopped))


class Ears:
    """Transcribes what the test says it does, when the test says so. A recording's bytes are its words."""

    def __init__(self, *held: str) -> None:
        self.started: list[str] = []
        self.cancelled: list[str] = []
        self.free = {word: anyio.Event() for word in held}
        self.is_closed = False

    def warm_up(self) -> None:
        pass

    async def transcribe(self, audio: Audio, progress: Callable[[str], None] = lambda _: None) -> Utterance:
        words = audio.data.decode()
        self.started.append(words)
        try:
            if words in self.free:
                await self.free[words].wait()
        except asyncio.CancelledError:
            self.cancelled.append(words)
            raise
        if words.startswith("broken"):
            raise SpeechError("It is broken. Mend it.")
        return Utterance(words)

    async def close(self) -> None:
        self.is_closed = True


@asynccontextmanager
async def ingress(
    home: Path, ears: Transcriber | None, settings: VoiceSettings | None = None
) -> AsyncGenerator[VoiceIngress]:
    opened = VoiceIngress(ears, PendingRecordings(home / "voice"), settings or VoiceSettings())
    try:
        yield opened
    finally:
        await opened.close()
        if ears is not None:
            await ears.close()


def note(words: str, id_: str = "", line: str = "a") -> VoiceNote:
    return VoiceNote(id_ or words, line, Audio(words.encode(), "audio/ogg"), {"chat": "1"})


def files(home: Path) -> list[Path]:
    return sorted((home / "voice").iterdir()) if (home / "voice").exists() else []


async def test_a_voice_message_is_kept_echoed_and_said_and_its_recording_is_gone(tmp_path: Path) -> None:
    chat, ears = Chat(), Ears("list the files")
    async with ingress(tmp_path, ears) as way:
        hearing = way.hear(note("list the files"), chat)
        await hearing.kept()
        assert len(files(tmp_path)) == 2
        assert all(file.stat().st_mode & 0o077 == 0 for file in files(tmp_path))
        ears.free["list the files"].set()
        heard = await hearing.ended()
        assert (heard.fate, heard.text) == (Fate.SAID, "list the files")
        assert heard.receipt == Receipt("id", "session", ReceiptState.STARTED)
    assert chat.happened == ['echo 🎙️ "list the files"', "say list the files"]
    assert files(tmp_path) == []
    assert ears.is_closed


async def test_a_withdrawal_at_the_moment_the_words_come_is_kept_as_promised(tmp_path: Path) -> None:
    chat, withdrawn = Chat(), list[bool]()

    class LateEars(Ears):
        async def transcribe(self, audio: Audio, progress: Callable[[str], None] = lambda _: None) -> Utterance:
            asyncio.get_running_loop().call_soon(lambda: withdrawn.append(way.withdraw("a", "v")))
            return await super().transcribe(audio, progress)

    async with ingress(tmp_path, LateEars()) as way:
        heard = await way.hear(note("hello", "v"), chat).ended()
    assert withdrawn == [True]
    assert heard.fate is Fate.WITHDRAWN
    assert "say hello" not in chat.happened


async def test_without_echo_it_is_only_said(tmp_path: Path) -> None:
    chat = Chat()
    async with ingress(tmp_path, Ears(), VoiceSettings(echo=False)) as way:
        await way.hear(note("hello"), chat).ended()
    assert chat.happened == ["say hello"]


async def test_with_hold_the_turn_is_stopped_before_the_words_are_known(tmp_path: Path) -> None:
    chat, ears = Chat(), Ears("hello")
    async with ingress(tmp_path, ears, VoiceSettings(hold=True)) as way:
        hearing = way.hear(note("hello"), chat)
        await until(lambda: chat.happened == ["interrupt"])
        ears.free["hello"].set()
        await hearing.ended()
    assert chat.happened == ["interrupt", 'echo 🎙️ "hello"', "say hello"]


async def test_ten_voice_messages_with_texts_between_keep_their_order(tmp_path: Path) -> None:
    chat, ears = Chat(), Ears(*(f"voice {number}" for number in range(10)))
    async with ingress(tmp_path, ears) as way, anyio.create_task_group() as tasks:
        hearings: list[NoteHearing] = []
        for number in range(10):
            hearings.append(way.hear(note(f"voice {number}"), chat))
            tasks.start_soon(way.read, "a", chat.text(f"text {number}"))
            await asyncio.sleep(0)
        await until(lambda: len(ears.started) == 10)
        other = Chat()
        await way.read("b", other.text("elsewhere"))
        assert other.happened == ["say elsewhere"], "another line does not wait"
        for number in reversed(range(10)):
            ears.free[f"voice {number}"].set()
        for hearing in hearings:
            await hearing.ended()
    assert [event for event in chat.happened if event.startswith("say")] == [
        f"say {kind} {number}" for number in range(10) for kind in ("voice", "text")
    ]
    assert [event for event in chat.happened if event.startswith("echo")] == [
        f'echo 🎙️ "voice {number}"' for number in range(10)
    ]


async def test_a_text_with_nothing_before_it_does_not_wait(tmp_path: Path) -> None:
    chat = Chat()
    async with ingress(tmp_path, Ears()) as way:
        assert (await way.read("a", chat.text("hello"))).state is ReceiptState.STARTED


async def test_a_text_that_is_given_up_lets_nobody_past_the_one_before_it(tmp_path: Path) -> None:
    chat, ears = Chat(), Ears("one")
    async with ingress(tmp_path, ears) as way:
        first = way.hear(note("one"), chat)
        second = asyncio.create_task(way.read("a", chat.text("two")))
        third = asyncio.create_task(way.read("a", chat.text("three")))
        await asyncio.sleep(0.01)
        second.cancel()
        await asyncio.wait([second])
        assert chat.happened == []
        ears.free["one"].set()
        await first.ended()
        await third
    assert chat.happened[-2:] == ["say one", "say three"]


async def test_a_stop_does_not_wait_and_withdraws_what_is_not_yet_words(tmp_path: Path) -> None:
    chat, ears = Chat(), Ears("one", "two")
    async with ingress(tmp_path, ears) as way:
        one = way.hear(note("one"), chat)
        text = asyncio.create_task(way.read("a", chat.text("between")))
        elsewhere = way.hear(note("two", line="b"), chat)
        await until(lambda: len(ears.started) == 2)

        async def interrupt() -> str:
            await chat.interrupt()
            return "settled"

        assert await way.stop("a", interrupt) == "settled"
        assert (await one.ended()).fate is Fate.WITHDRAWN
        await text
        assert ears.cancelled == ["one"]
        tell = "tell 🎙️ Stopped: that voice message was not transcribed, and goes nowhere."
        assert chat.happened == ["interrupt", tell, "say between (stopped)"]
        ears.free["two"].set()
        assert (await elsewhere.ended()).fate is Fate.SAID, "another line goes on"
        await way.stop("a", interrupt)
        assert chat.happened.count("interrupt") == 2
    assert files(tmp_path) == []


async def test_a_spoken_stop_overtakes_a_long_recording_and_what_comes_after_it_is_said(tmp_path: Path) -> None:
    chat, ears = Chat(), Ears("a long story", "next")
    async with ingress(tmp_path, ears) as way:
        story = way.hear(note("a long story"), chat)
        await until(lambda: ears.started == ["a long story"])
        stop = way.hear(note("Stop."), chat)
        after = way.hear(note("next"), chat)
        assert (await stop.ended()).fate is Fate.STOPPED
        assert (await story.ended()).fate is Fate.WITHDRAWN
        ears.free["next"].set()
        assert (await after.ended()).fate is Fate.SAID
    assert chat.happened[:2] == ['echo 🎙️ "Stop."', "interrupt"]
    assert chat.happened[-1] == "say next"
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    ("words", "told"),
    [("broken", "It is broken. Mend it."), ("", "No words were heard in it. Record it again, or type it.")],
)
async def test_without_words_the_person_is_told_and_the_recording_is_queued(
    tmp_path: Path, words: str, told: str
) -> None:
    chat = Chat()
    async with ingress(tmp_path, Ears()) as way:
        heard = await way.hear(note(words, "7"), chat).ended()
        assert (heard.fate, heard.text) == (Fate.LOST, "")
        await way.read("a", chat.text("later"))
        assert list(way.left()) == []
    assert chat.happened == [f"tell 🎙️ {told}", "queue", "say later"]
    (kept,) = files(tmp_path)
    assert kept.read_bytes() == words.encode()
    assert kept.suffix == ".ogg"
    assert str(kept) in chat.queued[0]
    assert str(kept) not in told


async def test_when_voice_is_off_nothing_is_lost_either(tmp_path: Path) -> None:
    chat = Chat()
    async with ingress(tmp_path, None, VoiceSettings(stt="off")) as way:
        assert (await way.hear(note("hello"), chat).ended()).fate is Fate.LOST
    assert 'stt = "off"' in chat.happened[0]


async def test_the_same_message_again_is_the_same_hearing(tmp_path: Path) -> None:
    chat, ears = Chat(), Ears("hello")
    async with ingress(tmp_path, ears) as way:
        first, second = way.hear(note("hello"), chat), way.hear(note("hello"), chat)
        assert first is second
        ears.free["hello"].set()
        await second.ended()
    assert chat.happened == ['echo 🎙️ "hello"', "say hello"]


async def test_what_was_not_said_before_the_end_is_heard_at_the_next_start(tmp_path: Path) -> None:
    chat, ears = Chat(), Ears("one", "../../two")
    async with ingress(tmp_path, ears) as way:
        hearings = [way.hear(note("one"), chat), way.hear(note("../../two"), chat)]
        for hearing in hearings:
            await hearing.kept()
    for hearing in hearings:
        with pytest.raises(SpeechError, match="next start"):
            await hearing.ended()
    assert chat.happened == []
    assert {file.suffix for file in files(tmp_path)} == {".json", ".ogg"}, "an id is no path"
    async with ingress(tmp_path, Ears()) as again:
        left = list(again.left())
        assert [(kept.id, kept.line, kept.about) for kept in left] == [
            ("one", "a", {"chat": "1"}),
            ("../../two", "a", {"chat": "1"}),
        ]
        for kept in left:
            await again.hear(kept, chat).ended()
        assert list(again.left()) == []
    assert chat.happened[1::2] == ["say one", "say ../../two"]


async def test_one_that_can_not_be_said_is_kept_and_blocks_nobody(tmp_path: Path) -> None:
    chat, broken = Chat(), Chat()
    broken.error = RuntimeError("no store")
    async with ingress(tmp_path, Ears()) as way:
        hearing = way.hear(note("one"), broken)
        with pytest.raises(RuntimeError, match="no store"):
            await hearing.ended()
        await way.read("a", chat.text("two"))
        assert [kept.id for kept in way.left()] == ["one"]
    assert chat.happened == ["say two"]


async def test_one_that_can_not_be_kept_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "voice").write_text("a file in the place of the folder")
    chat = Chat()
    async with ingress(tmp_path, Ears()) as way:
        hearing = way.hear(note("one"), chat)
        with pytest.raises(SpeechError, match="can't be kept"):
            await hearing.kept()
        with pytest.raises(SpeechError, match="can't be kept"):
            await hearing.ended()
        await way.read("a", chat.text("two"))
    assert chat.happened[0].startswith("tell 🎙️ The voice message can't be kept")
    assert chat.happened[1:] == ["say two"]


async def test_whoever_waits_may_go_and_the_message_goes_on(tmp_path: Path) -> None:
    chat, ears = Chat(), Ears("hello")
    async with ingress(tmp_path, ears) as way:
        hearing = way.hear(note("hello"), chat)
        with anyio.move_on_after(0.01):
            await hearing.ended()
        ears.free["hello"].set()
        assert (await hearing.ended()).fate is Fate.SAID


async def test_real_speech_in_order_with_texts_and_a_real_stop(tmp_path: Path) -> None:
    chat = Chat()
    names = ("mail", "tests", "weather", "mail", "tests")
    async with (
        moonshine(tmp_path) as ears,
        ingress(tmp_path, ears) as way,
        anyio.create_task_group() as tasks,
    ):
        for number, name in enumerate(names):
            way.hear(VoiceNote(str(number), "a", recording(name)), chat)
            tasks.start_soon(way.read, "a", chat.text(f"text {number}"))
            await asyncio.sleep(0)
        await way.read("a", chat.text("last"))
        assert [plain(event).split()[1] for event in chat.happened if event.startswith("say")] == [
            *("send", "text", "please", "text", "what", "text", "send", "text", "please", "text"),
            "last",
        ]
        assert (await way.hear(VoiceNote("9", "a", recording("stop")), chat).ended()).fate is Fate.STOPPED
    assert chat.happened[-2:] == ['echo 🎙️ "Stop."', "interrupt"]
