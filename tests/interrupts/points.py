"""The points of a turn at which an interrupt may fall: how each is reached, and what is true there."""

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
from tests.interrupts.interrupt_fixture import World

Reach = Callable[[World], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Point:
    """What is true at a point.

    `partial` is what the person had seen, `results` what the calls' results say in the next request. `is_streaming`: a
    request is open; `may_complete`: the turn may be over, or win against the cut.
    """

    reach: Reach
    script: Sequence[Behaviour] = ()
    partial: str = ""
    results: tuple[str, ...] = ()
    is_streaming: bool = False
    may_complete: bool = False
    settle_ms: float = 100.0


def then_hang(*pieces: Any) -> Behaviour:
    """These events in one write, then silence."""

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.events(*pieces)
        await asyncio.get_running_loop().create_future()

    return play


def tools(*calls: tuple[str, dict[str, str]]) -> Behaviour:
    """A reply that calls these tools."""
    parts = [call(n, f"c{n}", name, json.dumps(arguments)) for n, (name, arguments) in enumerate(calls)]
    return events([delta(content="I try. "), *(delta(tool_calls=[part]) for part in parts), delta("tool_calls")])


def shell(command: str) -> Behaviour:
    return tools(("shell", {"command": command}))


async def before_the_receipt(world: World) -> None:
    await world.session.queue()
    world.say("go")
    await asyncio.sleep(0)


async def while_loading(world: World) -> None:
    world.say("go")
    await asyncio.sleep(0)


async def sent(world: World) -> None:
    await world.say("go")
    await world.playing.wait()


async def text_shown(world: World) -> None:
    await world.say("go")
    await world.shows(ReplyDelta, lambda event: event.text.strip() in ("tok2", "text", "all done"))


async def reasoning_shown(world: World) -> None:
    await world.say("go")
    await world.shows(ReasoningDelta)


async def call_started(world: World) -> None:
    await world.say("go")
    await world.shows(CallStart)


async def pausing(world: World) -> None:
    await world.say("go")
    await world.shows(Notice, lambda event: event.code == "retry")


async def tool_running(world: World) -> None:
    await world.say("go")
    await world.shows(CallOutput, lambda event: "started" in event.text)


async def tools_running(world: World) -> None:
    await tool_running(world)
    await world.shows(CallEnd)
    await world.deaf.started.wait()


async def asked(world: World) -> None:
    await world.say("go")
    await world.shows(QuestionAsked)


async def settling(world: World) -> None:
    await tool_running(world)
    world.is_cut = True
    world.session.interrupt_soon("an earlier one")
    await asyncio.sleep(0)


async def over(world: World) -> None:
    await world.say("go")
    await world.shows(TurnEnd)


async def next_turn(world: World) -> None:
    await over(world)
    world.say("and go")
    await world.shows(TurnStart, lambda event: event.turn == "demo.t2")


SLEEP = "echo started; sleep 60"
RESISTS = "trap '' TERM INT; echo started; while true; do sleep 60; done"
DAEMON = "setsid sleep 60 & echo started; sleep 60"
THREE: tuple[tuple[str, dict[str, str]], ...] = (("quick", {}), ("shell", {"command": SLEEP}), ("deaf", {}))

THREE_RESULTS = ("quick result", "[cancelled]", "its effect is unknown")

POINTS: dict[str, Point] = {
    "before the receipt of say": Point(before_the_receipt),
    "while the session loads": Point(while_loading),
    "before the first byte": Point(sent, [blackhole()], is_streaming=True),
    "after the headers": Point(sent, [silent()], is_streaming=True),
    "in the text": Point(text_shown, [hanging(3)], "tok0 tok1 tok2 ", is_streaming=True),
    "in the reasoning": Point(reasoning_shown, [then_hang(delta(reasoning_content="hm"))], is_streaming=True),
    "in a call's arguments": Point(
        text_shown,
        [then_hang(delta(content="text"), delta(tool_calls=[call(0, "c1", "shell", '{"comm')]))],
        "text",
        is_streaming=True,
    ),
    "between the reply and its tool": Point(call_started, [shell(SLEEP)], "I try. ", settle_ms=600),
    "in the pause of a retry": Point(pausing, [failing(503, "30")]),
    "in one tool": Point(tool_running, [shell(SLEEP)], "I try. ", ("started\n\n[cancelled]",), settle_ms=600),
    "in a tool that left a daemon": Point(tool_running, [shell(DAEMON)], "I try. ", ("[cancelled]",), settle_ms=600),
    "in a tool that resists": Point(tool_running, [shell(RESISTS)], "I try. ", ("[cancelled]",), settle_ms=1000),
    "in three tools": Point(tools_running, [tools(*THREE)], "I try. ", THREE_RESULTS, settle_ms=1000),
    "in a question": Point(asked, [tools(("ask", {"question": "sure?"}))], "I try. ", ("[cancelled]",)),
    "in an approval": Point(asked, [shell("rm -rf nothing")], "I try. ", ("before it was started",)),
    "in a settlement": Point(settling, [shell(RESISTS)], "I try. ", ("[cancelled]",), settle_ms=1000),
    "at the very end": Point(text_shown, [text(["all done"])], "all done", may_complete=True),
    "just after the end": Point(over, [text(["all done"])], "all done", may_complete=True),
    "at the next turn's start": Point(next_turn, [text(["all done"]), silent()], "all done", may_complete=True),
}


@asynccontextmanager
async def full_port() -> AsyncGenerator[int]:
    """A port that listens and accepts nobody: its backlog is full, so that a connect hangs."""
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
