"""A call's context for tests, and what lives of the processes that a test started."""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hark.protocol.tool import CallContext, NobodyToAsk, Question, Tool, ToolError, ToolOutput
from hark.tools.arguments import decode
from tests.waiting import until


class FakeContext:
    """Keeps what is shown; answers questions with the given text, or not at all."""

    def __init__(self, workspace: Path, answer: str | None = None) -> None:
        self.session = "session"
        self.turn = "turn"
        self.call = "call"
        self.workspace = workspace
        self.pieces: list[str] = []
        self.questions: list[Question] = []
        self.left: list[str] = []
        self._answer = answer
        self._changed = asyncio.Event()
        self._steered = asyncio.Event()

    @property
    def shown(self) -> str:
        return "".join(self.pieces)

    def output(self, text: str) -> None:
        self.pieces.append(text)
        self._changed.set()

    def left_running(self, what: str) -> None:
        self.left.append(what)

    async def ask(self, question: Question) -> str:
        self.questions.append(question)
        if self._answer is None:
            raise NobodyToAsk
        return self._answer

    def steer(self) -> None:
        """A message for the turn comes."""
        self._steered.set()

    async def steered(self) -> None:
        await self._steered.wait()

    async def until(self, is_there: Callable[[str], bool]) -> None:
        await until(lambda: is_there(self.shown), changed=self._changed, shows=lambda: self.shown)


async def call_tool(tool: Tool, arguments: dict[str, Any], context: CallContext) -> ToolOutput:
    """Call a tool as the engine does: arguments are decoded, and a ToolError becomes the result."""
    try:
        return await tool.run(decode(tool.spec, arguments), context)
    except ToolError as error:
        return error.as_output()


EXITING = 0x4  # of the kernel's flags of a process


def living(needle: str) -> dict[int, str]:
    """Return the processes that have this text in their environment, with their commands; zombies don't count."""
    found: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        try:
            is_one = entry.name.isdigit() and needle.encode() in (entry / "environ").read_bytes()
            if is_one and is_living(int(entry.name)):
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    return found


def is_living(pid: int) -> bool:
    """Tell whether a process may do anything yet. One that was killed can't, though on a busy machine it dies later."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    pending = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigPnd:", "ShdPnd:"))]
    is_killed = any(signals >> (signal.SIGKILL - 1) & 1 for signals in pending) or int(stat[6]) & EXITING
    return stat[0] not in "ZX" and not is_killed
