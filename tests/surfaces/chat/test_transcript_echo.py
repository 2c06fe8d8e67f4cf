"""Transcripts of voice messages are echoed, stay in order with text messages, can be stop words, and are never lost."""

import base64
from pathlib import Path

import hark
from hark.protocol.chat import IncomingMessage, MessageDeleted
from hark.protocol.messages import Attachment
from hark.protocol.provider import CallChunk
from hark.protocol.voice_messages import WITHDRAWN
from hark.providers.scripted import Hang, ScriptedProvider
from hark.store.chat_ledger import SqliteChatLedger
from tests.surfaces.chat.chat_fixture import ANN, HOME, chat_platform
from tests.surfaces.chat.test_platform import user_texts
from tests.surfaces.web.test_voice import EchoTranscriber
from tests.waiting import until


async def test_a_voice_message_is_echoed_and_interrupts_with_its_transcript(tmp_path: Path) -> None:
    hang = Hang()
    async with chat_platform(tmp_path, [[hang], ["tabs it is"]], transcriber=EchoTranscriber()) as (chat, provider):
        await chat.write("work")
        await hang.reached.wait()
        await chat.send_voice("use tabs instead", message_id="v")
        await chat.until(lambda: "tabs it is" in chat.texts)
        await chat.until(lambda: '🎙️ "use tabs instead"' in chat.texts)
        await chat.until(lambda: ("v", "⚡") in chat.reactions)
        await until(lambda: not list((tmp_path / "voice").iterdir()))
    assert user_texts(provider.requests[-1]) == ["work", "use tabs instead"]


async def test_voice_messages_and_text_messages_between_them_stay_in_order(tmp_path: Path) -> None:
    ear = EchoTranscriber()
    script = [["ok"] for _ in range(6)]
    async with chat_platform(tmp_path, script, transcriber=ear) as (chat, provider):
        await chat.write("/busy queue")
        await chat.send_voice("(slow) one")
        await chat.write("two")
        await chat.send_voice("three")
        await chat.write("four")
        await ear.wait_for_recordings(2)
        assert not provider.requests, "a text must not overtake the earlier recording"
        ear.gate.set()
        await chat.until(lambda: chat.texts.count("ok") == 4)
    assert user_texts(provider.requests[-1]) == ["(slow) one", "two", "three", "four"]


async def test_a_stop_during_transcription_withdraws_the_recording_and_later_messages_start_no_turn(
    tmp_path: Path,
) -> None:
    ear = EchoTranscriber()
    hang = Hang()
    async with chat_platform(tmp_path, [[hang], ["next"]], transcriber=ear) as (chat, provider):
        await chat.write("work")
        await hang.reached.wait()
        await chat.send_voice("(for ever)")
        await ear.wait_for_recordings(1)
        await chat.write("behind it", message_id="b")
        await chat.write("stop")
        await chat.until(lambda: any("voice message was not transcribed" in text for text in chat.texts))
        await chat.until(lambda: any(text.endswith("⏹ stopped") for text in chat.texts))
        await hang.closed.wait()
        await chat.until(lambda: ("b", "⏸") in chat.reactions or chat.texts.count("⏹ stopped") == 2)
        assert len(provider.requests) == 1, "no model request is made after the stop"
        await chat.write("and now?")
        await chat.until(lambda: "next" in chat.texts)
    assert ear.cancelled == 1


async def test_a_spoken_stop_word_stops_the_turn_and_overtakes_a_long_recording(tmp_path: Path) -> None:
    ear = EchoTranscriber()
    hang = Hang()
    async with chat_platform(tmp_path, [["half", hang]], transcriber=ear) as (chat, provider):
        await chat.write("work")
        await hang.reached.wait()
        await chat.send_voice("(for ever)")
        await ear.wait_for_recordings(1)
        await chat.send_voice("Stop.")
        await chat.until(lambda: "half\n\n⏹ stopped" in chat.texts)
        await chat.until(lambda: '🎙️ "Stop."' in chat.texts)
    assert len(provider.requests) == 1


