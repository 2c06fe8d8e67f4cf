"""The `python` tool: runs Python code in a process that preserves variables between calls."""

import math
import shlex
import signal
from typing import Annotated

import anyio

from hark.processes.launcher import Launcher
from hark.processes.output import OutputBuffer, new_output_file
from hark.processes.python.process import CodeResult, PythonProcess
from hark.protocol.messages import Effect
from hark.protocol.tool import CallContext, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, doc, tool_spec
from hark.tools.shell import TimeLimit, command_effects


class PythonArguments(ToolArguments, frozen=True):
    """Run Python code in the workspace. Returns its output, and the value of its last expression.

    Variables, imports and threads persist from call to call, until a call is interrupted or reaches its time limit.
    The project's .venv is used if it exists. There is no keyboard input: input() fails.
    """

    code: Annotated[str, doc("The Python code to run.")]
    timeout_seconds: TimeLimit = math.inf


class PythonTool:
    """The tool that runs code in one process per session, started by the first call. The app calls `close` at exit."""

    spec = tool_spec(
        PythonArguments,
        "python",
        is_changing=True,
        grace_seconds=0.9,
        predict=lambda arguments: command_effects(f"python3 -c {shlex.quote(arguments.code)}", arguments.code),
    )

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self._processes: dict[str, PythonProcess] = {}
        self._locks: dict[str, anyio.Lock] = {}
        self._loss_reasons: dict[str, str] = {}
        self._is_closed = False

    async def run(self, arguments: PythonArguments, context: CallContext) -> ToolOutput:
        """Run the code until it ends or times out. Cancelling kills the process and everything it started."""
        async with self._locks.setdefault(context.session, anyio.Lock()):
            try:
                process = await self._get_process(context)
            except (OSError, ValueError) as error:
                raise ToolError(f"Python could not be started: {error}.") from error
            return await self._run(process, arguments, context)

    async def end_session(self, session: str) -> None:
        """Kill the process of a session that has ended, within a second."""
        self._loss_reasons.pop(session, None)
        self._locks.pop(session, None)
        if process := self._processes.pop(session, None):
            await process.kill()

    async def close(self) -> None:
        """Kill all processes in parallel within a second. Later calls can't start new processes."""
        self._is_closed = True
        async with anyio.create_task_group() as group:
            for session in tuple(self._processes):
                group.start_soon(self.end_session, session)

    async def _get_process(self, context: CallContext) -> PythonProcess:
        process = self._processes.get(context.session)
        if process and not process.is_alive:
            del self._processes[context.session]
            self._loss_reasons[context.session] = f"the process {_describe_exit(await process.kill())}"
        if self._is_closed:
            raise ValueError("Hark is shutting down")
        if context.session not in self._processes:
            self._processes[context.session] = PythonProcess(self._launcher, context.workspace)
        return self._processes[context.session]

    async def _run(self, process: PythonProcess, arguments: PythonArguments, context: CallContext) -> ToolOutput:
        limit_seconds = arguments.timeout_seconds
        output = OutputBuffer(context.output, new_output_file(self._launcher.outputs_folder, "python"))
        loss_reason = self._loss_reasons.pop(context.session, "")
        notes = [f"a new Python process: the earlier variables are lost because {loss_reason}"] if loss_reason else []
        result: CodeResult | None = None
        code: int | None = None
        self._loss_reasons[context.session] = "the previous call was interrupted"
        try:
            with anyio.move_on_after(limit_seconds) as scope:
                result = await process.run(arguments.code, output.receive)
        finally:
            if result is None:
                with anyio.CancelScope(shield=True):  # the kill has its own time limit
                    code = await process.kill()
                self._processes.pop(context.session, None)
            output.close()
        if scope.cancelled_caught:
            self._loss_reasons[context.session] = "the previous call reached its time limit"
            notes.append(f"stopped after its time limit of {limit_seconds:g} seconds; the Python process was killed")
            return _build_output(output, notes, is_error=True, effect=Effect.CANCELLED)
        if result is None:
            self._loss_reasons[context.session] = f"the process {_describe_exit(code)}"
            notes.append(f"the Python process {_describe_exit(code)} before the code finished; its variables are lost")
            return _build_output(output, notes, is_error=True, effect=Effect.UNKNOWN)
        self._loss_reasons.pop(context.session)
        return _build_output(output, [*notes, result.note], is_error=result.is_error)


def _build_output(
    output: OutputBuffer, notes: list[str], *, is_error: bool = False, effect: Effect = Effect.COMPLETED
) -> ToolOutput:
    text = output.text.removesuffix("\n")
    lines = [f"[{note}]" for note in notes if note]
    return ToolOutput("\n".join([text, *lines] if text else lines) or "(no output)", is_error, effect)


def _describe_exit(code: int | None) -> str:
    if code is not None and code < 0:
        return f"was killed by signal {-code} ({signal.strsignal(-code)})"
    return f"exited with code {code}"
