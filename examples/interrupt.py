"""Interrupts a turn and queues a message, with a scripted provider instead of a model."""

import asyncio
import tempfile

import hark
from hark.providers.scripted import Pause, ScriptedProvider

COUNTING = [step for number in range(1, 301) for step in (f"{number} ", Pause(0.02))]


async def main() -> None:
    """Interrupt a slow count with a question, queue another question, and print how each turn ended."""
    provider = ScriptedProvider([COUNTING, [Pause(0.3), "Paris."], ["It has about two million people."]])
    with tempfile.TemporaryDirectory() as home:
        async with hark.open(home=home, routes=[{"name": "script", "provider": provider}]) as agent:
            session = agent.session("demo")
            events = session.events()
            await session.say("count to 300 slowly")
            await asyncio.sleep(0.5)
            print((await session.say("no: what is the capital of France?")).state)
            print((await session.say("and how many live there?", delivery="queue")).state)
            ended_turns = 0
            async for event in events:
                if isinstance(event, hark.events.TurnEnd):
                    print(event.outcome, f"settled in {event.timings.settle:.2f} ms")
                    ended_turns += 1
                    if ended_turns == 3:
                        break


if __name__ == "__main__":
    asyncio.run(main())
