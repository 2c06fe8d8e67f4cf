"""Updates that are queued for a slow editor."""

import asyncio

from acp.schema import AgentMessageChunk, AgentThoughtChunk, TextContentBlock, ToolCallProgress

from hark.surfaces.acp.tool_calls import EditorToolCall
from hark.surfaces.acp.update_queue import Update, UpdateQueue


class SlowEditor:
    """A fake editor that accepts an update only when the test allows it."""

    def __init__(self) -> None:
        self.received: list[Update] = []
        self.permits = asyncio.Semaphore(0)

    async def send(self, update: Update) -> None:
        await self.permits.acquire()
        self.received.append(update)

    def texts(self) -> list[str]:
        found: list[str] = []
        for update in self.received:
            if isinstance(update, AgentMessageChunk | AgentThoughtChunk):
                assert isinstance(update.content, TextContentBlock)
                found.append(update.content.text)
        return found


async def test_queued_text_is_merged_in_order() -> None:
    editor = SlowEditor()
    updates = UpdateQueue(editor.send)
    running = asyncio.create_task(updates.run())
    updates.add_text("a")
    await asyncio.sleep(0)  # this text is being sent now
    for piece in "bcd":
        updates.add_text(piece)
    updates.add_text("hm", is_thought=True)
    updates.add_text("e")
    for _ in range(4):
        editor.permits.release()
    await updates.wait_until_sent()
    assert editor.texts() == ["a", "bcd", "hm", "e"]
    running.cancel()


async def test_only_the_latest_output_from_each_tool_is_queued() -> None:
    editor = SlowEditor()
    updates = UpdateQueue(editor.send)
    calls = [EditorToolCall(name, "shell", "{}", "/") for name in ("c1", "c2")]
    for number in range(100):
        for call in calls:
            updates.add_output(call, f"line {number}")
    running = asyncio.create_task(updates.run())
    for _ in range(2):
        editor.permits.release()
    await updates.wait_until_sent()
    assert [update.tool_call_id for update in editor.received if isinstance(update, ToolCallProgress)] == ["c1", "c2"]
    assert all("line 99" in str(update) for update in editor.received)
    running.cancel()
