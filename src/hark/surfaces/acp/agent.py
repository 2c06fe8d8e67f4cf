"""The Agent Client Protocol methods that an editor can call."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

from acp import PROTOCOL_VERSION, Client, RequestError
from acp.schema import (
    AcpMcpServer,
    AgentCapabilities,
    AuthenticateResponse,
    ClientCapabilities,
    CloseSessionResponse,
    HttpMcpServer,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    McpCapabilities,
    McpServerStdio,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    SetSessionModeResponse,
    SseMcpServer,
)
from anyio.abc import TaskGroup

from hark.protocol.agent import CommandInfo, UnknownSession, Workspace, WorkspaceError
from hark.protocol.receipts import Refusal
from hark.protocol.rules import ApprovalMode
from hark.protocol.session import Session
from hark.protocol.store import SessionListEntry
from hark.surfaces.acp.conversation import EditorConversation
from hark.surfaces.acp.editor_view import replay_updates
from hark.surfaces.acp.options import MODE, MODEL, build_commands_update, build_config_options, build_mode_state
from hark.surfaces.acp.prompt import PromptBlock, read_prompt

EditorMcpServer = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio

_INVALID_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]+")
MAX_NAME_CHARACTERS = 32


@dataclass(frozen=True, slots=True)
class EditorServices:
    """The services that an editor uses. `create`, `open` and `list_sessions` raise WorkspaceError.

    `list_sessions` takes a folder, or None for all folders, and returns the sessions with their folders, the most
    recently changed first.
    """

    commands: Callable[[], Sequence[CommandInfo]]
    create: Callable[[Workspace], Awaitable[Session]]
    open: Callable[[str, Workspace], Awaitable[Session]]
    list_sessions: Callable[[str | None], Awaitable[list[tuple[SessionListEntry, str]]]]


def read_workspace(folder: str, servers: Sequence[EditorMcpServer] | None) -> Workspace:
    """Return the session's folder and MCP servers. Servers of an unsupported type are left out."""
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
        tables[_server_name(server.name)] = table
    return Workspace(normalize_path(folder), tables)


def normalize_path(folder: str) -> str:
    """Return a folder's path without redundant separators and dots."""
    return str(PurePath(folder))


def _server_name(name: str) -> str:
    return _INVALID_CHARACTERS.sub("-", name).strip("-_")[:MAX_NAME_CHARACTERS] or "editor"


PAGE_SIZE = 100
INVALID_PARAMS = -32602
NOT_FOUND = -32002
EDITOR_LEFT = "the editor left"


