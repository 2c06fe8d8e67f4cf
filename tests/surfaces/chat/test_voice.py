"""Voice in a chat: echoed, in order with texts, a stop word like any other, and never lost."""

import base64
from pathlib import Path

import hark
from hark.protocol.chat import Removed, Written
from hark.protocol.messages import Attachment
from hark.protocol.provider import CallChunk
from hark.protocol.voice_messages import WITHDRAWN
from hark.providers.scripted import Hang, ScriptedProvider
from hark.store.chat_ledger import SqliteChatLedger
from tests.surfaces.chat.chat_fixture import ANN, HOME, chatting
from tests.surfaces.chat.test_platform import said
from tests.surfaces.web.test_voice import Ear
from tests.waiting import until


async def test_a_recording_is_echoed_and_interrupts_with_its_words(tmp_path: Path) -> None:
    hang = Hang()
    async with chatting(tmp_path, [[hang], ["tabs it is"]], ears=Ear()) as (chat, provider):
        await chat.write("work")
        await hang.reached.wait()
        await chat.speak("use tabs instead", name="v")
        await chat.until(lambda: "tabs it is" in chat.texts)
        await chat.until(lambda: '🎙️ "use tabs instead"' in chat.texts)
        await chat.until(lambda: ("v", "⚡") in chat.signs)
        await until(lambda: not list((tmp_path / "voice").iterdir()))
    assert said(provider.requests[-1]) == ["work", "use tabs instead"]


async def test_recordings_and_texts_between_them_keep_their_order(tmp_path: Path) -> None:
    ear = Ear()
    script = [["ok"] for _ in range(6)]
    async with chatting(tmp_path, script, ears=ear) as (chat, provider):
        await chat.write("/busy queue")
        await chat.speak("(slow) one")
        await chat.write("two")
        await chat.speak("three")
        await chat.write("four")
        await ear.until(2)
        assert not provider.requests, "a text does not overtake the recording before it"
        ear.gate.set()
        await chat.until(lambda: chat.texts.count("ok") == 4)
    assert said(provider.requests[-1]) == ["(slow) one", "two", "three", "four"]


async def test_a_stop_while_it_is_transcribed_withdraws_it_and_what_waits_behind_it_sets_nothing_off(
    tmp_path: Path,
) -> None:
    ear = Ear()
    hang = Hang()
    async with chatting(tmp_path, [[hang], ["next"]], ears=ear) as (chat, provider):
        await chat.write("work")
        await hang.reached.wait()
        await chat.speak("(for ever)")
        await ear.until(1)
        await chat.write("behind it", name="b")
        await chat.write("stop")
        await chat.until(lambda: any("that voice message was not transcribed" in text for text in chat.texts))
        await chat.until(lambda: any(text.endswith("⏹ stopped") for text in chat.texts))
        await hang.closed.wait()
        await chat.until(lambda: ("b", "⏸") in chat.signs or chat.texts.count("⏹ stopped") == 2)
        assert len(provider.requests) == 1, "no model is asked after the stop"
        await chat.write("and now?")
        await chat.until(lambda: "next" in chat.texts)
    assert ear.cancelled == 1


async def test_a_spoken_stop_word_stops_and_overtakes_a_long_recording(tmp_path: Path) -> None:
    ear = Ear()
    hang = Hang()
    async with chatting(tmp_path, [["half", hang]], ears=ear) as (chat, provider):
        await chat.write("work")
        await hang.reached.wait()
        await chat.speak("(for ever)")
        await ear.until(1)
        await chat.speak("Stop.")
        await chat.until(lambda: "half\n\n⏹ stopped" in chat.texts)
        await chat.until(lambda: '🎙️ "Stop."' in chat.texts)
    assert len(provider.requests) == 1


async def test_a_recording_without_words_is_told_and_queued_with_its_file(tmp_path: Path) -> None:
    hang = Hang()
    async with chatting(tmp_path, [[hang], ["going on"], ["sorry?"]], ears=Ear()) as (chat, provider):
        await chat.write("work")
        await hang.reached.wait()
        await chat.speak("!", name="v")
        await chat.until(lambda: ("v", "⏳") in chat.signs)
        assert not hang.closed.is_set(), "it interrupts nothing"
        await chat.until(lambda: any("That is no audio" in text for text in chat.texts))
        (kept,) = (tmp_path / "voice").glob("*.ogg")
        await chat.write("stop")
        await chat.until(lambda: any("1 message is held" in text for text in chat.texts))
        await chat.write("go on")
        await chat.until(lambda: "sorry?" in chat.texts)
    assert not any(kept.name in text for text in chat.texts)
    assert str(kept) in said(provider.requests[-1])[-1]


async def test_a_recording_that_is_deleted_while_it_is_transcribed_goes_nowhere(tmp_path: Path) -> None:
    ear = Ear()
    async with chatting(tmp_path, [["hello"]], ears=ear) as (chat, provider):
        await chat.speak("(for ever)", name="v")
        await ear.until(1)
        await chat.put(Removed("v", HOME))
        await chat.write("hi")
        await chat.until(lambda: "hello" in chat.texts)
    assert ear.cancelled == 1
    assert said(provider.requests[0]) == ["hi"]


async def test_a_recording_answers_a_question(tmp_path: Path) -> None:
    call = CallChunk(0, "c1", "ask", '{"question": "which?", "choices": ["red", "blue"]}')
    async with chatting(tmp_path, [[call], ["blue it is"]], ears=Ear()) as (chat, _):
        await chat.write("choose")
        await chat.until(lambda: any("which?" in text for text in chat.texts))
        await chat.speak("Blue.")
        await chat.until(lambda: "blue it is" in chat.texts)


