"""The tool for processes in the background."""

from typing import Annotated, Literal

import anyio

from hark.processes.background import Background, BackgroundProcess, BackgroundRefused
from hark.processes.start import Wait, first_of
from hark.protocol.messages import Effect
from hark.protocol.tool import CallContext, Foreseen, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, doc, tool_spec
from hark.tools.shell import names, runs_command

START_SECONDS = 0.3
STOP_GRACE_SECONDS = 3.0
WRITE_SECONDS = 5.0
WAIT_SECONDS = 30.0
LOOK_SECONDS = 0.02
MESSAGE_CAME = "a message came, so this ended early; the process runs on"


class ProcessArguments(ToolArguments, frozen=True):
    """Processes in the background, such as servers and watchers.

    They go on when a turn ends or is interrupted, and end with the session. Actions: start a `command` (with a `name`
    to know it by), in the folder and with the exported variables of the shell; list them; read what a process printed
    since the last read; write `text` to its standard input (`close` ends that input); wait until it ends, or until it
    prints `pattern`, or without an `id` just wait; stop it with all that it started. A message from the user ends a
    wait early.
    """

    action: Literal["start", "list", "read", "write", "wait", "stop"]
    id: Annotated[str, doc("The process, by its name, for read, write, wait and stop.")] = ""
    command: Annotated[str, doc("For start: the command, as typed into a shell.")] = ""
    name: Annotated[str, doc("For start: what to call it. Without it, it is p1, p2 ...")] = ""
    text: Annotated[str, doc("For write: the text; a line needs its newline.")] = ""
    close: Annotated[bool, doc("For write: close its standard input behind the text.")] = False
    pattern: Annotated[
        str, doc("For wait: plain text to wait for in what was not read yet; * is anything in a line.")
    ] = ""
    wait_seconds: Annotated[
        float | None, doc("How long to wait at most. For read: for new output (default 0). For wait: default 30.")
    ] = None

    def seconds(self, default: float) -> float:
        """Return how long to wait."""
        return default if self.wait_seconds is None else max(0.0, self.wait_seconds)


def _foresee(arguments: ProcessArguments) -> Foreseen:
    if arguments.action == "start":
        return runs_command(arguments.command, arguments.command)
    subject = f"{arguments.action} {arguments.id}".strip()
    return Foreseen(is_changing=arguments.action in ("write", "stop"), subject=subject, writes=())


class ProcessTool:
    """Starts, shows and ends the session's processes in `background`."""

    def __init__(self, background: Background) -> None:
        self._background = background
        self.spec = tool_spec(
            ProcessArguments,
            "process",
            is_changing=True,
            grace_seconds=0.9,
            foresee=_foresee,
            folder_of=background.states.folder,
        )

    async def run(self, arguments: ProcessArguments, context: CallContext) -> ToolOutput:
        """Do one action. Cancelling a start ends what it started; cancelling another leaves the process as it is."""
        if problem := _problem(arguments):
            raise ToolError(problem)
        match arguments.action:
            case "start":
                return await self._start(arguments, context)
            case "list":
                return ToolOutput("\n".join(map(str, self._background.of(context.session))) or "No processes.")
            case "wait" if not arguments.id:
                return await _wait_only(arguments.seconds(WAIT_SECONDS), context)
            case "read":
                return await _read(self._process(arguments, context), arguments.seconds(0), context)
            case "write":
                return await _write(self._process(arguments, context), arguments.text, closes=arguments.close)
            case "wait":
                seconds = arguments.seconds(WAIT_SECONDS)
                return await _wait(self._process(arguments, context), arguments.pattern, seconds, context)
            case "stop":
                return await _stop(self._process(arguments, context))

    def _process(self, arguments: ProcessArguments, context: CallContext) -> BackgroundProcess:
        process = self._background.get(context.session, arguments.id)
        if process is None:
            known = ", ".join(one.name for one in self._background.of(context.session)) or "none"
            raise ToolError(f"There is no process {arguments.id} in this session; there are: {known}.")
        return process

    async def _start(self, arguments: ProcessArguments, context: CallContext) -> ToolOutput:
        name, command = arguments.name, arguments.command
        try:
            process = self._background.start(context.session, context.workspace, command, name)
        except BackgroundRefused as refused:
            raise ToolError(str(refused)) from refused
        except (OSError, ValueError) as error:
            raise ToolError(f"The process could not be started: {error}.") from error
        try:
            with anyio.move_on_after(START_SECONDS):  # what fails, mostly fails at once
                await first_of(process.ended, context.steered)
        except anyio.get_cancelled_exc_class():
            # A call that was cut has not done its work: nobody would look for a process of it.
            with anyio.CancelScope(shield=True):
                await process.stop()
            self._background.forget(context.session, process)
            raise
        if process.is_running:
            return ToolOutput(f"Started {process.name} (pid {process.pid}). Read its output with action read.")
        return _told(process, is_error=process.exit_code != 0)


