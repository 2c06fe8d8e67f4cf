"""The tool that runs Python code, with variables that stay."""

import math
import shlex
import signal
from typing import Annotated

import anyio

from hark.processes.output import OutputBuffer, new_output
from hark.processes.python.process import CodeResult, PythonProcess
from hark.processes.start import Launcher
from hark.protocol.messages import Effect
from hark.protocol.tool import CallContext, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, doc, tool_spec
from hark.tools.shell import TimeLimit, runs_command


class PythonArguments(ToolArguments, frozen=True):
    """Run Python code in the workspace and return what it printed, and the value of its last expression.

    Variables, imports and threads stay from call to call, until a call is cut or runs into its time limit. The
    project's .venv is used if there is one. Nobody is at its keyboard: input() fails.
    """

    code: Annotated[str, doc("The code.")]
    timeout_seconds: TimeLimit = math.inf


class PythonTool:
    """Runs code in one process per session, which begins with the first call. The app calls `close` at its end."""

    spec = tool_spec(
        PythonArguments,
        "python",
        is_changing=True,
        grace_seconds=0.9,
        foresee=lambda arguments: runs_command(f"python3 -c {shlex.quote(arguments.code)}", arguments.code),
    )

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self._processes: dict[str, PythonProcess] = {}
        self._turns: dict[str, anyio.Lock] = {}
        self._lost: dict[str, str] = {}
        self._is_closed = False

    async def run(self, arguments: PythonArguments, context: CallContext) -> ToolOutput:
        """Run the code to its end, or to its time limit. Cancelling kills the process with all that it started."""
        async with self._turns.setdefault(context.session, anyio.Lock()):
            try:
                process = await self._process(context)
            except (OSError, ValueError) as error:
                raise ToolError(f"Python could not be started: {error}.") from error
            return await self._run(process, arguments, context)

    async def end(self, session: str) -> None:
        """End a session's process, within a second: the session is over."""
        self._lost.pop(session, None)
        self._turns.pop(session, None)
        if process := self._processes.pop(session, None):
            await process.kill()

    async def close(self) -> None:
        """End all processes, side by side and within a second, and start none any more."""
        self._is_closed = True
        async with anyio.create_task_group() as group:
            for session in tuple(self._processes):
                group.start_soon(self.end, session)

    async def _process(self, context: CallContext) -> PythonProcess:
        process = self._processes.get(context.session)
        if process and not process.is_alive:
            del self._processes[context.session]
            self._lost[context.session] = f"the process {_how(await process.kill())}"
        if self._is_closed:
            raise ValueError("the app is ending")
        if context.session not in self._processes:
            self._processes[context.session] = PythonProcess(self._launcher, context.workspace)
        return self._processes[context.session]

    async def _run(self, process: PythonProcess, arguments: PythonArguments, context: CallContext) -> ToolOutput:
        limit = arguments.timeout_seconds
        printed = OutputBuffer(context.output, new_output(self._launcher.outputs, "python"))
        before = self._lost.pop(context.session, "")
        notes = [f"a new Python process: the earlier variables are lost, since {before}"] if before else []
        answer: CodeResult | None = None
        code: int | None = None
        self._lost[context.session] = "the call before was cut"
        try:
            with anyio.move_on_after(limit) as scope:
                answer = await process.run(arguments.code, printed.receive)
        finally:
            if answer is None:
                with anyio.CancelScope(shield=True):  # bounded by the kill itself
                    code = await process.kill()
                self._processes.pop(context.session, None)
            printed.close()
        if scope.cancelled_caught:
            self._lost[context.session] = "the call before ran into its time limit"
            notes.append(f"stopped after its time limit of {limit:g} seconds; the Python process is gone")
            return _output(printed, notes, is_error=True, effect=Effect.CANCELLED)
        if answer is None:
            self._lost[context.session] = f"the process {_how(code)}"
            notes.append(f"the Python process {_how(code)} before the code had ended; its variables are lost")
            return _output(printed, notes, is_error=True, effect=Effect.UNKNOWN)
        self._lost.pop(context.session)
        return _output(printed, [*notes, answer.note], is_error=answer.is_error)


def _output(
    printed: OutputBuffer, notes: list[str], *, is_error: bool = False, effect: Effect = Effect.COMPLETED
) -> ToolOutput:
    text = printed.text.removesuffix("\n")
    lines = [f"[{note}]" for note in notes if note]
    return ToolOutput("\n".join([text, *lines] if text else lines) or "(no output)", is_error, effect)


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        return f"was ended by signal {-code} ({signal.strsignal(-code)})"
    return f"left with exit code {code}"
