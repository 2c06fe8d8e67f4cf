"""The `process` tool: manages background processes."""

from typing import Annotated, Literal, Protocol

import anyio

from hark.processes.background import BackgroundProcess, BackgroundProcessError, BackgroundProcesses
from hark.processes.launcher import WaitFunction, wait_for_first
from hark.protocol.messages import Effect
from hark.protocol.tool import CallContext, PredictedEffects, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, doc, tool_spec
from hark.tools.shell import command_effects, format_processes

START_SECONDS = 0.3
STOP_GRACE_SECONDS = 3.0
WRITE_SECONDS = 5.0
WAIT_SECONDS = 30.0
RECHECK_SECONDS = 0.02
MESSAGE_ARRIVED = "a message arrived, so the wait ended early; the process is still running"


class ProcessArguments(ToolArguments, frozen=True):
    """Manage background processes, such as servers and watchers.

    They continue when a turn ends or is interrupted, and end with the session. `start` runs a `command`, with an
    optional `name`, in the shell's folder and with its exported variables. `list` shows the processes. `read` returns
    the output since the last read. `write` sends `text` to standard input; `close` closes it. `wait` waits until the
    process ends or prints `pattern`; without an `id` it just waits. `stop` ends a process and everything it started.
    A message from the user ends a wait early.
    """

    action: Literal["start", "list", "read", "write", "wait", "stop"]
    id: Annotated[str, doc("For read, write, wait and stop: the name of the process.")] = ""
    command: Annotated[str, doc("For start: the command, as typed into a shell.")] = ""
    name: Annotated[str, doc("For start: the name of the process (default: p1, p2, ...).")] = ""
    text: Annotated[str, doc("For write: the text. Each line must end with a newline.")] = ""
    close: Annotated[bool, doc("For write: close standard input after the text.")] = False
    pattern: Annotated[
        str, doc("For wait: plain text to wait for in the unread output; * matches anything in a line.")
    ] = ""
    wait_seconds: Annotated[
        float | None, doc("The maximum time to wait. For read: wait for new output (default 0). For wait: default 30.")
    ] = None

    def wait_seconds_or(self, default: float) -> float:
        """Return `wait_seconds`, or the default if it is not set. Never negative."""
        return default if self.wait_seconds is None else max(0.0, self.wait_seconds)


def _predict_effects(arguments: ProcessArguments) -> PredictedEffects:
    if arguments.action == "start":
        return command_effects(arguments.command, arguments.command)
    subject = f"{arguments.action} {arguments.id}".strip()
    return PredictedEffects(is_changing=arguments.action in ("write", "stop"), subject=subject, writes=())


class ProcessWatch(Protocol):
    """Reports the end of a process to its session, unless the model has read about it."""

    async def watch_process(self, session: str, process: BackgroundProcess) -> None:
        """Record a process that outlives its call, and report its end. A second call has no effect.

        Cancelling only ends the wait for the record.
        """
        ...

    def note_end_read(self, session: str, process: BackgroundProcess) -> None:
        """Note that the model has read that the process ended. Returns immediately."""
        ...


class ProcessTool:
    """The tool that starts, shows and stops the session's processes. `background` owns the processes."""

    def __init__(self, background: BackgroundProcesses, watch: ProcessWatch | None = None) -> None:
        self._background = background
        self._watch = watch
        self.spec = tool_spec(
            ProcessArguments,
            "process",
            is_changing=True,
            grace_seconds=0.9,
            predict=_predict_effects,
            folder_of=background.states.get_folder,
        )

    async def run(self, arguments: ProcessArguments, context: CallContext) -> ToolOutput:
        """Run one action. Stopping a start stops the new process; cancelling another action changes nothing."""
        if problem := _find_problem(arguments):
            raise ToolError(problem)
        output = await self._run_action(arguments, context)
        for process in self._background.list_processes(context.session) if self._watch else ():
            is_shown = arguments.action == "list" or process.name == arguments.id
            if self._watch and is_shown and not process.is_running:
                self._watch.note_end_read(context.session, process)
        return output

    async def _run_action(self, arguments: ProcessArguments, context: CallContext) -> ToolOutput:
        match arguments.action:
            case "start":
                return await self._start(arguments, context)
            case "list":
                return ToolOutput(
                    "\n".join(map(str, self._background.list_processes(context.session))) or "No processes."
                )
            case "wait" if not arguments.id:
                return await _wait_without_process(arguments.wait_seconds_or(WAIT_SECONDS), context)
            case "read":
                return await _read_output(self._find_process(arguments, context), arguments.wait_seconds_or(0), context)
            case "write":
                return await _write_input(
                    self._find_process(arguments, context), arguments.text, closes=arguments.close
                )
            case "wait":
                seconds = arguments.wait_seconds_or(WAIT_SECONDS)
                return await _wait_for(self._find_process(arguments, context), arguments.pattern, seconds, context)
            case "stop":
                return await _stop_process(self._find_process(arguments, context))

    def _find_process(self, arguments: ProcessArguments, context: CallContext) -> BackgroundProcess:
        process = self._background.get(context.session, arguments.id)
        if process is None:
            known = ", ".join(one.name for one in self._background.list_processes(context.session)) or "none"
            raise ToolError(f"No process named {arguments.id} in this session. Processes: {known}.")
        return process

    async def _start(self, arguments: ProcessArguments, context: CallContext) -> ToolOutput:
        name, command = arguments.name, arguments.command
        try:
            process = self._background.start(context.session, context.workspace, command, name)
        except BackgroundProcessError as error:
            raise ToolError(str(error)) from error
        except (OSError, ValueError) as error:
            raise ToolError(f"The process could not be started: {error}.") from error
        try:
            with anyio.move_on_after(START_SECONDS):  # commands that fail mostly fail at once
                await wait_for_first(process.wait_until_ended, context.wait_for_steer)
            is_left = await self._leave_running(context.session, process)
        except anyio.get_cancelled_exc_class():
            if not context.is_cut_by_message:
                # A stopped call has not done its work, so it must not leave a process that is never used.
                with anyio.CancelScope(shield=True):
                    await process.stop()
                self._background.remove(context.session, process)
                raise
            is_left = await self._leave_running(context.session, process)
        if is_left:
            return ToolOutput(f"Started {process.name} (pid {process.pid}). Use the read action to see its output.")
        return _build_output(process, is_error=process.exit_code != 0)

    async def _leave_running(self, session: str, process: BackgroundProcess) -> bool:
        """Watch a process that outlives its call. Return False if it has ended."""
        is_running = process.is_running
        if is_running and self._watch:
            await self._watch.watch_process(session, process)
        return is_running


