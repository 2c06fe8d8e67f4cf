"""Texts at open questions over the API and on the page."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page

from hark.protocol.speech import Transcriber
from tests.surfaces.answers.answer_cases import (
    APPROVAL,
    CASES,
    KINDS,
    SAMPLE,
    AskingModel,
    Conversation,
    Result,
    check_texts,
    expected_result,
    has_question,
    send_at_question,
)
from tests.surfaces.web.browser import GatewaySite
from tests.surfaces.web.test_page import ConstantTranscriber
from tests.surfaces.web.web_fixture import WebFixture, run_web_server
from tests.waiting import until

# A clock on which half a second passes between any two looks, so that a question can be answered at once.
FAST_CLOCK = (
    "const now = performance.now.bind(performance); let extra = 0; performance.now = () => now() + (extra += 600)"
)


@asynccontextmanager
async def asking_server(
    tmp_path: Path, model: AskingModel, transcriber: Transcriber | None = None
) -> AsyncGenerator[WebFixture]:
    routes = [{"name": "main", "provider": model.provider}]
    async with run_web_server(tmp_path, routes=routes, approvals={"mode": "ask"}, transcriber=transcriber) as web:
        yield web


def question_path(web: WebFixture) -> str:
    [asked] = web.agent.session("demo").open_questions()
    return f"/api/sessions/demo/answers/{asked.question}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_directed", [True, False], ids=["directed", "undirected"])
async def test_every_input_sent_as_the_page_does_has_the_effect_of_the_rule(
    tmp_path: Path, kind: str, is_directed: bool
) -> None:
    model, errors = AskingModel(kind), list[str]()
    async with asking_server(tmp_path, model) as web:

        async def send(text: str) -> None:
            body = {"input": text, "is_directed": is_directed}
            status, answer = await web.call("POST", question_path(web), body)
            errors.extend([answer["error"]["message"]] if status != 200 else [])
            if status != 200 and answer["error"]["code"] == "not_an_answer":
                await web.say("demo", text)

        async def shown() -> str:
            return "\n".join(errors)

        user = Conversation(web.agent.session("demo"), lambda: web.say("demo", "go"), send, shown)
        await check_texts(user, model, CASES, is_directed=is_directed, is_private=True)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_posted_message_never_answers(tmp_path: Path, kind: str) -> None:
    model = AskingModel(kind)
    async with asking_server(tmp_path, model) as web:

        async def shown() -> str:
            return ""

        user = Conversation(web.agent.session("demo"), lambda: web.say("demo", "go"), partial(web.say, "demo"), shown)
        for case in CASES:
            if kind == APPROVAL and case.text.startswith(("/approve", "/deny")):
                continue  # a command that answers
            expected = expected_result(case, kind, is_directed=False, is_private=False)
            is_other = expected.effect in ("stop", "command")
            result = await send_at_question(user, model, case.text)
            assert result == (expected if is_other else Result("message", case.text.strip())), case.text


@pytest.mark.parametrize(
    ("kind", "body", "code"),
    [
        (APPROVAL, {"choice": "7"}, "bad_choice"),
        (APPROVAL, {"text": "7"}, "bad_choice"),
        (APPROVAL, {"choice": "yes please"}, "bad_choice"),
        ("choices", {"choice": "0"}, "bad_choice"),
        ("choices", {"choice": "green"}, "bad_choice"),
        ("choices", {"input": "green"}, "not_an_answer"),
        ("open", {"input": "/status"}, "not_an_answer"),
        ("open", {"text": "x", "choice": "x"}, "bad_request"),
    ],
)
async def test_an_answer_that_does_not_fit_is_refused_and_the_question_stays_open(
    tmp_path: Path, kind: str, body: dict[str, str], code: str
) -> None:
    model = AskingModel(kind)
    async with asking_server(tmp_path, model) as web:
        await web.say("demo", "go")
        await until(lambda: has_question(web.agent.session("demo")))
        status, answer = await web.call("POST", question_path(web), body)
        assert (status, answer["error"]["code"]) == (400, code)
        assert has_question(web.agent.session("demo"))
    assert model.results == []


async def check_page(page: Page, web: WebFixture, model: AskingModel) -> None:
    """Type all texts into the message field at open questions, and compare their effects with the rule."""

    async def send(text: str) -> None:
        await page.locator(".question:not(.closed)").wait_for()
        await page.fill("#input", text)
        await page.press("#input", "Enter")

    async def begin() -> None:
        await page.locator(".question:not(.closed)").wait_for(state="detached")
        await page.locator(".turn.running").wait_for(state="detached")
        await page.evaluate("document.querySelector('#problem').textContent = ''")
        await page.fill("#input", "go")
        await page.press("#input", "Enter")

    async def shown() -> str:
        return await page.locator("#problem").text_content() or ""

    user = Conversation(web.agent.session("demo"), begin, send, shown)
    await check_texts(user, model, CASES, is_directed=False, is_private=True)


@pytest.mark.parametrize("kind", KINDS)
async def test_every_text_in_the_message_field_of_the_page_has_the_effect_of_the_rule(
    chromium: Browser, tmp_path: Path, kind: str
) -> None:
    model = AskingModel(kind)
    async with asking_server(tmp_path, model) as web:
        page = await GatewaySite(chromium, web.base, None, None).open_page()
        await page.add_init_script(FAST_CLOCK)
        await page.reload()
        await check_page(page, web, model)
        await page.close()


async def test_the_field_of_a_question_on_the_page_accepts_every_text_except_commands_and_stop_words(
    chromium: Browser, tmp_path: Path
) -> None:
    model = AskingModel("choices")
    async with asking_server(tmp_path, model) as web:
        page = await GatewaySite(chromium, web.base, None, None).open_page()
        session = web.agent.session("demo")

        async def send(text: str) -> None:
            field = page.locator(".question:not(.closed) input")
            await field.fill(text)
            await field.press("Enter")

        async def shown() -> str:
            return "\n".join(await page.locator(".question .state").all_text_contents())

        async def begin() -> None:
            await page.locator(".turn.running").wait_for(state="detached")
            await web.say("demo", "go")

        await check_texts(Conversation(session, begin, send, shown), model, SAMPLE, is_directed=True, is_private=True)
        await page.close()


async def test_text_sent_right_after_a_question_appeared_on_the_page_must_be_sent_again(
    chromium: Browser, tmp_path: Path
) -> None:
    model = AskingModel(APPROVAL)
    async with asking_server(tmp_path, model) as web:
        page = await GatewaySite(chromium, web.base, None, None).open_page()
        await page.add_init_script("const start = performance.now(); performance.now = () => start")
        await page.reload()
        await web.say("demo", "go")
        await page.locator(".question:not(.closed)").wait_for()
        await page.fill("#input", "yes")
        await page.press("#input", "Enter")
        await page.locator("#problem", has_text="A question has just appeared").wait_for()
        assert await page.input_value("#input") == "yes"
        assert has_question(web.agent.session("demo"))
        await page.close()
    assert model.results == []


async def test_a_recording_on_the_page_answers_the_open_question(chromium: Browser, tmp_path: Path) -> None:
    model = AskingModel(APPROVAL)
    async with asking_server(tmp_path, model, ConstantTranscriber("Yes.")) as web:
        page = await GatewaySite(chromium, web.base, None, None).open_page(permissions=["microphone"])
        await page.add_init_script(FAST_CLOCK)
        await page.reload()
        await web.say("demo", "go")
        await page.locator(".question:not(.closed)").wait_for()
        await page.click("#record")
        await page.locator("#recording", has_text="Recording 1").wait_for()
        await page.click("#record")
        await page.locator(".question.answered").wait_for()
        await page.close()
    assert model.results == [Result("answer", "allowed")]
