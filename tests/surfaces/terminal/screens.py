"""The main screens, each brought about by a person who types: pictures and snapshots are taken of them."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from hark.protocol.outcomes import Usage
from hark.protocol.provider import ReasoningChunk, UsageChunk
from hark.providers.scripted import Hang
from tests.surfaces.terminal.terminal_fixture import Seat, call, seat

Scene = Callable[[Path], AbstractAsyncContextManager[Seat]]

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
async def answer(home: Path) -> AsyncGenerator[Seat]:
    """A reply with thinking, a diff and Markdown."""

    async def change() -> str:
        """Change the file."""
        return DIFF

    script = [
        [ReasoningChunk("where is the time spent?"), "I look.", call("change")],
        [ANSWER, UsageChunk(Usage(1200, 160))],
    ]
    async with seat(home, script, size=(80, 36), tools=[change]) as one:
        await one.say("why is names() slow? @store.py")
        await one.until("done in")
        yield one


@asynccontextmanager
async def working(home: Path) -> AsyncGenerator[Seat]:
    """A command that runs, and messages that wait."""
    script = [["I run the tests first.\n", call("shell", command="printf 'test %s ok\\n' 1 2 3; sleep 600")]]
    async with seat(home, script) as one:
        await one.say("make the tests pass")
        await one.until("test 3 ok")
        for text in ("then write the changelog", "and open a pull request"):
            await one.say(text, "tab")
        await one.until(lambda: len(one.app.queue_panel.items) == 2)
        await one.type("use tabs, not sp")
        yield one


@asynccontextmanager
async def approval(home: Path) -> AsyncGenerator[Seat]:
    """A question before something that changes something."""
    script = [["I clean up.", call("shell", command="rm -r build")]]
    async with seat(home, script, approvals={"mode": "ask"}) as one:
        await one.say("clean the build folder")
        await one.until(lambda: one.app.questions.current)
        yield one


@asynccontextmanager
async def interrupted(home: Path) -> AsyncGenerator[Seat]:
    """A message that cut what ran."""
    script = [["I count: ", call("shell", command="echo one; sleep 600")], ["Letters: **a**, b, c."]]
    async with seat(home, script) as one:
        await one.say("count slowly")
        await one.until("  one")
        await one.say("no, letters please")
        await one.until("Letters")
        await one.rest()
        yield one


@asynccontextmanager
async def rewind(home: Path) -> AsyncGenerator[Seat]:
    """The list of messages to go back to."""
    async with seat(home, [["Done."], ["Done as well."]]) as one:
        for text in ("add a test for the parser", "now make it faster"):
            await one.say(text)
            await one.rest()
        await one.press("f4")
        await one.until(lambda: len(one.app.screen_stack) == 2)
        yield one


@asynccontextmanager
async def children(home: Path) -> AsyncGenerator[Seat]:
    """The tree of child agents."""
    hangs = [Hang(), Hang()]
    parts = [call("delegate", 1, goal="look through src"), call("delegate", 2, goal="look through tests")]
    async with seat(home, [["Two children look.", *parts], ["reading", hangs[0]], ["reading", hangs[1]]]) as one:
        await one.say("find every use of the old name")
        for hang in hangs:
            await hang.reached.wait()
        await one.press("f3")
        await one.until(lambda: len(one.app.screen_stack) == 2)
        yield one


@asynccontextmanager
async def completion(home: Path) -> AsyncGenerator[Seat]:
    """What a slash could become."""
    async with seat(home, []) as one:
        await one.type("/st")
        await one.until(lambda: "/status" in one.screen)
        yield one


@asynccontextmanager
async def small(home: Path) -> AsyncGenerator[Seat]:
    """A very small terminal, with wide letters and a question."""
    script = [["漢字 and 👍 fit.", call("ask", question="Go on?", choices=["yes", "no"])]]
    async with seat(home, script, size=(36, 14)) as one:
        await one.say("hello")
        await one.until(lambda: one.app.questions.current)
        yield one


SCENES: dict[str, Scene] = {
    "answer": answer,
    "working": working,
    "approval": approval,
    "interrupted": interrupted,
    "rewind": rewind,
    "children": children,
    "completion": completion,
    "small": small,
}
