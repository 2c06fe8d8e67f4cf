"""Kill -9 at any instant: nothing is lost, nothing is doubled, and the audit would notice if it were."""

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
from hark.protocol.store import Summary
from hark.store.memory import MemoryStore, SharedMemory
from tests.crash.__main__ import crash
from tests.crash.audit import Findings, audit
from tests.crash.leftovers import leftovers
from tests.crash.messages import Posted

KILLS = 12  # `make crash` has hundreds
SECONDS = 60.0  # enough for a few kills on a busy machine, too


async def test_kills_at_random_and_at_chosen_instants_lose_and_double_nothing(tmp_path: Path) -> None:
    driver, findings = await crash(tmp_path, KILLS, seed=7, seconds=SECONDS)
    assert findings.problems == []
    assert driver.kills > 5
    assert findings.counts["crashed turns"] > 0
    assert findings.counts["in a turn"] > 10


MESSAGE = UserMessage("m0", "talk m0")
CALL = AssistantMessage("", (Call("c0", "mark"),))
RESULT = CallResult("c0", "mark", "marked", Effect.COMPLETED)


def started(turn: str = "s.t1", message: UserMessage = MESSAGE) -> TurnStarted:
    return TurnStarted(turn=turn, messages=(message,), inbox=1)


def ended(turn: str = "s.t1") -> TurnEnded:
    return TurnEnded(turn=turn, outcome=Completed("ok"))


async def audited(records: list[AnyRecord], effects: tuple[str, ...] = (), posted: Posted | None = None) -> Findings:
    """Audit one session with one message, and this journal."""
    store = MemoryStore(SharedMemory(), "owner", SystemClock())
    one = posted or Posted("m0", "s", "talk m0", "queue", posts=1)
    await store.inbox.put("s", Say("m0", "talk m0", Delivery.QUEUE))
    lease = await store.leases.acquire("s")
    assert lease is not None
    await store.journal.append(lease, 0, records, Summary(cursor=1))
    return await audit(store, [one], effects)


async def test_the_audit_is_content_with_a_message_that_was_answered() -> None:
    findings = await audited([started(), ended()])
    assert findings.problems == []
    assert findings.counts["in a turn"] == 1


@pytest.mark.parametrize(
    ("kind", "records", "effects"),
    [
        ("lost", [TurnStarted(turn="s.t1", messages=(), inbox=1), ended()], ()),
        ("doubled", [started(), ended(), started("s.t2"), ended("s.t2")], ()),
        ("open turn", [started()], ()),
        ("turn ended twice", [started(), ended(), ended()], ()),
        ("effect twice", [started(), ended()], ("c0", "c0")),
        ("invented", [started(message=UserMessage("m9", "x")), ended()], ()),
        (
            "call without one result",
            [started(), Replied(turn="s.t1", step=1, message=CALL), CallStarted(turn="s.t1", call="c0"), ended()],
            (),
        ),
        (
            "false effect",
            [
                started(),
                Replied(turn="s.t1", step=1, message=CALL),
                CallStarted(turn="s.t1", call="c0"),
                CallEnded(turn="s.t1", result=RESULT),
                ended(),
            ],
            (),
        ),
        (
            "invalid transcript",
            [started(), Replied(turn="s.t1", step=1, message=CALL), CallStarted(turn="s.t1", call="c0"), ended()],
            (),
        ),
        ("dishonest", [started(message=UserMessage("m0", "another text")), ended()], ()),
        ("unread", [Withdrawn(message="m0", text="talk m0", reason="x")], ()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_the_audit_notices(kind: str, records: list[AnyRecord], effects: tuple[str, ...]) -> None:
    findings = await audited(records, effects)
    assert findings.counts[kind] > 0, findings.problems


async def test_the_audit_notices_a_receipt_that_was_not_true() -> None:
    told = Receipt("m0", "s", ReceiptState.STARTED, "s.t5")
    findings = await audited([started(), ended()], posted=Posted("m0", "s", "talk m0", "queue", receipts=[told]))
    assert findings.counts["dishonest"] == 1


async def test_the_audit_notices_a_withdrawn_message_that_ran() -> None:
    findings = await audited([started(), ended()], posted=Posted("m0", "s", "talk m0", "queue", is_withdrawn=True))
    assert findings.counts["dishonest"] == 1


async def test_a_message_that_still_waits_and_a_turn_cut_by_a_crash_are_no_loss() -> None:
    queued = Queued(message=MESSAGE, delivery=Delivery.QUEUE, inbox=1)
    crashed = TurnEnded(turn="s.t1", outcome=Interrupted("crash"))
    assert (await audited([queued])).counts["queue"] == 1
    findings = await audited([started(), crashed])
    assert (findings.problems, findings.counts["crashed turns"]) == ([], 1)


async def test_a_process_that_a_dead_worker_left_would_be_found() -> None:
    cookie = {"HARK_COOKIE": "somehome:12345-678:abc", "PATH": "/usr/bin:/bin"}
    process = await asyncio.create_subprocess_exec("sleep", "30", env=cookie)
    found = leftovers([12345])
    process.kill()
    await process.wait()
    assert [str(process.pid) in one for one in found] == [True]
