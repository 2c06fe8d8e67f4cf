"""Texts at open questions in the terminal app and in the plain terminal."""

import asyncio
import io
from pathlib import Path

import pytest

import hark
from hark.surfaces.plain import PlainTerminal
from hark.surfaces.terminal.widgets import question_panel
from tests.surfaces.answers.answer_cases import CASES, KINDS, AskingModel, Conversation, check_texts
from tests.surfaces.terminal.terminal_fixture import TerminalFixture, open_terminal
from tests.waiting import until


@pytest.fixture
def no_reading_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question_panel, "MIN_READ_SECONDS", 0.0)


async def type_at_question(terminal: TerminalFixture, text: str, *, is_focused: bool) -> None:
    """Wait until the panel shows the question. Type a text there, in its focused panel if `is_focused`."""
    await until(lambda: terminal.app.questions.current is not None)
    if is_focused:
        await terminal.press("shift+tab")
    terminal.app.composer.typed_for_question = terminal.app.questions.readable_question  # as the first key does
    terminal.app.composer.insert(text)
    terminal.app.send()


@pytest.mark.usefixtures("no_reading_delay")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_focused", [True, False], ids=["focused", "not focused"])
async def test_every_text_in_the_terminal_has_the_effect_of_the_rule(
    tmp_path: Path, kind: str, is_focused: bool
) -> None:
    model = AskingModel(kind)
    async with open_terminal(tmp_path, [], provider=model.provider, approvals={"mode": "ask"}) as terminal:

        async def begin() -> None:
            await until(lambda: terminal.app.questions.current is None)
            terminal.app.composer.set_text("go")
            terminal.app.composer.typed_for_question = ""
            terminal.app.send()

        async def shown() -> str:
            terminal.app.log_view.flush()
            return terminal.log

        async def send(text: str) -> None:
            await type_at_question(terminal, text, is_focused=is_focused)

        user = Conversation(terminal.agent.session("demo"), begin, send, shown)
        await check_texts(user, model, CASES, is_directed=is_focused, is_private=True)


@pytest.mark.parametrize("kind", KINDS)
async def test_every_line_in_the_plain_terminal_has_the_effect_of_the_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("hark.surfaces.plain.MIN_READ_SECONDS", -1.0)
    model, output, lines = AskingModel(kind), io.StringIO(), asyncio.StreamReader()
    routes = [{"provider": model.provider}]
    async with hark.open(home=tmp_path, workspace=tmp_path, routes=routes, approvals={"mode": "ask"}) as agent:
        session = agent.session("demo", "plain")
        running = asyncio.create_task(PlainTerminal(session, output).run(lines))

        async def write(text: str) -> None:
            if text != "go":
                await until(lambda: f"\n{output.getvalue()}".count("\n? ") == model.asked, shows=output.getvalue)
            lines.feed_data(f"{text}\n".encode())

        async def shown() -> str:
            return output.getvalue()

        user = Conversation(session, begin=lambda: write("go"), send=write, shown=shown)
        cases = [case for case in CASES if "\n" not in case.text]
        await check_texts(user, model, cases, is_directed=False, is_private=True)
        lines.feed_eof()
        await running
