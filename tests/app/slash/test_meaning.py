"""A text is interpreted by rules in a fixed order, which is the same on every surface."""

from pathlib import Path

import pytest

import hark
from hark.app.slash.meaning import is_command, meaning_of
from hark.app.slash.stop_words import STOP_WORDS, WordList
from hark.protocol.commands import Delivery
from hark.protocol.events import Notice, TurnStart
from hark.protocol.meaning import (
    NO_TURN,
    AnswerMeaning,
    CommandMeaning,
    Meaning,
    MessageMeaning,
    StopMeaning,
)
from hark.protocol.outcomes import Completed, Interrupted
from hark.providers.scripted import Hang, ScriptedProvider

SURFACES = ("terminal", "page", "api", "acp", "telegram", "webhook")
PROGRAMS = ("python", "oneshot", "schedule", "v1")


def answer_question(text: str) -> AnswerMeaning | None:
    return AnswerMeaning("q1", text)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("/status", CommandMeaning("status", "")),
        ("/model fast", CommandMeaning("model", "fast")),
        ("/stop", StopMeaning()),
        ("/STOP now", StopMeaning()),
        ("Stop!", StopMeaning()),
        ("hör auf", StopMeaning()),
        ("/queue stop", MessageMeaning("stop", Delivery.QUEUE)),
        ("/steer use tabs", MessageMeaning("use tabs", Delivery.STEER)),
        ("/queue 2 drop", CommandMeaning("queue", "2 drop")),
        ("/queue", CommandMeaning("queue", "")),
        ("/etc/hosts", AnswerMeaning("q1", "/etc/hosts")),
        ("stop at the first error", AnswerMeaning("q1", "stop at the first error")),
    ],
)
def test_commands_take_precedence_over_stop_words_and_stop_words_over_answers(text: str, meaning: Meaning) -> None:
    assert meaning_of(text, WordList(STOP_WORDS).matches, answer_question) == meaning


def test_text_without_a_slash_is_a_message_when_no_question_is_open() -> None:
    assert meaning_of("hello") == MessageMeaning("hello")
    assert meaning_of("stop") == MessageMeaning("stop")
    assert (is_command("/stop"), is_command("/queue x"), is_command("stop")) == (True, False, False)


@pytest.mark.parametrize("surface", SURFACES)
async def test_a_users_stop_word_stops_the_turn_on_every_surface(tmp_path: Path, surface: str) -> None:
    provider = ScriptedProvider([[Hang()]])
    routes = [{"provider": provider}]
    async with hark.open(home=tmp_path, workspace=tmp_path, routes=routes, store={"url": "memory"}) as agent:
        session = agent.session("demo", surface)
        events = session.events()
        await session.say("a long task")
        receipt = await session.say("Stop.")
        assert (receipt.state, receipt.turn) == ("started", None)
        assert await session.idle() == Interrupted("user")
        [notice] = [event for event in await events.next_batch() if isinstance(event, Notice)]
        assert (notice.code, notice.text[:10]) == ("stop", "Stopped in")
    assert len(provider.requests) <= 1


@pytest.mark.parametrize("text", ["stop", "/stop"])
async def test_a_stop_request_without_a_running_turn_is_reported_and_starts_no_turn(tmp_path: Path, text: str) -> None:
    provider = ScriptedProvider([])
    routes = [{"provider": provider}]
    async with hark.open(home=tmp_path, workspace=tmp_path, routes=routes, store={"url": "memory"}) as agent:
        session = agent.session("demo", "terminal")
        await session.wait_until_loaded()
        events = session.events()
        await session.say(text)
        batch = await events.next_batch()
        assert [event.text for event in batch if isinstance(event, Notice)] == [NO_TURN]
        assert not any(isinstance(event, TurnStart) for event in batch)
        assert await session.transcript() == []
    assert provider.requests == []


@pytest.mark.parametrize("surface", PROGRAMS)
async def test_a_stop_word_from_a_program_is_treated_as_a_message(tmp_path: Path, surface: str) -> None:
    provider = ScriptedProvider([["I am here."]])
    routes = [{"provider": provider}]
    async with hark.open(home=tmp_path, workspace=tmp_path, routes=routes, store={"url": "memory"}) as agent:
        session = agent.session("demo", surface)
        assert (await session.say("stop")).turn == "demo.t1"
        assert await session.idle() == Completed("I am here.")


async def test_stop_words_can_be_turned_off_for_one_surface(tmp_path: Path) -> None:
    provider = ScriptedProvider([["Waiting."]])
    page = {"page": {"stop_words": False}}
    async with hark.open(home=tmp_path, workspace=tmp_path, routes=[{"provider": provider}], surfaces=page) as agent:
        assert agent.session("demo", "api").interpret("wait") == StopMeaning()
        session = agent.session("demo", "page")
        assert session.interpret("wait") == MessageMeaning("wait")
        assert session.interpret("/stop") == StopMeaning()
        await session.say("wait")
        assert await session.idle() == Completed("Waiting.")
