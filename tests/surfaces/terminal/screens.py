"""Scenarios that show the main screens of the terminal app, for screenshots and snapshots."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from hark.protocol.outcomes import Usage
from hark.protocol.provider import ReasoningChunk, UsageChunk
from hark.providers.scripted import Hang
from tests.surfaces.terminal.terminal_fixture import TerminalFixture, call, open_terminal

Scene = Callable[[Path], AbstractAsyncContextManager[TerminalFixture]]

ANSWER = """\
## Why it was slow

The loop asked for **each row** with a query of its own. One query is enough:

```python
def names(store):
    return [row.name for row in store.all()]
```

1. measured: `2.4 s` before, `0.1 s` after
2. the tests pass
"""
DIFF = """\
@@ -1,3 +1,2 @@
 def names(store):
-    return [store.get(key).name for key in store.keys()]
+    return [row.name for row in store.all()]
"""


@asynccontextmanager
async def show_answer(home: Path) -> AsyncGenerator[TerminalFixture]:
    """A reply with thinking, a diff and Markdown."""

    async def change() -> str:
        """Change the file."""
        return DIFF

    script = [
        [ReasoningChunk("where is the time spent?"), "I'll check.", call("change")],
        [ANSWER, UsageChunk(Usage(1200, 160))],
    ]
    async with open_terminal(home, script, size=(80, 36), tools=[change]) as terminal:
        await terminal.send("why is names() slow? @store.py")
        await terminal.until("done in")
        yield terminal


@asynccontextmanager
async def show_working(home: Path) -> AsyncGenerator[TerminalFixture]:
    """A running command with queued messages."""
    script = [["I'll run the tests first.\n", call("shell", command="printf 'test %s ok\\n' 1 2 3; sleep 600")]]
    async with open_terminal(home, script) as terminal:
        await terminal.send("make the tests pass")
        await terminal.until("test 3 ok")
        for text in ("then write the changelog", "and open a pull request"):
            await terminal.send(text, "tab")
        await terminal.until(lambda: len(terminal.app.queue_panel.items) == 2)
        await terminal.type("use tabs, not sp")
        yield terminal


@asynccontextmanager
async def show_approval(home: Path) -> AsyncGenerator[TerminalFixture]:
    """An approval question before a command that changes files."""
    script = [["I'll clean up.", call("shell", command="rm -r build")]]
    async with open_terminal(home, script, approvals={"mode": "ask"}) as terminal:
        await terminal.send("clean the build folder")
        await terminal.until(lambda: terminal.app.questions.current)
        yield terminal


@asynccontextmanager
async def show_interrupted(home: Path) -> AsyncGenerator[TerminalFixture]:
    """A message that interrupted a running command."""
    script = [["I count: ", call("shell", command="echo one; sleep 600")], ["Letters: **a**, b, c."]]
    async with open_terminal(home, script) as terminal:
        await terminal.send("count slowly")
        await terminal.until("  one")
        await terminal.send("no, letters please")
        await terminal.until("Letters")
        await terminal.wait_until_idle()
        yield terminal


@asynccontextmanager
async def show_rewind(home: Path) -> AsyncGenerator[TerminalFixture]:
    """The list of messages to rewind to."""
    async with open_terminal(home, [["Done."], ["Done as well."]]) as terminal:
        for text in ("add a test for the parser", "now make it faster"):
            await terminal.send(text)
            await terminal.wait_until_idle()
        await terminal.press("f4")
        await terminal.until(lambda: len(terminal.app.screen_stack) == 2)
        yield terminal


@asynccontextmanager
async def show_children(home: Path) -> AsyncGenerator[TerminalFixture]:
    """The tree of child agents."""
    hangs = [Hang(), Hang()]
    calls = [call("delegate", 1, goal="search src"), call("delegate", 2, goal="search tests")]
    async with open_terminal(
        home, [["Two children are searching.", *calls], ["reading", hangs[0]], ["reading", hangs[1]]]
    ) as terminal:
        await terminal.send("find every use of the old name")
        for hang in hangs:
            await hang.reached.wait()
        await terminal.press("f3")
        await terminal.until(lambda: len(terminal.app.screen_stack) == 2)
        yield terminal


@asynccontextmanager
async def show_completion(home: Path) -> AsyncGenerator[TerminalFixture]:
    """The completion list for a slash command."""
    async with open_terminal(home, []) as terminal:
        await terminal.type("/st")
        await terminal.until(lambda: "/status" in terminal.screen)
        yield terminal


@asynccontextmanager
async def show_small(home: Path) -> AsyncGenerator[TerminalFixture]:
    """A very small terminal with wide characters and a question."""
    script = [["漢字 and 👍 fit.", call("ask", question="Continue?", choices=["yes", "no"])]]
    async with open_terminal(home, script, size=(36, 14)) as terminal:
        await terminal.send("hello")
        await terminal.until(lambda: terminal.app.questions.current)
        yield terminal


SCENES: dict[str, Scene] = {
    "answer": show_answer,
    "working": show_working,
    "approval": show_approval,
    "interrupted": show_interrupted,
    "rewind": show_rewind,
    "children": show_children,
    "completion": show_completion,
    "small": show_small,
}
