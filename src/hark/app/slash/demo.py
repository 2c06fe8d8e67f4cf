"""`/demo`: interrupt, steer, queue and stop at work, on a scripted model and real tools."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

from hark.protocol.events import AnyEvent, CallEnd, CallStart, ReceiptChanged, ReplyDelta, TurnEnd
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.provider import CallChunk
from hark.providers.scripted import Pause, ScriptedProvider, Step

Tell = Callable[[str], None]

COUNTING: list[Step] = [step for number in range(1, 200) for step in (f"{number} ", Pause(0.05))]
WAITING: list[Step] = ["I wait. ", CallChunk(0, "wait", "shell", '{"command": "sleep 600"}')]
WORKING: list[Step] = ["I look. ", CallChunk(0, "look", "shell", '{"command": "sleep 0.5; echo looked"}')]
REPLIES = [COUNTING, ["Four."], WORKING, ["Done, with tabs."], ["And the next thing is done."], WAITING]


async def play(tell: Tell, workspace: Path) -> None:
    """Play it, line by line. Cancelling ends it and all that it started."""
    from hark.app.build import open_agent

    routes = [{"name": "demo", "provider": ScriptedProvider(REPLIES)}]
    approvals = {"mode": "all"}
    async with open_agent(routes=routes, workspace=workspace, store={"url": "memory"}, approvals=approvals) as agent:
        session = agent.session("demo")
        events = session.events()
        tell("you: count to 200, slowly")
        await session.say("count to 200, slowly")
        await _until(events, lambda event: isinstance(event, ReplyDelta) and event.text == "8 ", tell)
        tell("you, while it counts: no, what is two and two?     (this interrupts)")
        await session.say("no, what is two and two?")
        await _until(events, _is_completed, tell)
        tell("you: look around")
        await session.say("look around")
        await _until(events, lambda event: isinstance(event, CallStart), tell)
        tell("you, while a tool runs: use tabs     (this steers: it goes in at the next step)")
        await session.say("use tabs", "steer")
        tell("you: and then the next thing     (this is queued)")
        await session.say("and then the next thing", "queue")
        await _until(events, _is_completed, tell)
        await _until(events, _is_completed, tell)
        tell("you: wait ten minutes")
        await session.say("wait ten minutes")
        await _until(events, lambda event: isinstance(event, CallStart), tell)
        tell("you: stop")
        await session.interrupt()
        await _until(events, lambda event: isinstance(event, TurnEnd), tell)


def _is_completed(event: AnyEvent) -> bool:
    return isinstance(event, TurnEnd) and isinstance(event.outcome, Completed)


async def _until(events: AsyncIterator[AnyEvent], is_there: Callable[[AnyEvent], bool], tell: Tell) -> None:
    """Tell what happens, up to the event that is waited for."""
    async for event in events:
        match event:
            case ReceiptChanged(receipt=receipt):
                tell(f"  [{receipt.state}]")
            case CallStart(name=name, arguments=arguments):
                tell(f"  {name} {arguments}")
            case CallEnd(name=name, effect=effect):
                tell(f"  {name}: {effect}")
            case TurnEnd(outcome=Completed(text)):
                tell(f"  hark: {text}")
            case TurnEnd(outcome=Interrupted(source), timings=timings):
                tell(f"  stopped by {source} in {timings.settle:.1f} ms")
            case _:
                pass
        if is_there(event):
            return
