"""Kill -9 of the gateway under the messages of many chats loses and doubles nothing, and the audit would notice."""

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from hark.protocol.commands import Delivery
from hark.protocol.messages import AssistantMessage, UserMessage
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.records import AnyRecord, Queued, Replied, TurnEnded, TurnStarted, Withdrawn
from tests.crash.audit import Findings
from tests.fire.__main__ import fire
from tests.fire.audit import ChatAudit, Story, sent_of
from tests.fire.book import Book, Deed, Stop
from tests.fire.model import Asked
from tests.fire.seat import Shown
from tests.fire.world import Plan

CHAT = "telegram:7"


def test_nothing_is_lost_or_doubled_when_the_gateway_is_killed_again_and_again(tmp_path: Path) -> None:
    plan = Plan(chats=10, messages=200, kill_seconds=1.0, per_second=40.0, seed=5, seconds=15.0)
    # Not `async`: on a busy machine the gateway's starts alone take longer than the limit of such tests.
    world, findings, _ = asyncio.run(fire(tmp_path / "fire", plan, lambda _: None))
    assert findings.problems == []
    assert world.gateway.kills > 0
    assert findings.counts["in a prompt"] > 0
    assert findings.counts["replies delivered"] > 0


# The audit itself: one chat, in which one message was written and answered.

MESSAGE = UserMessage("telegram:7::100", "talk m0")


def started(message: UserMessage = MESSAGE, turn: str = "telegram:7.t1", at: float = 10.0) -> TurnStarted:
    return TurnStarted(turn=turn, messages=(message,), at=at)


def replied(turn: str = "telegram:7.t1", text: str = "This is r0.") -> Replied:
    return Replied(turn=turn, step=1, message=AssistantMessage(text))


def ended(turn: str = "telegram:7.t1") -> TurnEnded:
    return TurnEnded(turn=turn, outcome=Completed("This is r0."))


ANSWERED: tuple[AnyRecord, ...] = (started(), replied(), ended())
SENT = {"telegram:7.t1:0": "101"}
SHOWN = (Shown("101", "This is r0."),)


def book(text: str = "talk m0", *, edited: float | None = None, kind: str = "text") -> Book:
    found = Book()
    one = found.write(CHAT, kind, "talk")
    one.id, one.text = "100", text
    if edited is not None:
        one.edits.append(("talk m0e1", Deed(edited, edited)))
    return found


def audited(
    records: Sequence[AnyRecord] = ANSWERED,
    shown: Sequence[Shown] = SHOWN,
    sent: dict[str, str] | None = None,
    of: Book | None = None,
) -> Findings:
    findings = Findings()
    audit = ChatAudit(findings, CHAT, Story(records), shown)
    audit.messages(of or book())
    audit.turns()
    audit.replies(SENT if sent is None else sent)
    return findings


def test_the_audit_is_content_with_a_message_that_was_answered() -> None:
    findings = audited()
    assert findings.problems == []
    assert (findings.counts["in a prompt"], findings.counts["replies delivered"]) == (1, 1)


def test_the_audit_is_content_with_what_waits_was_withdrawn_or_was_told_to_be_stopped() -> None:
    queued = Queued(message=MESSAGE, delivery=Delivery.QUEUE)
    assert audited([queued], (), {}).problems == []
    assert audited([queued, Withdrawn(message=MESSAGE.id, text="talk m0", reason="x")], (), {}).problems == []
    told = Shown("9", "A restart came just when you answered “talk m0”")
    assert audited([], [told], {"x": "9"}).problems == []
    stopped = Shown("9", "🎙️ Stopped: that voice message was not transcribed, and goes nowhere.")
    assert audited([], [stopped], {"x": "9"}, book(kind="voice")).problems == []


def test_the_audit_is_content_with_a_reply_that_was_said_again_with_a_word_about_it() -> None:
    again = "(This may have reached you before.)\nThis is r0."
    shown = [Shown("99", "This is r0. ▌", ("⏹ Stop",)), Shown("101", again)]
    assert audited(shown=shown).problems == []


@pytest.mark.parametrize(
    ("kind", "records", "shown", "sent"),
    [
        ("lost", (), (), {}),
        ("doubled", (*ANSWERED, started(turn="telegram:7.t2"), ended("telegram:7.t2")), SHOWN, SENT),
        ("invented", (started(UserMessage("x", "talk m0 m9")), replied(), ended()), SHOWN, SENT),
        ("another text", (started(UserMessage("x", "shout m0")), replied(), ended()), SHOWN, SENT),
        ("open turn", (started(), replied()), SHOWN, SENT),
        ("turn ended twice", (*ANSWERED, ended()), SHOWN, SENT),
        ("reply lost", ANSWERED, (), {}),
        ("reply lost", ANSWERED, (Shown("101", "This is r5."),), SENT),
        ("reply not finished", ANSWERED, (Shown("101", "This is r0. ▌"),), SENT),
        ("reply not finished", ANSWERED, (Shown("101", "This is r0.", ("⏹ Stop",)),), SENT),
        ("doubled silently", ANSWERED, (*SHOWN, Shown("102", "This is r0.")), SENT),
        ("doubled silently", ANSWERED, (*SHOWN, Shown("102", "This is r0.")), {**SENT, "again": "102"}),
        (
            "note doubled",
            ANSWERED,
            (*SHOWN, Shown("5", "🎙️ m0"), Shown("6", "🎙️ m0")),
            {"a": "5", "b": "6"},
        ),
        (
            "reply out of order",
            (*ANSWERED, started(UserMessage("y", ""), "telegram:7.t2"), ended("telegram:7.t2")),
            (Shown("101", "This is r0."), Shown("99", "(no words)")),
            {**SENT, "telegram:7.t2:0": "99"},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_audit_notices(
    kind: str, records: Sequence[AnyRecord], shown: Sequence[Shown], sent: dict[str, str]
) -> None:
    findings = audited(records, shown, sent)
    assert findings.counts[kind] > 0, findings.problems


def test_the_audit_notices_an_edit_that_was_taken_in_time_and_is_not_in_force() -> None:
    assert audited(of=book(edited=1.0)).counts["edit lost"] == 1
    assert audited(of=book(edited=11.0)).problems == []


def test_the_audit_notices_a_stop_that_was_taken_and_did_not_stop() -> None:
    stopped = Book(stops=[Stop(CHAT, "word", Deed(20.0, 20.5))])
    for ended_at, outcome, lost in ((20.6, Interrupted("user"), 0), (30.0, Completed("This is r0."), 1)):
        findings = Findings()
        records = [started(), replied(), TurnEnded(turn="telegram:7.t1", outcome=outcome)]
        audit = ChatAudit(findings, CHAT, Story(records), SHOWN)
        audit.stops(stopped, [Asked("r0", CHAT, 10.0, ended_at, is_whole=bool(lost))])
        assert findings.counts["stop lost"] == lost


def test_the_ledger_is_read_by_session() -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript(
        "CREATE TABLE lines (address, session); CREATE TABLE sent (address, key, message);"
        "INSERT INTO lines VALUES ('a', 'telegram:7'); INSERT INTO sent VALUES ('a', 'telegram:7.t1:0', '101');"
    )
    assert sent_of(connection) == {CHAT: SENT}
