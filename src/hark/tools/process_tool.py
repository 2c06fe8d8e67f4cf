"""The tool for processes in the background."""

from collections.abc import Mapping
from typing import Any

import anyio
import msgspec

from hark.processes.background import Background, BackgroundProcess, BackgroundRefused
from hark.processes.start import Wait, first_of
from hark.protocol.messages import Effect
from hark.protocol.tool import CallContext, Foreseen, ToolOutput, ToolSpec
from hark.tools.arguments import check
from hark.tools.shell import names

START_SECONDS = 0.3
STOP_GRACE_SECONDS = 3.0
WRITE_SECONDS = 5.0
WAIT_SECONDS = 30.0
LOOK_SECONDS = 0.02
STEERED = "steered"
MESSAGE_CAME = "a message came, so this ended early; the process runs on"


def _foresee(arguments: Mapping[str, Any]) -> Foreseen:
    action, command = str(arguments.get("action", "")), str(arguments.get("command", ""))
    if action == "start":
        return Foreseen(is_changing=True, subject=command, command=command, writes=None)
    subject = f"{action} {arguments.get('id') or ''}".strip()
    return Foreseen(is_changing=action in ("write", "stop"), subject=subject, writes=())


_SPEC = ToolSpec(
    name="process",
    description=(
        "Processes in the background, such as servers and watchers. They go on when a turn ends or is interrupted, and "
        "end with the session. Actions: start a `command` (with a `name` to know it by), in the folder and with the "
        "exported variables of the shell; list them; read what a process printed since the last read; write `text` "
        "to its standard input (`close` ends that input); wait until it ends, or until it prints `pattern`, or without "
        "an `id` just wait; stop it with all that it started. A message from the user ends a wait early."
    ),
    parameters={
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["start", "list", "read", "write", "wait", "stop"]},
            "id": {"type": "string", "description": "The process, by its name, for read, write, wait and stop."},
            "command": {"type": "string", "description": "For start: the command, as typed into a shell."},
            "name": {"type": "string", "description": "For start: what to call it. Without it, it is p1, p2 ..."},
            "text": {"type": "string", "description": "For write: the text; a line needs its newline."},
            "close": {"type": "boolean", "description": "For write: close its standard input behind the text."},
            "pattern": {
                "type": "string",
                "description": "For wait: plain text to wait for in what was not read yet; * is anything in a line.",
            },
            "wait_seconds": {
                "type": "number",
                "description": "How long to wait at most. For read: for new output (default 0). For wait: default 30.",
            },
        },
        "required": ["action"],
        "additionalProperties": False,
    },
    is_changing=True,
    grace_seconds=0.9,
    foresee=_foresee,
)


class ProcessTool:
    """Starts, shows and ends the session's processes in `background`."""

    def __init__(self, background: Background) -> None:
        self._background = background
        self._spec = msgspec.structs.replace(_SPEC, folder_of=background.folder)

    @property
    def spec(self) -> ToolSpec:
        """What it is."""
        return self._spec

    async def run(self, arguments: Mapping[str, Any], context: CallContext) -> ToolOutput:
        """Do one action. Cancelling a start ends what it started; cancelling another leaves the process as it is."""
        if problem := check(_SPEC, arguments) or _problem(arguments):
            return _refused(problem)
        match arguments["action"]:
            case "start":
                return await self._start(arguments, context)
            case "list":
                return ToolOutput("\n".join(map(str, self._background.of(context.session))) or "No processes.")
            case "wait" if not arguments.get("id"):
                return await _wait_only(_seconds(arguments, WAIT_SECONDS), context)
            case action:
                process = self._background.get(context.session, arguments["id"])
                if process is None:
                    known = ", ".join(one.name for one in self._background.of(context.session)) or "none"
                    return _refused(f"There is no process {arguments['id']} in this session; there are: {known}.")
                return await _act(action, process, arguments, context)

    async def _start(self, arguments: Mapping[str, Any], context: CallContext) -> ToolOutput:
        name = arguments.get("name") or ""
        try:
            process = self._background.start(context.session, context.workspace, arguments["command"], name)
        except BackgroundRefused as refused:
            return _refused(str(refused))
        except (OSError, ValueError) as error:
            return _refused(f"The process could not be started: {error}.")
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


async def _act(
    action: str, process: BackgroundProcess, arguments: Mapping[str, Any], context: CallContext
) -> ToolOutput:
    match action:
        case "read":
            return await _read(process, _seconds(arguments, 0), context)
        case "write":
            return await _write(process, arguments.get("text") or "", closes=bool(arguments.get("close")))
        case "wait":
            seconds = _seconds(arguments, WAIT_SECONDS)
            return await _wait(process, arguments.get("pattern") or "", seconds, context)
        case _:
            return await _stop(process)


async def _read(process: BackgroundProcess, seconds: float, context: CallContext) -> ToolOutput:
    is_steered = False
    if process.is_running and not process.output.count and seconds:
        is_steered = await _until(seconds, context, process.ended, process.output.changed) == STEERED
    return _told(process, MESSAGE_CAME if is_steered and process.is_running else "")


async def _write(process: BackgroundProcess, text: str, *, closes: bool) -> ToolOutput:
    size = len(text.encode(errors="replace"))
    if not process.is_running:
        return _refused(f"{process.name} is not running: it {process.how}.")
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

    why = await _until(seconds, context, process.ended, *((found,) if pattern else ()))
    if pattern and is_in(pattern, process.output.peek()):
        return _told(process, f"it printed {pattern!r}")
    if not process.is_running:
        return _told(process, f"it never printed {pattern!r}" if pattern else "")
    return _told(process, MESSAGE_CAME if why == STEERED else f"waited for {seconds:g} s; it runs on")


async def _wait_only(seconds: float, context: CallContext) -> ToolOutput:
    is_steered = await _until(seconds, context) == STEERED
    return ToolOutput("A message came: the wait ended early." if is_steered else f"Waited for {seconds:g} s.")


async def _until(seconds: float, context: CallContext, *waits: Wait) -> str:
    """Return why the waiting ended: a message came, or else."""
    why = ""

    async def steered() -> None:
        nonlocal why
        await context.steered()
        why = STEERED

    with anyio.move_on_after(seconds):
        await first_of(steered, *waits)
    return why


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


def _seconds(arguments: Mapping[str, Any], default: float) -> float:
    seconds = arguments.get("wait_seconds")
    return default if seconds is None else max(0.0, seconds)


def _problem(arguments: Mapping[str, Any]) -> str | None:
    action = arguments["action"]
    if action == "start" and not str(arguments.get("command") or "").strip():
        return "start needs command: call it again with it."
    if action in ("read", "write", "stop") and not arguments.get("id"):
        return f"{action} needs id: the name of the process. The action list shows them."
    if action == "wait" and arguments.get("pattern") and not arguments.get("id"):
        return "wait needs id to look for a pattern. The action list shows the processes."
    return None


def _refused(why: str) -> ToolOutput:
    return ToolOutput(why, is_error=True, effect=Effect.NOT_STARTED)
