"""A kill -9 at any instant neither loses nor duplicates messages, and the audit detects violations."""

import asyncio
from pathlib import Path

import pytest

from hark.app.clock import SystemClock
from hark.protocol.commands import Delivery, Say
from hark.protocol.messages import AssistantMessage, Call, CallResult, Effect, UserMessage
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.receipts import Receipt, ReceiptState
from hark.protocol.records import (
    AnyRecord,
    CallEnded,
    CallStarted,
    Queued,
    Replied,
    TurnEnded,
    TurnStarted,
    Withdrawn,
)
from hark.protocol.store import SessionSummary
from hark.store.memory import MemoryStore, SharedMemory
from tests.crash.__main__ import run_crash_test
from tests.crash.audit import AuditResults, audit
from tests.crash.leftovers import find_leftover_processes
from tests.crash.messages import SentMessage

KILLS = 12  # `make crash` runs hundreds
SECONDS = 60.0  # enough for a few kills on a busy machine


async def test_kills_at_random_and_chosen_instants_lose_and_duplicate_nothing(tmp_path: Path) -> None:
    driver, findings = await run_crash_test(tmp_path, KILLS, seed=7, seconds=SECONDS)
    assert findings.problems == []
    assert driver.kills > 5
    assert findings.counts["crashed turns"] > 0
    assert findings.counts["in a turn"] > 10


MESSAGE = UserMessage("m0", "talk m0")
CALL = AssistantMessage("", (Call("c0", "mark"),))
RESULT = CallResult("c0", "mark", "marked", Effect.COMPLETED)


def turn_started(turn: str = "s.t1", message: UserMessage = MESSAGE) -> TurnStarted:
    return TurnStarted(turn=turn, messages=(message,), inbox=1)


def turn_ended(turn: str = "s.t1") -> TurnEnded:
    return TurnEnded(turn=turn, outcome=Completed("ok"))


async def audit_session(
    records: list[AnyRecord], effects: tuple[str, ...] = (), sent_message: SentMessage | None = None
) -> AuditResults:
    """Audit a session with these journal records and one sent message."""
    store = MemoryStore(SharedMemory(), "owner", SystemClock())
    one = sent_message or SentMessage("m0", "s", "talk m0", "queue", send_count=1)
    await store.inbox.put("s", Say("m0", "talk m0", Delivery.QUEUE))
    lease = await store.leases.acquire("s")
    assert lease is not None
    await store.journal.append(lease, 0, records, SessionSummary(cursor=1))
    return await audit(store, [one], effects)


async def test_the_audit_accepts_an_answered_message() -> None:
    findings = await audit_session([turn_started(), turn_ended()])
    assert findings.problems == []
    assert findings.counts["in a turn"] == 1


@pytest.mark.parametrize(
    ("kind", "records", "effects"),
    [
        ("lost", [TurnStarted(turn="s.t1", messages=(), inbox=1), turn_ended()], ()),
        ("doubled", [turn_started(), turn_ended(), turn_started("s.t2"), turn_ended("s.t2")], ()),
        ("open turn", [turn_started()], ()),
        ("turn ended twice", [turn_started(), turn_ended(), turn_ended()], ()),
        ("effect twice", [turn_started(), turn_ended()], ("c0", "c0")),
        ("invented", [turn_started(message=UserMessage("m9", "x")), turn_ended()], ()),
        (
            "call without one result",
            [
                turn_started(),
                Replied(turn="s.t1", step=1, message=CALL),
                CallStarted(turn="s.t1", call="c0"),
                turn_ended(),
            ],
            (),
        ),
        (
            "false effect",
            [
                turn_started(),
                Replied(turn="s.t1", step=1, message=CALL),
                CallStarted(turn="s.t1", call="c0"),
                CallEnded(turn="s.t1", result=RESULT),
                turn_ended(),
            ],
            (),
        ),
        (
            "invalid transcript",
            [
                turn_started(),
                Replied(turn="s.t1", step=1, message=CALL),
                CallStarted(turn="s.t1", call="c0"),
                turn_ended(),
            ],
            (),
        ),
        ("dishonest", [turn_started(message=UserMessage("m0", "another text")), turn_ended()], ()),
        ("unread", [Withdrawn(message="m0", text="talk m0", reason="x")], ()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_the_audit_detects_each_kind_of_problem(
    kind: str, records: list[AnyRecord], effects: tuple[str, ...]
) -> None:
    findings = await audit_session(records, effects)
    assert findings.counts[kind] > 0, findings.problems


async def test_the_audit_detects_a_false_receipt() -> None:
    receipt = Receipt("m0", "s", ReceiptState.STARTED, "s.t5")
    findings = await audit_session(
        [turn_started(), turn_ended()], sent_message=SentMessage("m0", "s", "talk m0", "queue", receipts=[receipt])
    )
    assert findings.counts["dishonest"] == 1


async def test_the_audit_detects_a_withdrawn_message_that_ran() -> None:
    findings = await audit_session(
        [turn_started(), turn_ended()], sent_message=SentMessage("m0", "s", "talk m0", "queue", is_withdrawn=True)
    )
    assert findings.counts["dishonest"] == 1


async def test_the_audit_accepts_a_queued_message_and_a_turn_interrupted_by_a_crash() -> None:
    queued = Queued(message=MESSAGE, delivery=Delivery.QUEUE, inbox=1)
    crashed = TurnEnded(turn="s.t1", outcome=Interrupted("crash"))
    assert (await audit_session([queued])).counts["queue"] == 1
    findings = await audit_session([turn_started(), crashed])
    assert (findings.problems, findings.counts["crashed turns"]) == ([], 1)


async def test_a_process_left_by_a_dead_worker_is_found() -> None:
    cookie = {"HARK_COOKIE": "somehome:12345-678:abc", "PATH": "/usr/bin:/bin"}
    process = await asyncio.create_subprocess_exec("sleep", "30", env=cookie)
    found = find_leftover_processes([12345])
    process.kill()
    await process.wait()
    assert [str(process.pid) in one for one in found] == [True]
