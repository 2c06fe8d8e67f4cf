"""Where an editor wants a session to work, read from its request."""

import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from acp.schema import AcpMcpServer, HttpMcpServer, McpServerStdio, SseMcpServer

from hark.protocol.editor import Workspace

Server = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
NAME_CHARACTERS = 32


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
