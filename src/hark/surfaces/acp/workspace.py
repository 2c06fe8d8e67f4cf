"""Where an editor wants a session to work, read from its request."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from acp.schema import AcpMcpServer, HttpMcpServer, McpServerStdio, SseMcpServer

from hark.protocol.agent import CommandLine, Workspace
from hark.protocol.session import Session
from hark.protocol.store import SessionLine

Server = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
NAME_CHARACTERS = 32


@dataclass(frozen=True, slots=True)
class EditorServices:
    """What an editor needs: the slash commands, a new session, one that exists, and the list of sessions with folders.

    The last three raise WorkspaceError; the list is of one folder or, with None, of all, the last changed first.
    """

    commands: Callable[[], Sequence[CommandLine]]
    create: Callable[[Workspace], Awaitable[Session]]
    open: Callable[[str, Workspace], Awaitable[Session]]
    listed: Callable[[str | None], Awaitable[list[tuple[SessionLine, str]]]]


def read_place(folder: str, servers: Sequence[Server] | None) -> Workspace:
    """Return the place. A server of a kind that we did not offer to take is left out."""
    tables: dict[str, dict[str, Any]] = {}
    for server in servers or ():
        match server:
            case McpServerStdio():
                environment = {variable.name: variable.value for variable in server.env}
                table: dict[str, Any] = {"command": server.command, "args": server.args, "env": environment}
            case HttpMcpServer():
                table = {"url": server.url, "headers": {header.name: header.value for header in server.headers}}
            case _:
                continue
        tables[_name(server.name)] = table
    return Workspace(normal(folder), tables)


def normal(folder: str) -> str:
    """Return a folder as it is written without needless signs."""
    return str(PurePath(folder))


def _name(name: str) -> str:
    return _NOT_IN_NAMES.sub("-", name).strip("-_")[:NAME_CHARACTERS] or "editor"
