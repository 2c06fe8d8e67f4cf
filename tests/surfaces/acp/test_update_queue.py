"""What waits for a slow editor."""

import asyncio

from acp.schema import AgentMessageChunk, AgentThoughtChunk, TextContentBlock, ToolCallProgress

from hark.surfaces.acp.tool_calls import ShownCall
from hark.surfaces.acp.update_queue import Update, UpdateQueue


class Slow:
    """An editor that takes an update when it is let."""

    def __init__(self) -> None:
        self.got: list[Update] = []
        self.may_take = asyncio.Semaphore(0)

    async def send(self, update: Update) -> None:
        await self.may_take.acquire()
        self.got.append(update)

    def texts(self) -> list[str]:
        found: list[str] = []
        for update in self.got:
            if isinstance(update, AgentMessageChunk | AgentThoughtChunk):
                assert isinstance(update.content, TextContentBlock)
                found.append(update.content.text)
        return found


async def test_pieces_that_wait_are_joined_in_order() -> None:
    slow = Slow()
    outbox = UpdateQueue(slow.send)
    running = asyncio.create_task(outbox.run())
    outbox.say("a")
    await asyncio.sleep(0)  # this piece is being sent now
    for piece in "bcd":
        outbox.say(piece)
    outbox.say("hm", is_thought=True)
    outbox.say("e")
    for _ in range(4):
        slow.may_take.release()
    await outbox.flushed()
    assert slow.texts() == ["a", "bcd", "hm", "e"]
    running.cancel()


async def test_only_the_newest_output_of_each_tool_waits() -> None:
    slow = Slow()
    outbox = UpdateQueue(slow.send)
    calls = [ShownCall(name, "shell", "{}", "/") for name in ("c1", "c2")]
    for number in range(100):
        for call in calls:
            outbox.print(call, f"line {number}")
    running = asyncio.create_task(outbox.run())
    for _ in range(2):
        slow.may_take.release()
    await outbox.flushed()
    assert [update.tool_call_id for update in slow.got if isinstance(update, ToolCallProgress)] == ["c1", "c2"]
    assert all("line 99" in str(update) for update in slow.got)
    running.cancel()