async def test_a_failed_transcription_is_reported_and_its_recording_is_queued(tmp_path: Path) -> None:
    hang = Hang()
    async with chat_platform(tmp_path, [[hang], ["continuing"], ["sorry?"]], transcriber=EchoTranscriber()) as (
        chat,
        provider,
    ):
        await chat.write("work")
        await hang.reached.wait()
        await chat.send_voice("!", message_id="v")
        await chat.until(lambda: ("v", "⏳") in chat.reactions)
        assert not hang.closed.is_set(), "the turn must not be interrupted"
        await chat.until(lambda: any("That is no audio" in text for text in chat.texts))
        (recording,) = (tmp_path / "voice").glob("*.ogg")
        await chat.write("stop")
        await chat.until(lambda: any("1 queued message is on hold" in text for text in chat.texts))
        await chat.write("continue")
        await chat.until(lambda: "sorry?" in chat.texts)
    assert not any(recording.name in text for text in chat.texts)
    assert str(recording) in user_texts(provider.requests[-1])[-1]


async def test_a_recording_deleted_during_transcription_is_not_delivered(tmp_path: Path) -> None:
    ear = EchoTranscriber()
    async with chat_platform(tmp_path, [["hello"]], transcriber=ear) as (chat, provider):
        await chat.send_voice("(for ever)", message_id="v")
        await ear.wait_for_recordings(1)
        await chat.deliver(MessageDeleted("v", HOME))
        await chat.write("hi")
        await chat.until(lambda: "hello" in chat.texts)
    assert ear.cancelled == 1
    assert user_texts(provider.requests[0]) == ["hi"]


async def test_a_voice_message_answers_a_question(tmp_path: Path) -> None:
    call = CallChunk(0, "c1", "ask", '{"question": "which?", "choices": ["red", "blue"]}')
    async with chat_platform(tmp_path, [[call], ["blue it is"]], transcriber=EchoTranscriber()) as (chat, _):
        await chat.write("choose")
        await chat.until(lambda: any("which?" in text for text in chat.texts))
        await chat.send_voice("Blue.")
        await chat.until(lambda: "blue it is" in chat.texts)


async def test_a_recording_left_by_a_kill_is_transcribed_at_the_next_start(tmp_path: Path) -> None:
    ear = EchoTranscriber()
    async with chat_platform(tmp_path, [], transcriber=ear) as (chat, _):
        await chat.send_voice("(slow) hello", message_id="v")
        await ear.wait_for_recordings(1)
    second_ear = EchoTranscriber()
    second_ear.gate.set()
    async with chat_platform(tmp_path, [["there you are"]], transcriber=second_ear) as (chat, provider):
        await chat.until(lambda: "there you are" in chat.texts)
    assert user_texts(provider.requests[0]) == ["(slow) hello"]


async def test_a_recording_delivered_before_a_kill_is_never_reported_as_withdrawn(tmp_path: Path) -> None:
    ear = EchoTranscriber()
    async with chat_platform(tmp_path, [], transcriber=ear) as (chat, _):
        await chat.send_voice("(slow) hello", message_id="v")
        await ear.wait_for_recordings(1)
    provider = ScriptedProvider([["hi"]])
    async with hark.open(home=tmp_path, workspace=tmp_path, routes=[{"provider": provider}]) as agent:
        session = agent.session("test:home")
        await session.say("(slow) hello", id="test:home::v")
        await session.idle()
    second_ear = EchoTranscriber()
    async with chat_platform(tmp_path, [], transcriber=second_ear) as (chat, provider):
        await second_ear.wait_for_recordings(1)
        await chat.write("stop")
        await chat.until(lambda: "No turn is running." in chat.texts)
        second_ear.gate.set()
        await chat.until(lambda: '🎙️ "(slow) hello"' in chat.texts)
    assert not provider.requests, "the transcript must not be delivered again"
    assert not any("was not sent" in text for text in chat.texts)


