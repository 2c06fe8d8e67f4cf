"""Messages that are commands: one table, the same on every surface."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from hark.protocol.receipts import Receipt, ReceiptState

Run = Callable[[Any, str], Awaitable[str]]  # with the SessionHandle, which knows this table
QUEUE_CHANGES = ("drop", "to", "edit", "now")


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A command: what it is called, what it takes, what it does in a few words; `run` returns the notice."""

    name: str
    takes: str
    help: str
    run: Run


def told(receipt: Receipt) -> str:
    """Return in a word or two what became of a message."""
    place = f" #{receipt.position}" if receipt.state in (ReceiptState.QUEUED, ReceiptState.HELD) else ""
    return f"{receipt.state}{place}"


def help_text() -> str:
    """Return the commands, a line each."""
    rows = [f"/{command.name} {command.takes}".strip() + f": {command.help}" for command in COMMANDS.values()]
    return "\n".join(rows)


async def _help(session: Any, words: str) -> str:
    return help_text()


def _own(name: str, takes: str, words: str) -> SlashCommand:
    """Return a command that a surface does by itself, where it can."""

    async def run(session: Any, words: str) -> str:
        return f"/{name} is not there on this surface."

    return SlashCommand(name, takes, words, run)


def _row(name: str, takes: str, words: str, module: str, function: str = "") -> SlashCommand:
    """Return a command whose code is imported when it is first run: most runs of the program need none of it."""

    async def run(session: Any, words: str) -> str:
        from importlib import import_module

        command: Run = vars(import_module(f"hark.app.{module}"))[function or name]
        return await command(session, words)

    return SlashCommand(name, takes, words, run)


# The terminal runs these by itself; other surfaces have none of them.
TERMINAL_COMMANDS = (
    _own("new", "[NAME]", "start another session"),
    _own("sessions", "[WORDS]", "list the sessions, and open one"),
    _own("resume", "[NAME]", "go on with an earlier session"),
    _own("copy", "", "put the last reply into the clipboard"),
    _own("theme", "[NAME]", "show or choose the colours"),
    _own("quit", "", "leave"),
)
COMMANDS = {
    command.name: command
    for command in (
        SlashCommand("help", "", "list the commands", _help),
        _row("stop", "", "stop what runs", "slash.turn"),
        _row("queue", "[TEXT | N drop | N to M | N edit TEXT | N now]", "show or change what waits", "slash.turn"),
        _row("steer", "TEXT", "add to what runs", "slash.turn"),
        _row("busy", "[interrupt|steer|queue]", "what a message does to a running turn here", "slash.turn"),
        _row("approve", "[session|always]", "allow what is asked", "slash.turn"),
        _row("deny", "[WHY]", "don't allow what is asked", "slash.turn"),
        _row("mode", "[ask|auto|all]", "how often you are asked in this session", "slash.turn"),
        _row(
            "continue", "[TURN]", "go on with a turn that a restart or a crash cut", "sessions.continue_turn", "go_on"
        ),
        _row("retry", "", "take the last turn back and run it anew", "slash.session"),
        _row("rewind", "[TURN]", "go back to before a turn; its file changes stay (/undo)", "slash.session"),
        _row("undo", "[step]", "put back the files that the last turn or step changed", "slash.session"),
        _row("reset", "", "forget the conversation and start afresh", "slash.session"),
        _row("fork", "[NAME]", "go on in a copy of this session", "slash.session"),
        _row("model", "[NAME]", "show the routes, or have another one serve first", "slash.session"),
        _row("compact", "[INSTRUCTIONS]", "put a summary in the place of what is old", "slash.session"),
        _row("status", "", "what this session is and does", "slash.session"),
        _row("usage", "", "tokens and cost of this session", "slash.session"),
        _row("export", "[markdown|json]", "write the conversation to a file", "slash.session"),
        _row("tools", "", "list the tools", "slash.tools"),
        _row("mcp", "", "list the MCP servers", "slash.tools"),
        _row("skills", "", "list the skills", "slash.tools"),
        _row("memory", "", "show what is remembered", "slash.tools"),
        _row("children", "[stop NAME]", "list the child agents, or stop one alone", "slash.tools"),
        _row("processes", "[stop ID | detach ID]", "list what runs in the background, or let go of it", "slash.tools"),
        _row("voice", "[on|off|auto]", "have replies spoken: always, never, or those to voice messages", "slash.tools"),
        _row(
            "schedule",
            '[add "WHEN" PROMPT | remove NAME | pause NAME | resume NAME]',
            "list what comes here by itself, or change it",
            "slash.schedule",
        ),
        _row("trace", "[TURN]", "where a turn's time went", "slash.session"),
        _row("doctor", "", "see whether all is well, and what to do when not", "slash.session"),
        *TERMINAL_COMMANDS,
        _row("demo", "", "see interrupt, steer, queue and stop at work, without a model", "slash.session"),
    )
}
