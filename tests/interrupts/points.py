"""The points in a turn at which an interrupt may occur, with the steps to reach each point and the expected results."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from hark.protocol.events import (
    CallEnd,
    CallOutput,
    CallStart,
    Notice,
    QuestionAsked,
    ReasoningDelta,
    ReplyDelta,
    TurnEnd,
    TurnStart,
)
from tests.fakes.models.behaviours import (
    Behaviour,
    Exchange,
    blackhole,
    call,
    delta,
    events,
    failing,
    hanging,
    silent,
    text,
)
from tests.interrupts.interrupt_fixture import InterruptFixture

ReachPoint = Callable[[InterruptFixture], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class InterruptPoint:
    """A point of a turn at which a test interrupts it, with the expected results.

    `partial` is the text that the user had seen. `results` are texts of the calls' results in the next request. With
    `is_streaming`, a request is open. With `may_complete`, the turn may already be over or finish before the
    interrupt.
    """

    reach: ReachPoint
    script: Sequence[Behaviour] = ()
    partial: str = ""
    results: tuple[str, ...] = ()
    is_streaming: bool = False
    may_complete: bool = False
    settle_ms: float = 100.0


def send_then_hang(*pieces: Any) -> Behaviour:
    """Return a behaviour that sends these events in one write and then hangs."""

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.send_events(*pieces)
        await asyncio.get_running_loop().create_future()

    return play


def call_tools(*calls: tuple[str, dict[str, str]]) -> Behaviour:
    """Return a behaviour that replies with calls to these tools."""
    parts = [call(n, f"c{n}", name, json.dumps(arguments)) for n, (name, arguments) in enumerate(calls)]
    return events([delta(content="I try. "), *(delta(tool_calls=[part]) for part in parts), delta("tool_calls")])


def call_shell(command: str) -> Behaviour:
    return call_tools(("shell", {"command": command}))


async def reach_missing_receipt(fixture: InterruptFixture) -> None:
    await fixture.session.queue()
    fixture.send("go")
    await asyncio.sleep(0)


async def reach_session_loading(fixture: InterruptFixture) -> None:
    fixture.send("go")
    await asyncio.sleep(0)


async def reach_sent_request(fixture: InterruptFixture) -> None:
    await fixture.send("go")
    await fixture.request_received.wait()


async def reach_visible_text(fixture: InterruptFixture) -> None:
    await fixture.send("go")
    await fixture.wait_for_event(ReplyDelta, lambda event: event.text.strip() in ("tok2", "text", "all done"))


async def reach_visible_reasoning(fixture: InterruptFixture) -> None:
    await fixture.send("go")
    await fixture.wait_for_event(ReasoningDelta)


async def reach_started_call(fixture: InterruptFixture) -> None:
    await fixture.send("go")
    await fixture.wait_for_event(CallStart)


async def reach_retry_pause(fixture: InterruptFixture) -> None:
    await fixture.send("go")
    await fixture.wait_for_event(Notice, lambda event: event.code == "retry")


async def reach_running_tool(fixture: InterruptFixture) -> None:
    await fixture.send("go")
    await fixture.wait_for_event(CallOutput, lambda event: "started" in event.text)


async def reach_running_tools(fixture: InterruptFixture) -> None:
    await reach_running_tool(fixture)
    await fixture.wait_for_event(CallEnd)
    await fixture.uncancellable.started.wait()


async def reach_question(fixture: InterruptFixture) -> None:
    await fixture.send("go")
    await fixture.wait_for_event(QuestionAsked)


async def reach_settling_turn(fixture: InterruptFixture) -> None:
    await reach_running_tool(fixture)
    fixture.is_interrupted = True
    fixture.session.interrupt_soon("an earlier one")
    await asyncio.sleep(0)


async def reach_turn_end(fixture: InterruptFixture) -> None:
    await fixture.send("go")
    await fixture.wait_for_event(TurnEnd)


async def reach_next_turn(fixture: InterruptFixture) -> None:
    await reach_turn_end(fixture)
    fixture.send("and go")
    await fixture.wait_for_event(TurnStart, lambda event: event.turn == "demo.t2")


SLEEP = "echo started; sleep 60"
IGNORE_SIGNALS = "trap '' TERM INT; echo started; while true; do sleep 60; done"
DAEMON = "setsid sleep 60 & echo started; sleep 60"
THREE_CALLS: tuple[tuple[str, dict[str, str]], ...] = (("quick", {}), ("shell", {"command": SLEEP}), ("deaf", {}))

THREE_RESULTS = ("quick result", "[cancelled]", "its effect is unknown")

POINTS: dict[str, InterruptPoint] = {
    "before the receipt": InterruptPoint(reach_missing_receipt),
    "while the session loads": InterruptPoint(reach_session_loading),
    "before the first byte": InterruptPoint(reach_sent_request, [blackhole()], is_streaming=True),
    "after the headers": InterruptPoint(reach_sent_request, [silent()], is_streaming=True),
    "in the text": InterruptPoint(reach_visible_text, [hanging(3)], "tok0 tok1 tok2 ", is_streaming=True),
    "in the reasoning": InterruptPoint(
        reach_visible_reasoning, [send_then_hang(delta(reasoning_content="hm"))], is_streaming=True
    ),
    "in a call's arguments": InterruptPoint(
        reach_visible_text,
        [send_then_hang(delta(content="text"), delta(tool_calls=[call(0, "c1", "shell", '{"comm')]))],
        "text",
        is_streaming=True,
    ),
    "between the reply and its tool": InterruptPoint(reach_started_call, [call_shell(SLEEP)], "I try. ", settle_ms=600),
    "in the pause of a retry": InterruptPoint(reach_retry_pause, [failing(503, "30")]),
    "in one tool": InterruptPoint(
        reach_running_tool, [call_shell(SLEEP)], "I try. ", ("started\n\n[cancelled]",), settle_ms=600
    ),
    "in a tool that left a daemon": InterruptPoint(
        reach_running_tool, [call_shell(DAEMON)], "I try. ", ("[cancelled]",), settle_ms=600
    ),
    "in a tool that ignores signals": InterruptPoint(
        reach_running_tool, [call_shell(IGNORE_SIGNALS)], "I try. ", ("[cancelled]",), settle_ms=1000
    ),
    "in three tools": InterruptPoint(
        reach_running_tools, [call_tools(*THREE_CALLS)], "I try. ", THREE_RESULTS, settle_ms=1000
    ),
    "in a question": InterruptPoint(
        reach_question, [call_tools(("ask", {"question": "sure?"}))], "I try. ", ("[cancelled]",)
    ),
    "in an approval": InterruptPoint(reach_question, [call_shell("rm -rf nothing")], "I try. ", ("before it started",)),
    "while a turn settles": InterruptPoint(
        reach_settling_turn, [call_shell(IGNORE_SIGNALS)], "I try. ", ("[cancelled]",), settle_ms=1000
    ),
    "at the very end": InterruptPoint(reach_visible_text, [text(["all done"])], "all done", may_complete=True),
    "just after the end": InterruptPoint(reach_turn_end, [text(["all done"])], "all done", may_complete=True),
    "at the next turn's start": InterruptPoint(
        reach_next_turn, [text(["all done"]), silent()], "all done", may_complete=True
    ),
}


@asynccontextmanager
async def port_with_full_backlog() -> AsyncGenerator[int]:
    """Listen on a port whose backlog is full, so that connection attempts hang. Yields the port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fillers = [socket.socket() for _ in range(8)]
        try:
            for filler in fillers:
                filler.setblocking(False)
                filler.connect_ex(listener.getsockname())
            yield listener.getsockname()[1]
        finally:
            for filler in fillers:
                filler.close()
