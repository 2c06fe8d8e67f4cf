"""A fake call context, and functions that find the processes a test started."""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hark.protocol.tool import CallContext, NoUserToAsk, Question, Tool, ToolError, ToolOutput
from hark.tools.arguments import decode_arguments
from tests.waiting import until


class FakeContext:
    """A fake call context that records output. Questions get `answer`, or raise NoUserToAsk if `answer` is None."""

    def __init__(self, workspace: Path, answer: str | None = None) -> None:
        self.session = "session"
        self.turn = "turn"
        self.call = "call"
        self.workspace = workspace
        self.is_cut_by_message = False
        self.pieces: list[str] = []
        self.questions: list[Question] = []
        self.left_running_names: list[str] = []
        self._answer = answer
        self._changed = asyncio.Event()
        self._steered = asyncio.Event()

    @property
    def shown(self) -> str:
        return "".join(self.pieces)

    def output(self, text: str) -> None:
        self.pieces.append(text)
        self._changed.set()

    def report_unstopped(self, name: str) -> None:
        self.left_running_names.append(name)

    async def ask(self, question: Question) -> str:
        self.questions.append(question)
        if self._answer is None:
            raise NoUserToAsk
        return self._answer

    def steer(self) -> None:
        """Simulate a steering message."""
        self._steered.set()

    async def wait_for_steer(self) -> None:
        await self._steered.wait()

    async def wait_until_shown(self, condition: Callable[[str], bool]) -> None:
        await until(lambda: condition(self.shown), changed=self._changed, shows=lambda: self.shown)


async def call_tool(tool: Tool, arguments: dict[str, Any], context: CallContext) -> ToolOutput:
    """Call a tool as the engine does: decode the arguments, and turn a ToolError into the result."""
    try:
        return await tool.run(decode_arguments(tool.spec, arguments), context)
    except ToolError as error:
        return error.as_output()


EXITING = 0x4  # PF_EXITING, a process flag of the kernel


def find_processes(environment_text: str) -> dict[int, str]:
    """Return the command lines, by pid, of live processes (not zombies) with this text in their environment."""
    found: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        try:
            is_match = entry.name.isdigit() and environment_text.encode() in (entry / "environ").read_bytes()
            if is_match and is_alive(int(entry.name)):
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    return found


def is_alive(pid: int) -> bool:
    """Return whether a process can still run code. A killed process can't, even if it has not exited yet."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    pending = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigPnd:", "ShdPnd:"))]
    is_killed = any(signals >> (signal.SIGKILL - 1) & 1 for signals in pending) or int(stat[6]) & EXITING
    return stat[0] not in "ZX" and not is_killed
