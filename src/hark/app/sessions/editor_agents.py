"""The agents of one process, one for each folder that an editor works in."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from anyio.abc import TaskGroup

from hark.app.sessions.editor_folders import EditorSessions
from hark.app.settings import SettingsError
from hark.protocol.agent import CommandLine, UnknownSession, Workspace, WorkspaceError
from hark.protocol.store import SessionLine, StoreError
from hark.text.clean import first_of

if TYPE_CHECKING:
    from hark.app.agent import Agent
    from hark.app.sessions.handle import SessionHandle

SURFACE = "acp"


class Workplaces:
    """Opens an agent when its folder is first needed, and keeps it until the end."""

    def __init__(self, home: Path, leaving: Callable[[str], None], tasks: TaskGroup) -> None:
        """`leaving` is told what the end waits for."""
        self._home = home
        self._leaving = leaving
        self._tasks = tasks
        self._sessions = EditorSessions(home)
        self._agents: dict[bytes, asyncio.Future[Agent]] = {}
        self._is_closing = asyncio.Event()

    def commands(self) -> Sequence[CommandLine]:
        """Return the slash commands."""
        from hark.app.slash.table import COMMANDS

        return [CommandLine(command.name, command.takes, command.help) for command in COMMANDS.values()]

    async def create(self, place: Workspace) -> "SessionHandle":
        """Return a new session.

        Raises:
            WorkspaceError: Nothing can work there.
        """
        agent = await self._agent(place)
        return self._open(agent, f"{SURFACE}-{agent.bench.clock.new_id()}", place)

    async def open(self, session: str, place: Workspace) -> "SessionHandle":
        """Return a session that is there already.

        Raises:
            UnknownSession: It is not.
            WorkspaceError: Nothing can work there.
        """
        agent = await self._agent(place)
        store = agent.bench.store
        try:
            is_known = session in self._sessions.folders() or bool(
                await store.journal.read(session) or await store.inbox.after(session, 0)
            )
        except StoreError as error:
            raise WorkspaceError(str(error)) from error
        if not is_known:
            raise UnknownSession(f"There is no session {session!r}; session/list tells what there is.")
        return self._open(agent, session, place)

    async def listed(self, folder: str | None) -> list[tuple[SessionLine, str]]:
        """Return the editors' sessions, of one folder or of all, the last changed first.

        Raises:
            WorkspaceError: They can't be read.
        """
        agent = await self._any_agent(folder)
        folders = self._sessions.folders()
        try:
            lines = await agent.bench.store.journal.sessions()
        except StoreError as error:
            raise WorkspaceError(str(error)) from error
        return [
            (line, folders[line.session])
            for line in lines
            if line.session in folders and folder in (None, folders[line.session])
        ]

    def close(self) -> None:
        """Let every agent settle what runs, and end."""
        self._is_closing.set()

    def _open(self, agent: "Agent", session: str, place: Workspace) -> "SessionHandle":
        try:
            handle = agent.session(session, SURFACE)
        except ValueError as error:
            raise UnknownSession(str(error)) from error
        try:
            self._sessions.add(session, place.folder)
        except OSError as error:
            _tell(f"the folder of {session} could not be kept: {error}")
        return handle

    async def _any_agent(self, folder: str | None) -> "Agent":
        for opening in self._agents.values():
            if opening.done() and not opening.exception():
                return opening.result()
        return await self._agent(Workspace(folder if folder and _is_folder(folder) else str(Path.cwd())))

    async def _agent(self, place: Workspace) -> "Agent":
        if not _is_folder(place.folder):
            raise WorkspaceError(f"{place.folder!r} is no absolute path of a folder here: give one as cwd.")
        key = msgspec.json.encode(place, order="sorted")
        opening = self._agents.get(key)
        if opening is None:
            opening = self._agents[key] = asyncio.get_running_loop().create_future()
            self._tasks.start_soon(self._keep, key, place, opening)
        return await asyncio.shield(opening)

    async def _keep(self, key: bytes, place: Workspace, opening: "asyncio.Future[Agent]") -> None:
        """Have an agent open until the end. One that can't be opened is told, and tried anew the next time."""
        from hark.app.build import open_agent  # here, so that an editor's first question is answered before it

        sections: dict[str, Any] = {"mcp": {"servers": dict(place.servers)}} if place.servers else {}
        try:
            async with open_agent(
                home=self._home, workspace=place.folder, sweeps=False, notice=_tell, leaving=self._leaving, **sections
            ) as agent:
                opening.set_result(agent)
                await self._is_closing.wait()
        except* (SettingsError, StoreError, OSError, ValueError) as group:
            if opening.done():
                raise
            del self._agents[key]
            opening.set_exception(WorkspaceError(str(first_of(group))))


@asynccontextmanager
async def opened_workplaces(home: Path, leaving: Callable[[str], None]) -> AsyncGenerator[Workplaces]:
    """Have agents for as long as this is open; at the end all that runs is settled."""
    async with anyio.create_task_group() as tasks:
        places = Workplaces(home, leaving, tasks)
        try:
            yield places
        finally:
            places.close()


def _is_folder(path: str) -> bool:
    return Path(path).is_absolute() and Path(path).is_dir()


def _tell(text: str) -> None:
    sys.stderr.write(f"hark: {text}\n")
