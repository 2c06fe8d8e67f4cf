"""The table of slash commands, the same on every surface."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from hark.protocol.receipts import Receipt, ReceiptState

# The first argument is the SessionHandle, whose module imports this one.
CommandFunction = Callable[[Any, str], Awaitable[str]]
QUEUE_CHANGES = ("drop", "to", "edit", "now")


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A slash command: its name, arguments and help text. `run` executes it and returns the text to show.

    A command with `is_aside` runs next to later messages and commands, which don't wait for it.
    """

    name: str
    takes: str
    help: str
    run: CommandFunction
    is_aside: bool = False


def receipt_text(receipt: Receipt) -> str:
    """Return a message's receipt as a short text, such as "queued #2"."""
    if receipt.state is ReceiptState.REFUSED:
        return f"Not accepted: {receipt.reason}"
    position = f" #{receipt.position}" if receipt.state in (ReceiptState.QUEUED, ReceiptState.HELD) else ""
    return f"{receipt.state}{position}"


def help_text() -> str:
    """Return the help text, one line per command."""
    rows = [f"/{command.name} {command.takes}".strip() + f": {command.help}" for command in COMMANDS.values()]
    return "\n".join(rows)


async def _help(session: Any, arguments: str) -> str:
    return help_text()


def _surface_command(name: str, takes: str, help_line: str) -> SlashCommand:
    """Return a command that some surfaces execute themselves and the others don't support."""

    async def run(session: Any, arguments: str) -> str:
        return f"/{name} isn't available here."

    return SlashCommand(name, takes, help_line, run)


def _command(
    name: str, takes: str, help_line: str, module: str, function: str = "", *, is_aside: bool = False
) -> SlashCommand:
    """Return a command whose module is imported when the command first runs."""

    async def run(session: Any, arguments: str) -> str:
        from importlib import import_module

        command: CommandFunction = vars(import_module(f"hark.app.{module}"))[function or name]
        return await command(session, arguments)

    return SlashCommand(name, takes, help_line, run, is_aside)


# The terminal executes these itself; other surfaces don't have them.
TERMINAL_COMMANDS = (
    _surface_command("new", "[NAME]", "start a new session"),
    _surface_command("sessions", "[WORDS]", "list the sessions and open one"),
    _surface_command("resume", "[NAME]", "resume an earlier session"),
    _surface_command("copy", "", "copy the last reply to the clipboard"),
    _surface_command("theme", "[NAME]", "show or choose the colour theme"),
    _surface_command("quit", "", "quit the terminal app"),
)
CONTINUE = ("sessions.continue_turn", "continue_turn")  # the module and function of /continue
COMMANDS = {
    command.name: command
    for command in (
        SlashCommand("help", "", "list the commands", _help),
        _command("stop", "[all]", "stop the turn and its children; all: also background processes", "slash.turn"),
        _command("queue", "[TEXT | N drop | N to M | N edit TEXT | N now]", "show or edit the queue", "slash.turn"),
        _command("steer", "TEXT", "steer the turn", "slash.turn"),
        _command("btw", "QUESTION", "ask a side question; the turn continues", "slash.turn", is_aside=True),
        _command("busy", "[interrupt|steer|queue]", "show or set how messages reach a running turn", "slash.turn"),
        _command("approve", "[session|always]", "approve the request", "slash.turn"),
        _command("deny", "[WHY]", "decline the request", "slash.turn"),
        _command("mode", "[ask|auto|all]", "show or set when you are asked for approval", "slash.turn"),
        _command("pause", "", "pause the turn after its current step; /continue resumes it", "slash.turn"),
        _command("continue", "[TURN]", "continue a turn that was paused, stopped or interrupted", *CONTINUE),
        _command("retry", "", "rewind the last turn and run it again", "slash.session"),
        _command("rewind", "[TURN]", "rewind to before a turn; file changes stay (/undo)", "slash.session"),
        _command(
            "undo",
            "[step|stop|reset]",
            "undo the file changes of the last turn or step, a stop, or a reset",
            "slash.session",
        ),
        _command("reset", "[keep NAME ...]", "clear the conversation and end all its work", "slash.reset"),
        _command("fork", "[NAME]", "copy this session to a new one", "slash.session"),
        _command("model", "[NAME]", "show or switch the model", "slash.session"),
        _command("compact", "[INSTRUCTIONS]", "summarise older messages", "slash.session"),
        _command("status", "", "describe the running turn and the state of this session", "slash.status"),
        _command("usage", "", "show the tokens and cost of this session", "slash.session"),
        _command("export", "[markdown|json]", "write the conversation to a file", "slash.session"),
        _command("tools", "", "list the tools", "slash.tools"),
        _command("mcp", "[restart NAME]", "list the MCP servers, or restart one", "slash.tools"),
        _command("skills", "", "list the skills", "slash.tools"),
        _command("memory", "", "show the stored notes", "slash.tools"),
        _command("children", "[stop NAME]", "list the child agents, or stop one", "slash.tools"),
        _command("processes", "[stop ID | detach ID]", "list, stop or detach background processes", "slash.tools"),
        _command("voice", "[on|off|auto]", "speak replies: always, never, or to voice messages only", "slash.tools"),
        _command(
            "schedule",
            '[add "WHEN" PROMPT | remove NAME | pause NAME | resume NAME]',
            "list or edit schedules",
            "slash.schedule",
        ),
        _command("trace", "[TURN]", "show where a turn's time went", "slash.session"),
        _command("doctor", "", "check the setup, and show how to fix problems", "slash.session"),
        *TERMINAL_COMMANDS,
        _command("demo", "", "show interrupt, steer, queue and stop, without a model", "slash.session"),
    )
}
