"""Spoken answers follow the rule for typed text, in chats, in the terminal and over the API."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec import structs

from hark.protocol.chat import IncomingMessage
from hark.protocol.speech import Audio
from hark.providers.scripted import Hang
from hark.surfaces.terminal.environment import TerminalEnvironment
from hark.surfaces.terminal.widgets import question_panel
from tests.surfaces.answers.answer_cases import APPROVAL, CHOICES, KINDS, OPEN, AskingModel, Result, has_question
from tests.surfaces.chat.chat_fixture import TestChat, chat_platform
from tests.surfaces.terminal.terminal_fixture import TerminalFixture, call, open_terminal
from tests.surfaces.web.test_voice import OGG, VOICE, EchoTranscriber
from tests.surfaces.web.web_fixture import run_web_server
from tests.waiting import until

ASK = {"mode": "ask"}
RANGE_OF_COLOURS = "Choose a number from 1 to 2."


class PrivateChat(TestChat):
    """A fake chat in which every message is private."""

    __test__ = False

    async def deliver(self, incoming: object) -> None:
        assert isinstance(incoming, IncomingMessage)
        await super().deliver(structs.replace(incoming, is_private=True))


class EchoDictation:
    """Records until the key is pressed again, and returns a fixed transcript."""

    def __init__(self, transcript: str) -> None:
        self.transcript = transcript

    async def record(self, until: Callable[[], Awaitable[object]]) -> Audio:
        await until()
        return Audio(b"audio", "audio/wav")

    async def transcribe(self, audio: Audio) -> str:
        return self.transcript


@pytest.mark.parametrize(
    ("kind", "words", "result"),
    [
        (APPROVAL, "Yes.", Result("answer", "allowed")),
        (APPROVAL, "Yes please.", Result("message", "Yes please.")),
        (CHOICES, "Blue!", Result("answer", "blue")),
        (CHOICES, "Something green.", Result("message", "Something green.")),
        (OPEN, "Something green.", Result("answer", "Something green.")),
    ],
)
async def test_a_voice_message_in_a_chat_answers_like_typed_text(
    tmp_path: Path, kind: str, words: str, result: Result
) -> None:
    model, chat = AskingModel(kind), PrivateChat()
    ear = EchoTranscriber()
    async with chat_platform(tmp_path, [], chat, provider=model.provider, transcriber=ear, approvals=ASK):
        await chat.write("go")
        await chat.until(lambda: any(text.startswith("❓") for text in chat.texts))
        await chat.send_voice(words)
        await chat.until(lambda: "done" in chat.texts)
    assert model.results == [result]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_voice_message_sent_before_the_question_does_not_answer_it(tmp_path: Path, kind: str) -> None:
    model, chat, ear, words = AskingModel(kind), PrivateChat(), EchoTranscriber(), "(slow) 1"
    async with chat_platform(tmp_path, [], chat, provider=model.provider, transcriber=ear, approvals=ASK):
        assert chat.agent is not None
        session = chat.agent.session("test:home")
        await chat.send_voice(words)
        await ear.wait_for_recordings(1)
        await session.say("go")
        await until(lambda: has_question(session) and any(text.startswith("❓") for text in chat.texts))
        ear.gate.set()
        await chat.until(lambda: "done" in chat.texts)
    assert model.results == [Result("message", words)]


async def test_a_spoken_number_outside_the_choices_is_refused(tmp_path: Path) -> None:
    model, chat = AskingModel(CHOICES), PrivateChat()
    async with chat_platform(tmp_path, [], chat, provider=model.provider, transcriber=EchoTranscriber()):
        await chat.write("go")
        await chat.until(lambda: any(text.startswith("❓") for text in chat.texts))
        await chat.send_voice("7.")
        await chat.until(lambda: RANGE_OF_COLOURS in chat.texts)
        await chat.send_voice("2.")
        await chat.until(lambda: "done" in chat.texts)
    assert model.results == [Result("answer", "blue")]


async def talk(terminal: TerminalFixture) -> None:
    """Start a recording and send it."""
    await terminal.press("ctrl+t")
    await terminal.press("ctrl+t")


@pytest.mark.parametrize(
    ("words", "shown"), [("Yes.", "Answered: yes"), ("7", "Choose a number"), ("yes please", "yes please")]
)
async def test_a_recording_in_the_terminal_answers_like_typed_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, shown: str
) -> None:
    monkeypatch.setattr(question_panel, "MIN_READ_SECONDS", 0.0)
    environment = TerminalEnvironment(tmp_path, tmp_path, open_dictation=lambda: EchoDictation(words))
    model = AskingModel(APPROVAL)
    opening = open_terminal(tmp_path, [], provider=model.provider, environment=environment, approvals=ASK)
    async with opening as terminal:
        await terminal.send("go")
        await until(lambda: terminal.app.questions.current is not None)
        await talk(terminal)
        await terminal.until(shown)
        is_refused = words == "7"
        if not is_refused:
            await terminal.until(lambda: model.results)
        assert terminal.input_text == ("7" if is_refused else "")  # the text of a refused answer can be corrected
    assert model.results == {
        "Yes.": [Result("answer", "allowed")],
        "7": [],
        "yes please": [Result("message", "yes please")],
    }.get(words)


async def test_a_recording_that_began_before_the_question_needs_a_confirmation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(question_panel, "MIN_READ_SECONDS", 0.0)
    environment = TerminalEnvironment(tmp_path, tmp_path, open_dictation=lambda: EchoDictation("yes"))
    hang = Hang()
    script = [["working ", hang], [call("shell", command="touch made")], ["fine"]]
    async with open_terminal(tmp_path, script, environment=environment, approvals=ASK) as terminal:
        await terminal.send("go")
        await hang.reached.wait()
        await terminal.press("ctrl+t")
        await terminal.send("go on")
        await until(lambda: terminal.app.questions.current is not None)
        await terminal.press("ctrl+t")
        await terminal.until("A question appeared while you were typing.")
        assert terminal.input_text == "yes"
        assert not (tmp_path / "work" / "made").exists()
        await terminal.press("enter")
        await terminal.until("fine")
    assert (tmp_path / "work" / "made").exists()


@pytest.mark.parametrize(
    ("kind", "words", "state", "results"),
    [
        (APPROVAL, "yes.", "answered", [Result("answer", "allowed")]),
        (CHOICES, "7", "withdrawn", []),
        (CHOICES, "green", "interrupting", [Result("message", "green")]),
        (OPEN, "green", "answered", [Result("answer", "green")]),
    ],
)
async def test_a_recording_over_the_api_answers_the_question_that_it_names(
    tmp_path: Path, kind: str, words: str, state: str, results: list[Result]
) -> None:
    model = AskingModel(kind)
    routes = [{"name": "main", "provider": model.provider}]
    async with run_web_server(tmp_path, routes=routes, approvals=ASK, transcriber=EchoTranscriber()) as web:
        await web.say("demo", "go")
        session = web.agent.session("demo")
        await until(lambda: has_question(session))
        [asked] = session.open_questions()
        path = f"{VOICE}?id=v1&question={asked.question}"
        status, receipt = await web.call("POST", path, data=words.encode(), headers=OGG)
        assert (status, receipt["state"], receipt["transcript"]) == (202, state, words)
        assert receipt.get("text") == (words if state == "withdrawn" else None)
        if state == "withdrawn":
            assert has_question(session)
            await session.interrupt()
        await session.idle()
    assert model.results == results


async def test_a_recording_over_the_api_without_a_question_is_a_message(tmp_path: Path) -> None:
    model = AskingModel(APPROVAL)
    routes = [{"name": "main", "provider": model.provider}]
    async with run_web_server(tmp_path, routes=routes, approvals=ASK, transcriber=EchoTranscriber()) as web:
        await web.say("demo", "go")
        session = web.agent.session("demo")
        await until(lambda: has_question(session))
        status, receipt = await web.call("POST", f"{VOICE}?id=v1", data=b"yes", headers=OGG)
        assert (status, receipt["state"]) == (202, "interrupting")
        await session.idle()
    assert model.results == [Result("message", "yes")]
