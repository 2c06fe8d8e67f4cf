"""`/demo`: shows interrupt, steer, queue and stop with a scripted model and real tools."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

from hark.protocol.events import AnyEvent, CallEnd, CallStart, ReceiptChanged, ReplyDelta, TurnEnd
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.provider import CallChunk
from hark.providers.scripted import Pause, ScriptedProvider, ScriptStep

WriteLine = Callable[[str], None]

COUNTING: list[ScriptStep] = [step for number in range(1, 200) for step in (f"{number} ", Pause(0.05))]
WAITING: list[ScriptStep] = ["Waiting. ", CallChunk(0, "wait", "shell", '{"command": "sleep 600"}')]
WORKING: list[ScriptStep] = ["Looking around. ", CallChunk(0, "look", "shell", '{"command": "sleep 0.5; echo looked"}')]
REPLIES = [COUNTING, ["Four."], WORKING, ["Done, with tabs."], ["Here is the summary."], WAITING]


async def play_demo(write_line: WriteLine, workspace: Path) -> None:
    """Play the demo line by line. Cancelling stops the demo and everything that it started."""
    from hark.app.build import open_agent

    routes = [{"name": "demo", "provider": ScriptedProvider(REPLIES)}]
    approvals = {"mode": "all"}
    async with open_agent(routes=routes, workspace=workspace, store={"url": "memory"}, approvals=approvals) as agent:
        session = agent.session("demo")
        events = session.events()
        write_line("you: count to 200, slowly")
        await session.say("count to 200, slowly")
        await _show_until(events, lambda event: isinstance(event, ReplyDelta) and event.text == "8 ", write_line)
        write_line("you, while it counts: no, what is two and two?     (this interrupts)")
        await session.say("no, what is two and two?")
        await _show_until(events, _is_completed, write_line)
        write_line("you: look around")
        await session.say("look around")
        await _show_until(events, lambda event: isinstance(event, CallStart), write_line)
        write_line("you, while a tool runs: use tabs     (this steers: the model sees it at the next step)")
        await session.say("use tabs", "steer")
        write_line("you: then write a summary     (this is queued)")
        await session.say("then write a summary", "queue")
        await _show_until(events, _is_completed, write_line)
        await _show_until(events, _is_completed, write_line)
        write_line("you: wait ten minutes")
        await session.say("wait ten minutes")
        await _show_until(events, lambda event: isinstance(event, CallStart), write_line)
        write_line("you: stop")
        await session.interrupt()
        await _show_until(events, lambda event: isinstance(event, TurnEnd), write_line)


def _is_completed(event: AnyEvent) -> bool:
    return isinstance(event, TurnEnd) and isinstance(event.outcome, Completed)


async def _show_until(
    events: AsyncIterator[AnyEvent], is_last: Callable[[AnyEvent], bool], write_line: WriteLine
) -> None:
    """Write a line for each event, up to and including the event that `is_last` selects."""
    async for event in events:
        match event:
            case ReceiptChanged(receipt=receipt):
                write_line(f"  [{receipt.state}]")
            case CallStart(name=name, arguments=arguments):
                write_line(f"  {name} {arguments}")
            case CallEnd(name=name, effect=effect):
                write_line(f"  {name}: {effect}")
            case TurnEnd(outcome=Completed(text)):
                write_line(f"  hark: {text}")
            case TurnEnd(outcome=Interrupted(source), timings=timings):
                write_line(f"  stopped by {source} in {timings.settle:.1f} ms")
            case _:
                pass
        if is_last(event):
            return
