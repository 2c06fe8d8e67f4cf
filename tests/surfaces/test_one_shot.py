"""One shot at a session that can't be saved: it ends, and says so in every form."""

import io
import json
from collections.abc import AsyncIterator
from typing import Unpack, cast

import pytest

from hark.protocol.commands import Delivery
from hark.protocol.events import AnyEvent, Notice, ReceiptChanged, ReplyDelta, TurnEnd, TurnStart
from hark.protocol.outcomes import Completed, ErrorInfo, Failed, Interrupted, Outcome, Timings
from hark.protocol.receipts import Receipt, ReceiptState, Refusal, Settled
from hark.protocol.session import Details, Session
from hark.surfaces.oneshot import OneShot

FULL = "The session failed and is opened again: the disk is full"


class Told:
    """A session that accepts one message and tells these events; then it falls silent until nobody asks any more."""

    id = "demo"

    def __init__(self, *events: AnyEvent) -> None:
        self._events = events

    async def say(self, text: str, delivery: Delivery | str | None = None, **details: Unpack[Details]) -> Receipt:
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
        raise AssertionError("it waits for more")


def receipt(message: str, state: ReceiptState, turn: str | None, seq: int) -> ReceiptChanged:
    return ReceiptChanged("demo", turn, seq, 0.0, Receipt(message, "demo", state, turn))


STARTED = receipt("m1", ReceiptState.STARTED, "t1", 1)
START = TurnStart("demo", "t1", 2, 0.0, ("m1",))
WORDS = ReplyDelta("demo", "t1", 3, 0.0, "half of it")
LOST = Notice("demo", None, 4, 0.0, "store", FULL)
END = TurnEnd("demo", "t1", 9, 0.0, Completed("all of it"), Timings())


async def shoot(form: str, *events: AnyEvent) -> tuple[Outcome, str, str]:
    out, err = io.StringIO(), io.StringIO()
    outcome = await OneShot(cast("Session", Told(*events)), form, out, err).run("go")
    return outcome, out.getvalue(), err.getvalue()


@pytest.mark.parametrize("code", ["store", "internal"])
async def test_a_session_that_fails_in_mid_turn_is_a_failure_and_what_it_said_is_kept(code: str) -> None:
    lost = Notice("demo", None, 4, 0.0, code, FULL)
    outcome, out, err = await shoot("text", STARTED, START, WORDS, lost)
    assert outcome == Failed(ErrorInfo(code, FULL))
    assert out == "half of it\n"
    assert f"hark: failed: {FULL}\n" in err


async def test_a_session_that_fails_is_one_json_object() -> None:
    _, out, _ = await shoot("json", STARTED, START, WORDS, LOST)
    whole = json.loads(out)
    assert whole["outcome"] == {"type": "failed", "error": {"code": "store", "message": FULL}}
    assert (whole["turn"], whole["text"]) == ("t1", "half of it")


async def test_a_session_that_fails_before_the_turn_starts_is_a_failure_without_a_turn() -> None:
    outcome, out, _ = await shoot("json", LOST)
    assert outcome == Failed(ErrorInfo("store", FULL))
    assert json.loads(out)["turn"] is None


async def test_other_notices_end_nothing() -> None:
    other = Notice("demo", None, 4, 0.0, "store.slow", "The disk is slow.")
    of_the_turn = Notice("demo", "t1", 5, 0.0, "internal", "A tool is broken.")
    outcome, out, err = await shoot("text", STARTED, START, WORDS, other, of_the_turn, END)
    assert (outcome, out) == (Completed("all of it"), "all of it\n")
    assert "The disk is slow." in err


async def test_a_message_that_is_withdrawn_while_it_waits_ends_the_shot() -> None:
    queued = receipt("m1", ReceiptState.QUEUED, None, 1)
    withdrawn = receipt("m1", ReceiptState.WITHDRAWN, None, 2)
    outcome, out, _ = await shoot("text", queued, withdrawn)
    assert (outcome, out) == (Interrupted("withdrawn"), "")
