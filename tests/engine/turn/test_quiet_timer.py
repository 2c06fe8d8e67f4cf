"""A turn without events asks whether to wait, retry or stop. It never asks while it waits for the user."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import hark
from hark.protocol.events import AnyEvent, Notice, QuestionAsked, QuestionClosed, TurnEnd
from hark.protocol.messages import CallResult, Effect
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.provider import CallChunk
from hark.providers.scripted import Hang, Pause, ScriptedProvider, ScriptedReply
from tests.waiting import until

QUIET_SECONDS = 0.3


class QuietSession:
    """A session whose events are recorded."""

    def __init__(self, session: hark.SessionHandle) -> None:
        self.session = session
        self.events: list[AnyEvent] = []

    async def record(self) -> None:
        async for event in self.session.events():
            self.events.append(event)

    def of(self, *kinds: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kinds)]

    async def wait_for(self, kind: type[Any], number: int = 1) -> Any:
        await until(lambda: len(self.of(kind)) >= number, shows=lambda: self.events)
        return self.of(kind)[number - 1]


@asynccontextmanager
async def quiet_session(
    home: Path, script: list[ScriptedReply], *, can_ask: bool = True, **limits: object
) -> AsyncGenerator[tuple[QuietSession, ScriptedProvider]]:
    provider = ScriptedProvider(script)
    limits = {"quiet_seconds": QUIET_SECONDS, **limits}
    async with hark.open(
        home=home,
        workspace=home,
        routes=[{"name": "main", "provider": provider}],
        store={"url": "memory"},
        approvals={"mode": "all"},
        limits=limits,
        can_ask=can_ask,
    ) as agent:
        quiet = QuietSession(agent.session("demo"))
        recording = asyncio.create_task(quiet.record())
        await quiet.session.wait_until_loaded()
        yield quiet, provider
        recording.cancel()


async def test_a_silent_model_is_asked_again_if_the_user_chooses_retry(tmp_path: Path) -> None:
    hang = Hang()
    async with quiet_session(tmp_path, [["half", hang], ["whole"]]) as (quiet, provider):
        await quiet.session.say("go")
        asked = await quiet.wait_for(QuestionAsked)
        assert asked.choices == ("wait", "retry", "stop")
        assert "the turn is waiting for a reply from main" in asked.text
        await quiet.session.answer(asked.question, "retry")
        assert await quiet.session.idle() == Completed("whole")
    assert hang.closed.is_set()
    assert provider.requests[0].messages == provider.requests[1].messages
    assert not quiet.of(Notice)


async def test_a_silent_call_is_cancelled_on_retry_and_never_run_again_by_hark(tmp_path: Path) -> None:
    call = CallChunk(0, "c1", "shell", '{"command": "echo ran >> log; sleep 600"}')
    async with quiet_session(tmp_path, [[call], ["otherwise"]]) as (quiet, provider):
        await quiet.session.say("go")
        asked = await quiet.wait_for(QuestionAsked)
        assert "shell echo ran >> log; sleep 600" in asked.text
        await quiet.session.answer(asked.question, "retry")
        assert await quiet.session.idle() == Completed("otherwise")
    result = provider.requests[1].messages[-1]
    assert isinstance(result, CallResult)
    assert result.effect is Effect.CANCELLED
    assert "cancelled by the user after a long silence" in result.text
    assert (tmp_path / "log").read_text() == "ran\n"


async def test_the_user_can_stop_a_quiet_turn(tmp_path: Path) -> None:
    async with quiet_session(tmp_path, [[Hang()]]) as (quiet, _):
        await quiet.session.say("go")
        asked = await quiet.wait_for(QuestionAsked)
        await quiet.session.answer(asked.question, "stop")
        assert await quiet.session.idle() == Interrupted("user")


async def test_after_wait_the_question_returns_later_and_is_withdrawn_when_the_turn_continues(tmp_path: Path) -> None:
    script: list[ScriptedReply] = [[Pause(1.8), "late", Pause(2.0), "end"]]
    async with quiet_session(tmp_path, script) as (quiet, _):
        await quiet.session.say("go")
        first = await quiet.wait_for(QuestionAsked)
        await quiet.session.answer(first.question, "wait")
        second = await quiet.wait_for(QuestionAsked, 2)
        assert second.at - first.at >= 2 * QUIET_SECONDS
        closed = await quiet.wait_for(QuestionClosed, 2)
        assert (closed.question, closed.reason) == (second.question, "withdrawn")
        await quiet.session.interrupt()


async def test_a_turn_that_waits_for_the_user_is_not_quiet(tmp_path: Path) -> None:
    ask = CallChunk(0, "c1", "ask", '{"question": "Which one?"}')
    async with quiet_session(tmp_path, [[ask], ["done"]]) as (quiet, _):
        await quiet.session.say("go")
        asked = await quiet.wait_for(QuestionAsked)
        await asyncio.sleep(4 * QUIET_SECONDS)  # the silence that must not cause a question
        assert quiet.of(QuestionAsked) == [asked]
        await quiet.session.answer(asked.question, "the first")
        assert await quiet.session.idle() == Completed("done")


async def test_a_turn_without_a_user_reports_and_stops_only_if_the_settings_say_so(tmp_path: Path) -> None:
    async with quiet_session(tmp_path, [[Pause(1.0), "late"]], can_ask=False) as (quiet, _):
        await quiet.session.say("go")
        assert (await quiet.wait_for(Notice)).code == "quiet"
        assert await quiet.session.idle() == Completed("late")
    async with quiet_session(tmp_path, [[Hang()]], can_ask=False, quiet_unattended="stop") as (quiet, _):
        await quiet.session.say("go")
        assert (await quiet.wait_for(TurnEnd)).outcome == Interrupted("no activity")
        assert not quiet.of(QuestionAsked)