class EditorAgent:
    """The agent for one editor. The library calls each method in its own task, in the order of the requests."""

    def __init__(self, services: EditorServices, version: str, tasks: TaskGroup) -> None:
        self._services = services
        self._version = version
        self._tasks = tasks
        self._client: Client | None = None
        self._conversations: dict[str, EditorConversation] = {}
        self._opening: dict[str, asyncio.Future[None]] = {}
        self._is_ending = False

    def on_connect(self, conn: Client) -> None:
        """Store the connection to the editor."""
        self._client = conn

    def stop_all_prompts(self) -> None:
        """Stop every prompt because the editor has disconnected, including prompts that are still being read."""
        self._is_ending = True
        for conversation in self._conversations.values():
            self._tasks.start_soon(conversation.stop, EDITOR_LEFT)

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: ClientCapabilities | None = None,
        client_info: Implementation | None = None,
        **_: Any,
    ) -> InitializeResponse:
        """Return the agent's capabilities and its only protocol version. The editor decides whether to continue."""
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=Implementation(name="hark", title="Hark", version=self._version),
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=True, audio=False, embedded_context=True),
                mcp_capabilities=McpCapabilities(http=True, sse=False),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(),
                    resume=SessionResumeCapabilities(),
                    close=SessionCloseCapabilities(),
                ),
            ),
            auth_methods=[],
        )

    async def authenticate(self, method_id: str, **_: Any) -> AuthenticateResponse:
        """Do nothing: API keys are in the settings."""
        return AuthenticateResponse()

    # Sessions.

    async def new_session(
        self, cwd: str, mcp_servers: list[EditorMcpServer] | None = None, **_: Any
    ) -> NewSessionResponse:
        """Create a session that works in a folder."""
        try:
            session = await self._services.create(read_workspace(cwd, mcp_servers))
        except WorkspaceError as error:
            raise RequestError(INVALID_PARAMS, str(error)) from error
        conversation = await self._start_conversation(session)
        return NewSessionResponse(session_id=session.id, **self._session_options(conversation))

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: list[EditorMcpServer] | None = None, **_: Any
    ) -> LoadSessionResponse:
        """Open an existing session and show its messages."""
        conversation = await self._open_conversation(session_id, read_workspace(cwd, mcp_servers))
        for update in replay_updates((await conversation.session.history()).messages, conversation.status.folder):
            conversation.updates.add(update)
        await conversation.updates.wait_until_sent()
        return LoadSessionResponse(**self._session_options(conversation))

    async def resume_session(
        self, session_id: str, cwd: str, mcp_servers: list[EditorMcpServer] | None = None, **_: Any
    ) -> ResumeSessionResponse:
        """Open an existing session without showing its messages."""
        conversation = await self._open_conversation(session_id, read_workspace(cwd, mcp_servers))
        return ResumeSessionResponse(**self._session_options(conversation))

    async def list_sessions(self, cwd: str | None = None, cursor: str | None = None, **_: Any) -> ListSessionsResponse:
        """List the editors' sessions, one page at a time."""
        if cursor is not None and not cursor.isdecimal():
            raise RequestError(INVALID_PARAMS, f"Unknown cursor {cursor!r}. Use a cursor from an earlier response.")
        try:
            listed = await self._services.list_sessions(None if cwd is None else normalize_path(cwd))
        except WorkspaceError as error:
            raise RequestError(INVALID_PARAMS, str(error)) from error
        first = int(cursor or 0)
        next_cursor = str(first + PAGE_SIZE) if len(listed) > first + PAGE_SIZE else None
        page = listed[first : first + PAGE_SIZE]
        return ListSessionsResponse(sessions=list(_to_session_infos(page)), next_cursor=next_cursor)

    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        """Stop a session's turn and close the session."""
        conversation = self._conversations.pop(session_id, None)
        if conversation is not None:
            await conversation.close()
        return CloseSessionResponse()

    # Prompts.

    async def prompt(self, session_id: str, prompt: list[PromptBlock], **_: Any) -> PromptResponse:
        """Run a prompt until it ends. The prompt is registered before the first await, so no cancel can overtake it."""
        message = read_prompt(prompt)
        if not message.text.strip() and not message.attachments:
            raise RequestError(INVALID_PARAMS, "The prompt is empty. Add text or an image.")
        if session_id in self._opening:
            await asyncio.shield(self._opening[session_id])
        conversation = self._get_conversation(session_id)
        return await conversation.prompt(message, EDITOR_LEFT if self._is_ending else "")

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Stop the prompts that were received before this request. Their responses report the stop."""
        if session_id in self._opening:
            await asyncio.shield(self._opening[session_id])
        conversation = self._conversations.get(session_id)
        if conversation is not None:
            await conversation.stop()

    # Options.

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> SetSessionModeResponse:
        """Set the approval mode of a session."""
        await self._set_option(self._get_conversation(session_id), MODE, mode_id)
        return SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> SetSessionConfigOptionResponse:
        """Set the approval mode or the route of a session."""
        conversation = self._get_conversation(session_id)
        await self._set_option(conversation, config_id, str(value))
        return SetSessionConfigOptionResponse(config_options=build_config_options(conversation.status))

    async def _set_option(self, conversation: EditorConversation, option: str, value: str) -> None:
        refusal = await self._apply_option(conversation, option, value)
        if refusal is not None:
            raise RequestError(INVALID_PARAMS, refusal.message)
        await conversation.refresh()

    async def _apply_option(self, conversation: EditorConversation, option: str, value: str) -> Refusal | None:
        session = conversation.session
        if option == MODE and value in tuple(ApprovalMode):
            return await session.choose_mode(ApprovalMode(value))
        if option == MODEL and value in conversation.status.routes:
            return await session.choose_route(value)
        return Refusal("unknown", f"{value!r} is not a valid value for the option {option!r}.")

    # Conversations.

    async def _open_conversation(self, session_id: str, workspace: Workspace) -> EditorConversation:
        """Open a session. Requests for this session that arrive in the meantime wait, and then continue in order."""
        known = self._conversations.get(session_id)
        if known is not None and known.status.folder == workspace.folder:
            return known
        done = self._opening[session_id] = asyncio.get_running_loop().create_future()
        try:
            if known is not None:
                await known.close()
            return await self._start_conversation(await self._services.open(session_id, workspace))
        except UnknownSession as error:
            raise RequestError(NOT_FOUND, str(error)) from error
        except WorkspaceError as error:
            raise RequestError(INVALID_PARAMS, str(error)) from error
        finally:
            del self._opening[session_id]
            done.set_result(None)

    async def _start_conversation(self, session: Session) -> EditorConversation:
        status = await session.status()
        assert self._client is not None, "on_connect was not called"
        conversation = EditorConversation(session, self._client, status, self._tasks)
        self._conversations[session.id] = conversation
        return conversation

    def _session_options(self, conversation: EditorConversation) -> dict[str, Any]:
        """Queue the update with the slash commands, and return the modes and options for the response.

        The update is sent after the response, because nothing is awaited between the two.
        """
        conversation.updates.add(build_commands_update(self._services.commands()))
        status = conversation.status
        return {"modes": build_mode_state(status), "config_options": build_config_options(status)}

    def _get_conversation(self, session_id: str) -> EditorConversation:
        conversation = self._conversations.get(session_id)
        if conversation is None:
            raise RequestError(NOT_FOUND, f"Session {session_id!r} is not open. Create a session or load this one.")
        return conversation


def _to_session_infos(sessions: Iterable[tuple[SessionListEntry, str]]) -> Iterable[SessionInfo]:
    for line, folder in sessions:
        summary = line.summary
        updated_at = datetime.fromtimestamp(summary.updated_at, UTC).isoformat() if summary.updated_at else None
        yield SessionInfo(session_id=line.session, cwd=folder, title=summary.title or None, updated_at=updated_at)
