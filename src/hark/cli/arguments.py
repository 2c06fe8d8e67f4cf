"""The words of the command line, parsed."""

import argparse
from collections.abc import Sequence

from hark.cli.schedule_arguments import add_words

COMMANDS = (
    "setup",
    "doctor",
    "send",
    "stop",
    "queue",
    "sessions",
    "trace",
    "config",
    "mcp",
    "skills",
    "acp",
    "serve",
    "pair",
    "schedule",
)


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Return what the words say; exits with code 2 and a usage line when they say nothing sensible."""
    if words and words[0] in COMMANDS:
        return _commands().parse_args(words)
    options = _chat().parse_args(words)
    options.command = "prompt" if options.prompt is not None else "chat"
    return options


def _chat() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hark",
        description="An AI agent that listens while it works.",
        epilog=f"Commands: {', '.join(COMMANDS)} (hark COMMAND --help)",
    )
    parser.add_argument("-p", "--prompt", metavar="PROMPT", help="one shot: the answer on stdout, progress on stderr")
    parser.add_argument("--output", choices=("text", "json", "events"), default="text", help="what -p prints")
    parser.add_argument("--session", metavar="ID", help="the session to use")
    parser.add_argument("--model", metavar="ROUTE", help="the route to use")
    parser.add_argument("--yes", action="store_true", help="allow every tool without asking")
    parser.add_argument("--timeout", type=_above_zero, metavar="SECONDS", help="end the turn after so long")
    parser.add_argument("--max-cost", type=_above_zero, metavar="USD", help="end the turn when it cost that much")
    parser.add_argument("--max-steps", type=_count, metavar="N", help="end the turn after so many steps")
    parser.add_argument("-c", "--continue", dest="continues", action="store_true", help="continue the last session")
    parser.add_argument("-r", "--resume", metavar="ID", help="resume a session")
    parser.add_argument("--plain", action="store_true", help="a line-by-line terminal")
    parser.add_argument("--verbose", action="store_true", help="show logs on stderr")
    parser.add_argument("-V", "--version", action="store_true", help="print the version")
    return parser


def _commands() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hark")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("setup", help="choose the model that answers")
    doctor = commands.add_parser("doctor", help="see whether a turn can run, and what to do when not")
    doctor.add_argument("--json", action="store_true", help="print JSON")
    send = commands.add_parser("send", help="put a message into a session, whoever owns it")
    send.add_argument("session")
    send.add_argument("text")
    send.add_argument("--delivery", choices=("interrupt", "steer", "queue"))
    send.add_argument("--id", default="", help="a name for the message: the same one is taken once")
    stop = commands.add_parser("stop", help="stop what runs")
    stop.add_argument("session", nargs="?")
    stop.add_argument("--all", action="store_true", help="in every session")
    queue = commands.add_parser("queue", help="list or change what waits in a session")
    queue.add_argument("session")
    queue.add_argument("action", nargs="?", choices=("list", "edit", "move", "withdraw"), default="list")
    queue.add_argument("message", nargs="?", help="the message's id")
    queue.add_argument("value", nargs="?", help="edit: the new text; move: the new position, from 1")
    sessions = commands.add_parser("sessions", help="list, show, search, export or delete sessions")
    sessions.add_argument("action", nargs="?", choices=("list", "show", "search", "export", "delete"), default="list")
    sessions.add_argument("value", nargs="?", help="the session, or the words to search for")
    sessions.add_argument("--json", action="store_true", help="print JSON")
    trace = commands.add_parser("trace", help="show where a turn's time went")
    trace.add_argument("session")
    trace.add_argument("turn", nargs="?", help="demo.t4, t4 or 4; without it the last one")
    trace.add_argument("--all", action="store_true", help="every turn of the session")
    trace.add_argument("--html", metavar="FILE", help="write a picture")
    trace.add_argument("--json", action="store_true", help="print JSON")
    mcp = commands.add_parser("mcp", help="list the MCP servers, test them, or log in to one")
    mcp.add_argument("action", nargs="?", choices=("list", "test", "login"), default="list")
    mcp.add_argument("server", nargs="?", help="only this one")
    skills = commands.add_parser("skills", help="list, search or install skills")
    skills.add_argument("action", nargs="?", choices=("list", "search", "install"), default="list")
    skills.add_argument("value", nargs="*", help="the words to search for, or what to install")
    skills.add_argument("--from", dest="source", help="a folder, a git address or an index file")
    skills.add_argument("--project", action="store_true", help="install into this project")
    skills.add_argument("--force", action="store_true", help="put it in the place of one that is there")
    acp = commands.add_parser("acp", help="an ACP agent on stdio, for editors")
    acp.add_argument("--verbose", action="store_true", help="show logs on stderr")
    serve = commands.add_parser("serve", help="the gateway: web page, HTTP API and chat surfaces")
    serve.add_argument("--host", help="the address to listen on (127.0.0.1)")
    serve.add_argument("--port", type=int, help="the port to listen on")
    serve.add_argument("--token", help="what callers must send; needed on another address than this machine's own")
    serve.add_argument("--verbose", action="store_true", help="show logs on stderr")
    pair = commands.add_parser("pair", help="list who wants to talk in chats, let somebody in, or no more")
    pair.add_argument("action", nargs="?", choices=("list", "approve", "revoke"), default="list")
    pair.add_argument("value", nargs="?", help="the code, or the person's id")
    add_words(commands.add_parser("schedule", help="prompts that come by themselves, at their times"))
    config = commands.add_parser("config", help="show, check or find the settings")
    config.add_argument("action", nargs="?", choices=("path", "show", "check", "trust"), default="check")
    return parser


def _above_zero(word: str) -> float:
    number = float(word)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{word} is not a number above 0")
    return number


def _count(word: str) -> int:
    number = int(word)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{word} is not a number from 1 on")
    return number
