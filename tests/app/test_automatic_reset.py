"""Conversations can be reset automatically, before a new message. The reset is announced and can be undone."""

import asyncio
import time
from pathlib import Path

import pytest

import hark
from hark.engine.session.decide import automatic_reset
from hark.engine.session.decision_context import DecisionContext
from hark.engine.session.state import SessionState
from hark.protocol.events import Notice
from hark.protocol.messages import UserMessage
from hark.protocol.provider import Request
from hark.protocol.records import SessionReset, TurnStarted, WorkStarted
from hark.protocol.rules import ResetPolicy, Rules, SessionRules
from hark.providers.scripted import ScriptedProvider

NOON = time.mktime((2026, 11, 18, 12, 0, 0, 0, 0, -1))
HOUR = 3600.0


def used_session(at: float) -> SessionState:
    state = SessionState()
    state.apply(TurnStarted(turn="demo.t1", messages=(UserMessage("m", "hello"),), at=at))
    return state


def reset_reason(rules: SessionRules, hours: float, session: str = "demo", *, has_work: bool = False) -> str | None:
    """Return why a session that was used at noon is reset before a message some hours later, or None."""
    state = used_session(NOON)
    if has_work:
        state.apply(WorkStarted(work="w", name="server", at=NOON))
    records = automatic_reset(state, DecisionContext(NOON + hours * HOUR, session, rules=Rules(sessions=rules)))
    assert len(records) <= 1
    return records[0].reason if records and isinstance(records[0], SessionReset) else None


@pytest.mark.parametrize(
    ("rules", "hours", "reason"),
    [
        (SessionRules(), 10_000, None),
        (SessionRules(ResetPolicy.IDLE), 23.9, None),
        (SessionRules(ResetPolicy.IDLE), 24.1, "it was idle for 24 hours"),
        (SessionRules(ResetPolicy.IDLE, idle_hours=2), 2.5, "it was idle for 2 hours"),
        (SessionRules(ResetPolicy.DAILY), 15.9, None),  # 03:54 on the next day
        (SessionRules(ResetPolicy.DAILY), 16.1, "a new day began"),
        (SessionRules(ResetPolicy.DAILY, daily_hour=0), 12.1, "a new day began"),
    ],
)
def test_a_session_is_reset_according_to_the_policy(rules: SessionRules, hours: float, reason: str | None) -> None:
    assert reset_reason(rules, hours) == reason


def test_a_session_with_running_work_and_a_child_are_never_reset_automatically() -> None:
    rules = SessionRules(ResetPolicy.IDLE)
    assert reset_reason(rules, 100, has_work=True) is None
    assert reset_reason(rules, 100, "demo.c-call") is None


def texts(request: Request) -> list[str]:
    return [message.text for message in request.messages if isinstance(message, UserMessage)]


async def test_a_session_that_was_unloaded_in_its_idle_time_is_reset_too(tmp_path: Path) -> None:
    provider = ScriptedProvider([["a"], ["b"]])
    sessions = {"reset": "idle", "idle_hours": 0.1 / 3600}
    for text in ("first", "second"):
        async with hark.open(home=tmp_path, routes=[{"provider": provider}], sessions=sessions) as agent:
            await asyncio.sleep(0.2)  # the idle time itself
            await agent.session("demo").say(text)
            await agent.session("demo").idle()
    assert [texts(request) for request in provider.requests] == [["first"], ["second"]]


async def test_an_idle_session_is_reset_before_the_next_message_and_the_reset_can_be_undone(tmp_path: Path) -> None:
    provider = ScriptedProvider([["a"], ["b"], ["c"]])
    sessions = {"reset": "idle", "idle_hours": 0.3 / 3600}
    async with hark.open(home=tmp_path, routes=[{"provider": provider}], sessions=sessions) as agent:
        session = agent.session("demo")
        events = session.events()
        await session.say("first")
        await session.idle()
        await asyncio.sleep(0.4)  # the idle time itself
        await session.say("second")
        await session.idle()
        await session.say("/undo reset")
        await session.say("third")
        await session.idle()
        events.close()
        notices = [event.text for event in await events.next_batch() if isinstance(event, Notice)]
    assert notices[0].startswith("The conversation was reset, because it was idle for")
    assert notices[0].endswith("/undo reset restores it.")
    assert [texts(request) for request in provider.requests] == [["first"], ["second"], ["first", "second", "third"]]
