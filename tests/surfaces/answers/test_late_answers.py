"""Late and double answers run nothing: on two surfaces at once, after the end of the turn, and after a restart."""

import asyncio
from pathlib import Path

import pytest

import hark
from hark.protocol.chat import ButtonPressed, IncomingMessage
from hark.surfaces.chat import questions
from hark.text.answers import QUESTION_CLOSED
from tests.surfaces.answers.answer_cases import APPROVAL, CHOICES, AskingModel, Result, has_question
from tests.surfaces.chat.chat_fixture import ANN, HOME, TestChat, chat_platform
from tests.surfaces.web.web_fixture import run_web_server
from tests.waiting import until

ASK = {"mode": "ask"}


async def ask_in_chat(chat: TestChat) -> str:
    """Let the model ask in the chat. Return the id of the question."""
    assert chat.agent is not None
    session = chat.agent.session("test:home")
    await chat.write("go")
    await until(lambda: has_question(session) and any(text.startswith("❓") for text in chat.texts))
    [asked] = session.open_questions()
    return asked.question


def reply_to_question(chat: TestChat, text: str) -> IncomingMessage:
    asked = next(shown for shown in chat.shown if shown.message.text.startswith("❓"))
    return IncomingMessage(f"r{next(chat.ids)}", HOME, ANN, text, quoted=asked.message.text, replied_to=asked.id)


async def until_refused(chat: TestChat, count: int) -> None:
    """Wait until this many answers were refused because the question is closed."""
    await chat.until(lambda: chat.texts.count(QUESTION_CLOSED) == count)


async def test_of_two_answers_at_once_one_is_accepted_and_the_other_refused(tmp_path: Path) -> None:
    model = AskingModel(CHOICES)
    async with hark.open(home=tmp_path, workspace=tmp_path, routes=[{"provider": model.provider}]) as agent:
        terminal, page = agent.session("demo", "terminal"), agent.session("demo", "page")
        await terminal.say("go")
        await until(lambda: has_question(terminal))
        [asked] = terminal.open_questions()
        refusals = await asyncio.gather(terminal.answer(asked.question, "red"), page.answer(asked.question, "blue"))
        await terminal.idle()
        late = await page.answer(asked.question, "blue")
    assert refusals[0] is None
    assert [refusal.message for refusal in (refusals[1], late) if refusal] == [QUESTION_CLOSED, QUESTION_CLOSED]
    assert model.results == [Result("answer", "red")]


async def test_an_answer_in_the_chat_after_one_on_another_surface_is_refused(tmp_path: Path) -> None:
    model = AskingModel(APPROVAL)
    async with chat_platform(tmp_path, [], provider=model.provider, approvals=ASK) as (chat, _):
        assert chat.agent is not None
        question = await ask_in_chat(chat)
        assert await chat.agent.session("test:home", "page").answer(question, "no") is None
        await chat.until(lambda: "done" in chat.texts)
        await chat.write("yes")
        await until_refused(chat, 1)
        await chat.deliver(reply_to_question(chat, "yes"))
        await until_refused(chat, 2)
        await chat.deliver(ButtonPressed("late press", HOME, ANN, f"answer:{question}:0"))
        await until_refused(chat, 3)
        await chat.write("yes please")
        await chat.until(lambda: chat.texts.count("done") == 2)
    assert model.results == [Result("answer", "no"), Result("message", "yes please")]


async def test_a_double_answer_in_the_running_turn_is_refused_and_later_the_same_text_is_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "LATE_SECONDS", 0.0)
    model = AskingModel(CHOICES)
    async with chat_platform(tmp_path, [], provider=model.provider) as (chat, _):
        await ask_in_chat(chat)
        await chat.deliver(reply_to_question(chat, "red"))
        await chat.deliver(reply_to_question(chat, "blue"))
        await until_refused(chat, 1)
        await chat.until(lambda: "done" in chat.texts)
        await chat.write("blue")
        await chat.until(lambda: chat.texts.count("done") == 2)
    assert model.results == [Result("answer", "red"), Result("message", "blue")]