async def test_a_recording_deleted_before_it_is_processed_is_not_transcribed(tmp_path: Path) -> None:
    ledger = SqliteChatLedger(tmp_path / "gateway.db")
    voice = Attachment("audio/ogg", data=base64.b64encode(b"hello").decode())
    for incoming in (
        IncomingMessage("v", HOME, ANN, voice=voice),
        MessageDeleted("v", HOME),
        IncomingMessage("w", HOME, ANN, "hi"),
    ):
        await ledger.accept(incoming)
    await ledger.close()
    async with chat_platform(tmp_path, [["there"]], transcriber=EchoTranscriber()) as (chat, provider):
        await chat.until(lambda: "there" in chat.texts)
        assert chat.texts == ["there"]
    assert [user_texts(request) for request in provider.requests] == [["hi"]]


async def test_the_withdrawal_of_a_recording_is_stored_before_it_is_shown(tmp_path: Path) -> None:
    ear, hang = EchoTranscriber(), Hang()
    async with chat_platform(tmp_path, [[hang]], transcriber=ear) as (chat, _):
        await chat.write("work")
        await hang.reached.wait()
        await chat.send_voice("(for ever)", message_id="v")
        await ear.wait_for_recordings(1)
        await chat.write("stop")
        await chat.until(lambda: WITHDRAWN in chat.texts)
        ledger = SqliteChatLedger(tmp_path / "gateway.db")
        assert await ledger.find_sent(HOME, "withdrawn:test:home::v") is not None
        await ledger.close()


async def test_a_recording_withdrawn_before_a_kill_is_reported_and_not_transcribed(tmp_path: Path) -> None:
    ledger = SqliteChatLedger(tmp_path / "gateway.db")
    voice = Attachment("audio/ogg", data=base64.b64encode(b"hello").decode())
    await ledger.accept(IncomingMessage("v", HOME, ANN, voice=voice))
    await ledger.begin_send(HOME, "withdrawn:test:home::v")
    await ledger.close()
    ear = EchoTranscriber()
    async with chat_platform(tmp_path, [["there"]], transcriber=ear) as (chat, provider):
        await chat.until(lambda: WITHDRAWN in chat.texts)
        await chat.write("hi")
        await chat.until(lambda: "there" in chat.texts)
    assert [user_texts(request) for request in provider.requests] == [["hi"]]
    assert ear.recordings == []


async def test_a_recording_given_as_an_answer_before_a_kill_is_echoed_and_not_withdrawn_by_a_stop(
    tmp_path: Path,
) -> None:
    ledger = SqliteChatLedger(tmp_path / "gateway.db")
    voice = Attachment("audio/ogg", data=base64.b64encode(b"(slow) blue").decode())
    await ledger.accept(IncomingMessage("v", HOME, ANN, voice=voice))
    await ledger.begin_send(HOME, "answer:test:home::v")
    await ledger.close()
    ear = EchoTranscriber()
    async with chat_platform(tmp_path, [], transcriber=ear) as (chat, _):
        await ear.wait_for_recordings(1)
        await chat.write("stop")
        await chat.until(lambda: "No turn is running." in chat.texts)
        ear.gate.set()
        await chat.until(lambda: '🎙️ "(slow) blue"' in chat.texts or WITHDRAWN in chat.texts)
        assert WITHDRAWN not in chat.texts
        await chat.until(lambda: any("Hark restarted just as you answered" in text for text in chat.texts))


async def test_a_recording_delivered_before_a_kill_and_then_deleted_is_echoed_and_withdrawn_from_the_queue(
    tmp_path: Path,
) -> None:
    ledger = SqliteChatLedger(tmp_path / "gateway.db")
    voice = Attachment("audio/ogg", data=base64.b64encode(b"hello").decode())
    await ledger.accept(IncomingMessage("v", HOME, ANN, voice=voice))
    await ledger.accept(MessageDeleted("v", HOME))
    await ledger.close()
    hang = Hang()
    provider = ScriptedProvider([[hang]])
    async with hark.open(home=tmp_path, workspace=tmp_path, routes=[{"provider": provider}]) as agent:
        session = agent.session("test:home")
        await session.say("work")
        await hang.reached.wait()
        await session.say("hello", "queue", id="test:home::v")
    async with chat_platform(tmp_path, [["ran"]], transcriber=EchoTranscriber()) as (chat, _):
        await chat.until(lambda: '🎙️ "hello"' in chat.texts)