async def test_what_a_kill_left_unheard_is_heard_at_the_next_start(tmp_path: Path) -> None:
    ear = Ear()
    async with chatting(tmp_path, [], ears=ear) as (chat, _):
        await chat.speak("(slow) hello", name="v")
        await ear.until(1)
    again = Ear()
    again.gate.set()
    async with chatting(tmp_path, [["there you are"]], ears=again) as (chat, provider):
        await chat.until(lambda: "there you are" in chat.texts)
    assert said(provider.requests[0]) == ["(slow) hello"]


async def test_a_recording_that_was_said_before_a_kill_is_never_told_to_go_nowhere(tmp_path: Path) -> None:
    ear = Ear()
    async with chatting(tmp_path, [], ears=ear) as (chat, _):
        await chat.speak("(slow) hello", name="v")
        await ear.until(1)
    provider = ScriptedProvider([["hi"]])
    async with hark.open(home=tmp_path, workspace=tmp_path, routes=[{"provider": provider}]) as agent:
        session = agent.session("test:home")
        await session.say("(slow) hello", id="test:home::v")
        await session.idle()
    again = Ear()
    async with chatting(tmp_path, [], ears=again) as (chat, provider):
        await again.until(1)
        await chat.write("stop")
        await chat.until(lambda: "No turn is running." in chat.texts)
        again.gate.set()
        await chat.until(lambda: '🎙️ "(slow) hello"' in chat.texts)
    assert not provider.requests, "it is not said anew"
    assert not any("goes nowhere" in text for text in chat.texts)


async def test_a_recording_that_was_deleted_before_it_was_begun_with_is_not_heard(tmp_path: Path) -> None:
    ledger = SqliteChatLedger(tmp_path / "gateway.db")
    voice = Attachment("audio/ogg", data=base64.b64encode(b"hello").decode())
    for incoming in (Written("v", HOME, ANN, voice=voice), Removed("v", HOME), Written("w", HOME, ANN, "hi")):
        await ledger.accept(incoming)
    await ledger.close()
    async with chatting(tmp_path, [["there"]], ears=Ear()) as (chat, provider):
        await chat.until(lambda: "there" in chat.texts)
        assert chat.texts == ["there"]
    assert [said(request) for request in provider.requests] == [["hi"]]


async def test_that_a_stop_withdrew_a_recording_is_noted_before_it_is_told(tmp_path: Path) -> None:
    ear, hang = Ear(), Hang()
    async with chatting(tmp_path, [[hang]], ears=ear) as (chat, _):
        await chat.write("work")
        await hang.reached.wait()
        await chat.speak("(for ever)", name="v")
        await ear.until(1)
        await chat.write("stop")
        await chat.until(lambda: WITHDRAWN in chat.texts)
        ledger = SqliteChatLedger(tmp_path / "gateway.db")
        assert await ledger.find(HOME, "withdrawn:test:home::v") is not None
        await ledger.close()


async def test_a_recording_that_a_stop_withdrew_before_a_kill_is_told_of_and_not_heard(tmp_path: Path) -> None:
    ledger = SqliteChatLedger(tmp_path / "gateway.db")
    voice = Attachment("audio/ogg", data=base64.b64encode(b"hello").decode())
    await ledger.accept(Written("v", HOME, ANN, voice=voice))
    await ledger.sending(HOME, "withdrawn:test:home::v")
    await ledger.close()
    ear = Ear()
    async with chatting(tmp_path, [["there"]], ears=ear) as (chat, provider):
        await chat.until(lambda: WITHDRAWN in chat.texts)
        await chat.write("hi")
        await chat.until(lambda: "there" in chat.texts)
    assert [said(request) for request in provider.requests] == [["hi"]]
    assert ear.heard == []


async def test_a_recording_given_as_an_answer_before_a_kill_is_echoed_and_not_withdrawn_by_a_stop(
    tmp_path: Path,
) -> None:
    ledger = SqliteChatLedger(tmp_path / "gateway.db")
    voice = Attachment("audio/ogg", data=base64.b64encode(b"(slow) blue").decode())
    await ledger.accept(Written("v", HOME, ANN, voice=voice))
    await ledger.sending(HOME, "answer:test:home::v")
    await ledger.close()
    ear = Ear()
    async with chatting(tmp_path, [], ears=ear) as (chat, _):
        await ear.until(1)
        await chat.write("stop")
        await chat.until(lambda: "No turn is running." in chat.texts)
        ear.gate.set()
        await chat.until(lambda: '🎙️ "(slow) blue"' in chat.texts or WITHDRAWN in chat.texts)
        assert WITHDRAWN not in chat.texts
        await chat.until(lambda: any("A restart came just when you answered" in text for text in chat.texts))


async def test_a_recording_said_before_a_kill_and_deleted_since_is_echoed_and_withdrawn_from_the_queue(
    tmp_path: Path,
) -> None:
    ledger = SqliteChatLedger(tmp_path / "gateway.db")
    voice = Attachment("audio/ogg", data=base64.b64encode(b"hello").decode())
    await ledger.accept(Written("v", HOME, ANN, voice=voice))
    await ledger.accept(Removed("v", HOME))
    await ledger.close()
    hang = Hang()
    provider = ScriptedProvider([[hang]])
    async with hark.open(home=tmp_path, workspace=tmp_path, routes=[{"provider": provider}]) as agent:
        session = agent.session("test:home")
        await session.say("work")
        await hang.reached.wait()
        await session.say("hello", "queue", id="test:home::v")
    async with chatting(tmp_path, [["ran"]], ears=Ear()) as (chat, _):
        await chat.until(lambda: '🎙️ "hello"' in chat.texts)