async def _read(process: BackgroundProcess, seconds: float, context: CallContext) -> ToolOutput:
    is_steered = False
    if process.is_running and not process.output.count and seconds:
        is_steered = await _until(seconds, context, process.ended, process.output.changed)
    return _told(process, MESSAGE_CAME if is_steered and process.is_running else "")


async def _write(process: BackgroundProcess, text: str, *, closes: bool) -> ToolOutput:
    size = len(text.encode(errors="replace"))
    if not process.is_running:
        raise ToolError(f"{process.name} is not running: it {process.how}.")
    taken = 0
    with anyio.move_on_after(WRITE_SECONDS):
        taken = await process.write(text, closes=closes)
    if taken == size:
        return ToolOutput(f"Written to {process.name}." + (" Its input is closed." if closes else ""))
    return ToolOutput(
        f"{process.name} did not take all of the text: its input is closed, or it does not read.",
        is_error=True,
        effect=Effect.UNKNOWN,
    )


async def _wait(process: BackgroundProcess, pattern: str, seconds: float, context: CallContext) -> ToolOutput:
    async def found() -> None:
        while not is_in(pattern, process.output.peek()):
            await process.output.changed()
            await anyio.sleep(LOOK_SECONDS)

    is_steered = await _until(seconds, context, process.ended, *((found,) if pattern else ()))
    if pattern and is_in(pattern, process.output.peek()):
        return _told(process, f"it printed {pattern!r}")
    if not process.is_running:
        return _told(process, f"it never printed {pattern!r}" if pattern else "")
    return _told(process, MESSAGE_CAME if is_steered else f"waited for {seconds:g} s; it runs on")


async def _wait_only(seconds: float, context: CallContext) -> ToolOutput:
    is_steered = await _until(seconds, context)
    return ToolOutput("A message came: the wait ended early." if is_steered else f"Waited for {seconds:g} s.")


async def _until(seconds: float, context: CallContext, *waits: Wait) -> bool:
    """Wait; return whether a message ended it."""
    is_steered = False

    async def steered() -> None:
        nonlocal is_steered
        await context.steered()
        is_steered = True

    with anyio.move_on_after(seconds):
        await first_of(steered, *waits)
    return is_steered


async def _stop(process: BackgroundProcess) -> ToolOutput:
    if not process.is_running:
        return _told(process, "it had ended before")
    await process.stop(STOP_GRACE_SECONDS)
    if process.stopped.left:
        return _told(process, f"could not be stopped, and still runs: {names(process.stopped.left)}", is_error=True)
    return _told(process, "stopped")


def is_in(pattern: str, text: str) -> bool:
    """Whether a line of the text has the pattern; `*` is anything. Takes no longer than the text is long."""
    return any(_is_in_line(pattern.split("*"), line) for line in text.splitlines())


def _is_in_line(parts: list[str], line: str) -> bool:
    place = 0
    for part in parts:
        place = line.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return True


def _told(process: BackgroundProcess, *notes: str, is_error: bool = False) -> ToolOutput:
    """Return what was not read yet, and how the process is."""
    text = process.output.take().removesuffix("\n") or "(no new output)"
    lines = [f"[{note}]" for note in (*notes, f"{process.name}: {process.how}") if note]
    return ToolOutput("\n".join([text, *lines]), is_error)


def _problem(arguments: ProcessArguments) -> str | None:
    action = arguments.action
    if action == "start" and not arguments.command.strip():
        return "start needs command: call it again with it."
    if action in ("read", "write", "stop") and not arguments.id:
        return f"{action} needs id: the name of the process. The action list shows them."
    if action == "wait" and arguments.pattern and not arguments.id:
        return "wait needs id to look for a pattern. The action list shows the processes."
    return None
