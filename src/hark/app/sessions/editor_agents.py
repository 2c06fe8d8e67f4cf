"""The agents of one editor process, one for each working directory."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from anyio import to_thread
from anyio.abc import TaskGroup

from hark.app.sessions.editor_session_file import EditorSessionFile
from hark.app.settings import SettingsError
from hark.protocol.agent import CommandInfo, UnknownSession, Workspace, WorkspaceError
from hark.protocol.store import SessionListEntry, StoreError
from hark.text.cleanup import unwrap_error

if TYPE_CHECKING:
    from hark.app.agent import Agent
    from hark.app.sessions.handle import SessionHandle

SURFACE = "acp"


class WorkspaceAgents:
    """The agents of one editor process. Each is opened when its folder is first used, and stays open until `close`."""

    def __init__(self, home: Path, on_exit_step: Callable[[str], None], tasks: TaskGroup) -> None:
        """`on_exit_step` receives the name of each exit step."""
        self._home = home
        self._on_exit_step = on_exit_step
        self._tasks = tasks
        self._sessions = EditorSessionFile(home)
        self._agents: dict[bytes, asyncio.Future[Agent]] = {}
        self._is_closing = asyncio.Event()

    def commands(self) -> Sequence[CommandInfo]:
        """Return the slash commands."""
        from hark.app.slash.command_table import COMMANDS

        return [CommandInfo(command.name, command.takes, command.help) for command in COMMANDS.values()]

    async def create(self, workspace: Workspace) -> "SessionHandle":
        """Create and return a new session.

        Raises:
            WorkspaceError: The workspace can't be used.
        """
        agent = await self._get_agent(workspace)
        return await self._open_session(agent, f"{SURFACE}-{agent.engine.clock.new_id()}", workspace)

    async def open(self, session: str, workspace: Workspace) -> "SessionHandle":
        """Open an existing session and return its handle.

        Raises:
            UnknownSession: There is no such session.
            WorkspaceError: The workspace can't be used.
        """
        agent = await self._get_agent(workspace)
        store = agent.engine.store
        try:
            is_known = session in self._sessions.folders() or bool(
                await store.journal.read(session) or await store.inbox.entries_after(session, 0)
            )
        except StoreError as error:
            raise WorkspaceError(str(error)) from error
        if not is_known:
            raise UnknownSession(f"No session named {session!r}. session/list lists them.")
        return await self._open_session(agent, session, workspace)

    async def list_sessions(self, folder: str | None) -> list[tuple[SessionListEntry, str]]:
        """Return the editors' sessions in one folder or in all folders, most recently changed first.

        Raises:
            WorkspaceError: The sessions can't be read.
        """
        agent = await self._get_any_agent(folder)
        folders = self._sessions.folders()
        try:
            lines = await agent.engine.store.journal.sessions()
        except StoreError as error:
            raise WorkspaceError(str(error)) from error
        return [
            (line, folders[line.session])
            for line in lines
            if line.session in folders and folder in (None, folders[line.session])
        ]

    def close(self) -> None:
        """Settle all running turns and close every agent."""
        self._is_closing.set()

    async def _open_session(self, agent: "Agent", session: str, workspace: Workspace) -> "SessionHandle":
        try:
            handle = agent.session(session, SURFACE)
        except ValueError as error:
            raise UnknownSession(str(error)) from error
        try:
            await to_thread.run_sync(self._sessions.add, session, workspace.folder)
        except OSError as error:
            _write_stderr(f"the folder of {session} could not be saved: {error}")
        return handle

    async def _get_any_agent(self, folder: str | None) -> "Agent":
        for opening in self._agents.values():
            if opening.done() and not opening.exception():
                return opening.result()
        return await self._get_agent(Workspace(folder if folder and _is_folder(folder) else str(Path.cwd())))

    async def _get_agent(self, workspace: Workspace) -> "Agent":
        if not _is_folder(workspace.folder):
            raise WorkspaceError(
                f"{workspace.folder!r} is not the absolute path of an existing folder. Set cwd to one."
            )
        key = msgspec.json.encode(workspace, order="sorted")
        opening = self._agents.get(key)
        if opening is None:
            opening = self._agents[key] = asyncio.get_running_loop().create_future()
            self._tasks.start_soon(self._run_agent, key, workspace, opening)
        return await asyncio.shield(opening)

    async def _run_agent(self, key: bytes, workspace: Workspace, opening: "asyncio.Future[Agent]") -> None:
        """Run an agent until `close`. If opening it fails, its callers get the error and the next call retries."""
        # Imported here so that the editor's first request is answered without waiting for it.
        from hark.app.build import open_agent

        sections: dict[str, Any] = {"mcp": {"servers": dict(workspace.servers)}} if workspace.servers else {}
        try:
            async with open_agent(
                home=self._home,
                workspace=workspace.folder,
                sweeps=False,
                notice=_write_stderr,
                on_exit_step=self._on_exit_step,
                **sections,
            ) as agent:
                opening.set_result(agent)
                await self._is_closing.wait()
        except* (SettingsError, StoreError, OSError, ValueError) as group:
            if opening.done():
                raise
            del self._agents[key]
            opening.set_exception(WorkspaceError(str(unwrap_error(group))))


@asynccontextmanager
async def open_workspace_agents(home: Path, on_exit_step: Callable[[str], None]) -> AsyncGenerator[WorkspaceAgents]:
    """Yield the agents of this process. On exit, all running turns are settled."""
    async with anyio.create_task_group() as tasks:
        agents = WorkspaceAgents(home, on_exit_step, tasks)
        try:
            yield agents
        finally:
            agents.close()


def _is_folder(path: str) -> bool:
    return Path(path).is_absolute() and Path(path).is_dir()


def _write_stderr(text: str) -> None:
    sys.stderr.write(f"hark: {text}\n")
