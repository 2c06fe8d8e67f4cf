"""One-shot mode: a session failure ends the run with an error in every output format."""

import io
import json
from collections.abc import AsyncIterator
from typing import Unpack, cast

import pytest

from hark.protocol.commands import Delivery
from hark.protocol.events import AnyEvent, Notice, ReceiptChanged, ReplyDelta, TurnEnd, TurnStart
from hark.protocol.outcomes import Completed, ErrorInfo, Failed, Interrupted, Outcome, Timings
from hark.protocol.receipts import Receipt, ReceiptState, Refusal, Settled
from hark.protocol.session import MessageDetails, Session
from hark.surfaces.oneshot import OneShot

DISK_FULL_TEXT = "The session failed and is being reopened: the disk is full"


class ScriptedSession:
    """A fake session that accepts one message and publishes the given events. Fails if more events are awaited."""

    id = "demo"

    def __init__(self, *events: AnyEvent) -> None:
        self._events = events

    async def say(
        self, text: str, delivery: Delivery | str | None = None, **details: Unpack[MessageDetails]
    ) -> Receipt:
        return Receipt("m1", "demo", ReceiptState.STARTED, "t1")

    async def interrupt(self, source: str = "user", turn: str = "", shown: int | None = None) -> Settled | None:
        raise AssertionError

    async def answer(self, question: str, text: str) -> Refusal | None:
        raise AssertionError

    async def idle(self) -> Outcome | None:
        raise AssertionError

    async def events(self) -> AsyncIterator[AnyEvent]:
        for event in self._events:
            yield event
        raise AssertionError("it waits for more events")


def receipt_event(message: str, state: ReceiptState, turn: str | None, seq: int) -> ReceiptChanged:
    return ReceiptChanged("demo", turn, seq, 0.0, Receipt(message, "demo", state, turn))


STARTED = receipt_event("m1", ReceiptState.STARTED, "t1", 1)
START = TurnStart("demo", "t1", 2, 0.0, ("m1",))
REPLY = ReplyDelta("demo", "t1", 3, 0.0, "half of it")
FAILURE_NOTICE = Notice("demo", None, 4, 0.0, "store", DISK_FULL_TEXT)
END = TurnEnd("demo", "t1", 9, 0.0, Completed("all of it"), Timings())


async def run_one_shot(output_format: str, *events: AnyEvent) -> tuple[Outcome, str, str]:
    out, err = io.StringIO(), io.StringIO()
    outcome = await OneShot(cast("Session", ScriptedSession(*events)), output_format, out, err).run("go")
    return outcome, out.getvalue(), err.getvalue()


@pytest.mark.parametrize("code", ["store", "internal"])
async def test_session_failure_during_a_turn_is_reported_and_the_partial_reply_is_printed(code: str) -> None:
    failure = Notice("demo", None, 4, 0.0, code, DISK_FULL_TEXT)
    outcome, out, err = await run_one_shot("text", STARTED, START, REPLY, failure)
    assert outcome == Failed(ErrorInfo(code, DISK_FULL_TEXT))
    assert out == "half of it\n"
    assert f"hark: failed: {DISK_FULL_TEXT}\n" in err


async def test_session_failure_is_printed_as_one_json_object() -> None:
    _, out, _ = await run_one_shot("json", STARTED, START, REPLY, FAILURE_NOTICE)
    result = json.loads(out)
    assert result["outcome"] == {"type": "failed", "error": {"code": "store", "message": DISK_FULL_TEXT}}
    assert (result["turn"], result["text"]) == ("t1", "half of it")


async def test_session_failure_before_the_turn_starts_is_reported_without_a_turn() -> None:
    outcome, out, _ = await run_one_shot("json", FAILURE_NOTICE)
    assert outcome == Failed(ErrorInfo("store", DISK_FULL_TEXT))
    assert json.loads(out)["turn"] is None


async def test_notices_other_than_a_session_failure_do_not_end_the_run() -> None:
    other = Notice("demo", None, 4, 0.0, "store.slow", "The disk is slow.")
    turn_notice = Notice("demo", "t1", 5, 0.0, "internal", "A tool is broken.")
    outcome, out, err = await run_one_shot("text", STARTED, START, REPLY, other, turn_notice, END)
    assert (outcome, out) == (Completed("all of it"), "all of it\n")
    assert "The disk is slow." in err


async def test_withdrawal_of_the_queued_message_ends_the_run() -> None:
    queued = receipt_event("m1", ReceiptState.QUEUED, None, 1)
    withdrawn = receipt_event("m1", ReceiptState.WITHDRAWN, None, 2)
    outcome, out, _ = await run_one_shot("text", queued, withdrawn)
    assert (outcome, out) == (Interrupted("withdrawn"), "")