async def _read_output(process: BackgroundProcess, seconds: float, context: CallContext) -> ToolOutput:
    is_steered = False
    if process.is_running and not process.output.unread_count and seconds:
        is_steered = await _wait_for_any(seconds, context, process.wait_until_ended, process.output.wait_for_more)
    return _build_output(process, MESSAGE_ARRIVED if is_steered and process.is_running else "")


async def _write_input(process: BackgroundProcess, text: str, *, closes: bool) -> ToolOutput:
    size = len(text.encode(errors="replace"))
    if not process.is_running:
        raise ToolError(f"{process.name} is not running: it {process.status_text}.")
    written_bytes = 0
    with anyio.move_on_after(WRITE_SECONDS):
        written_bytes = await process.write(text, close_input=closes)
    if written_bytes == size:
        return ToolOutput(f"Wrote to {process.name}." + (" Its input is closed." if closes else ""))
    return ToolOutput(
        f"{process.name} did not accept all of the text: its input is closed, or it is not reading.",
        is_error=True,
        effect=Effect.UNKNOWN,
    )


async def _wait_for(process: BackgroundProcess, pattern: str, seconds: float, context: CallContext) -> ToolOutput:
    async def pattern_found() -> None:
        while not contains_pattern(pattern, process.output.peek()):
            await process.output.wait_for_more()
            await anyio.sleep(RECHECK_SECONDS)

    is_steered = await _wait_for_any(seconds, context, process.wait_until_ended, *((pattern_found,) if pattern else ()))
    if pattern and contains_pattern(pattern, process.output.peek()):
        return _build_output(process, f"it printed {pattern!r}")
    if not process.is_running:
        return _build_output(process, f"it never printed {pattern!r}" if pattern else "")
    return _build_output(process, MESSAGE_ARRIVED if is_steered else f"waited {seconds:g} s; it is still running")


async def _wait_without_process(seconds: float, context: CallContext) -> ToolOutput:
    is_steered = await _wait_for_any(seconds, context)
    return ToolOutput("A message arrived, so the wait ended early." if is_steered else f"Waited {seconds:g} s.")


async def _wait_for_any(seconds: float, context: CallContext, *waits: WaitFunction) -> bool:
    """Wait until one of `waits` ends, a message arrives or `seconds` have passed. Return whether a message arrived."""
    is_steered = False

    async def wait_for_steer() -> None:
        nonlocal is_steered
        await context.wait_for_steer()
        is_steered = True

    with anyio.move_on_after(seconds):
        await wait_for_first(wait_for_steer, *waits)
    return is_steered


async def _stop_process(process: BackgroundProcess) -> ToolOutput:
    if not process.is_running:
        return _build_output(process, "it had already ended")
    await process.stop(STOP_GRACE_SECONDS)
    if process.stopped.left:
        return _build_output(process, f"could not be stopped: {format_processes(process.stopped.left)}", is_error=True)
    return _build_output(process, "stopped")


def contains_pattern(pattern: str, text: str) -> bool:
    """Return whether any line contains the pattern, in which `*` matches any text. Takes linear time."""
    return any(_line_contains(pattern.split("*"), line) for line in text.splitlines())


def _line_contains(parts: list[str], line: str) -> bool:
    position = 0
    for part in parts:
        position = line.find(part, position)
        if position < 0:
            return False
        position += len(part)
    return True


def _build_output(process: BackgroundProcess, *notes: str, is_error: bool = False) -> ToolOutput:
    """Return the unread output and the state of the process."""
    text = process.output.read().removesuffix("\n") or "(no new output)"
    lines = [f"[{note}]" for note in (*notes, f"{process.name}: {process.status_text}") if note]
    return ToolOutput("\n".join([text, *lines]), is_error)


def _find_problem(arguments: ProcessArguments) -> str | None:
    action = arguments.action
    if action == "start" and not arguments.command.strip():
        return "start needs a command. Call it again with command."
    if action in ("read", "write", "stop") and not arguments.id:
        return f"{action} needs id, the name of the process. The list action shows the names."
    if action == "wait" and arguments.pattern and not arguments.id:
        return "wait needs id to search for a pattern. The list action shows the processes."
    return None