async def test_answers_in_the_chat_after_a_restart_are_refused_and_the_question_is_shown_as_withdrawn(
    tmp_path: Path,
) -> None:
    model, chat = AskingModel(APPROVAL), TestChat()
    async with chat_platform(tmp_path, [], chat, provider=model.provider, approvals=ASK):
        question = await ask_in_chat(chat)
        asked = next(shown for shown in chat.shown if shown.message.text.startswith("❓"))
    assert asked.edits == 0  # the chat ended first, as in a kill
    next_model = AskingModel(APPROVAL)
    async with chat_platform(tmp_path, [], chat, provider=next_model.provider, approvals=ASK):
        await chat.until(lambda: "withdrawn" in asked.message.text)
        assert asked.message.buttons == ()
        for count, text in enumerate(("yes", "1", "y"), 1):
            await chat.write(text)
            await until_refused(chat, count)
        await chat.deliver(reply_to_question(chat, "always"))
        await until_refused(chat, 4)
        await chat.deliver(ButtonPressed("late press", HOME, ANN, f"answer:{question}:0"))
        await until_refused(chat, 5)
        await chat.write("what happened?")
        await chat.until(lambda: "done" in chat.texts)
    assert model.results == []
    assert next_model.results == [Result("message", "what happened?")]
    assert not (tmp_path / "made-1").exists()


@pytest.mark.parametrize("body", [{"choice": "yes"}, {"text": "yes"}, {"input": "yes"}, {"input": "any text"}])
async def test_an_answer_over_the_api_after_a_restart_is_refused(tmp_path: Path, body: dict[str, str]) -> None:
    model, next_model = AskingModel(APPROVAL), AskingModel(APPROVAL)
    async with run_web_server(tmp_path, routes=[{"name": "main", "provider": model.provider}], approvals=ASK) as web:
        await web.say("demo", "go")
        session = web.agent.session("demo")
        await until(lambda: has_question(session))
        [asked] = session.open_questions()
    path = f"/api/sessions/demo/answers/{asked.question}"
    routes = [{"name": "main", "provider": next_model.provider}]
    async with run_web_server(tmp_path, routes=routes, approvals=ASK) as web:
        for _ in range(2):
            status, answer = await web.call("POST", path, body)
            assert (status, answer["error"]) == (409, {"code": "not_asked", "message": QUESTION_CLOSED})
        await web.idle("demo")
    assert model.results == next_model.results == []
    assert not (tmp_path / "made-1").exists()


async def test_two_answers_over_the_api_run_one_call(tmp_path: Path) -> None:
    model = AskingModel(APPROVAL)
    async with run_web_server(tmp_path, routes=[{"name": "main", "provider": model.provider}], approvals=ASK) as web:
        await web.say("demo", "go")
        session = web.agent.session("demo")
        await until(lambda: has_question(session))
        path = f"/api/sessions/demo/answers/{session.open_questions()[0].question}"
        bodies = ({"choice": "no"}, {"choice": "yes"}, {"text": "yes"})
        answers = await asyncio.gather(*(web.call("POST", path, body) for body in bodies))
        await web.idle("demo")
    assert sorted(status for status, _ in answers) == [200, 409, 409]
    assert len(model.results) == 1


async def test_an_answer_from_a_second_process_after_the_question_was_closed_is_refused(tmp_path: Path) -> None:
    model, other_model = AskingModel(CHOICES), AskingModel(CHOICES)
    async with (
        hark.open(home=tmp_path, workspace=tmp_path, routes=[{"provider": model.provider}]) as owner,
        hark.open(home=tmp_path, workspace=tmp_path, routes=[{"provider": other_model.provider}]) as other,
    ):
        session = owner.session("demo", "terminal")
        await session.say("go")
        await until(lambda: has_question(session))
        [asked] = session.open_questions()
        follower = other.session("demo", "page")
        await follower.wait_until_loaded()
        assert await follower.answer(asked.question, "blue") is None
        await session.idle()
        late = await follower.answer(asked.question, "red")
    assert late is not None
    assert late.message == QUESTION_CLOSED
    assert model.results == [Result("answer", "blue")]
    assert other_model.results == []
