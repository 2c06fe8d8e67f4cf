"""The protocol's methods: what an editor can ask of the agent."""

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

from hark.protocol.agent import CommandLine, UnknownSession, Workspace, WorkspaceError
from hark.protocol.receipts import Refusal
from hark.protocol.rules import ApprovalMode
from hark.protocol.session import Session
from hark.protocol.store import SessionLine
from hark.surfaces.acp.conversation import EditorConversation
from hark.surfaces.acp.options import MODE, MODEL, commands, config_options, modes
from hark.surfaces.acp.prompt import Block, read_prompt
from hark.surfaces.acp.view import replay

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


PAGE = 100
INVALID = -32602
NOT_FOUND = -32002
LEFT = "the editor left"


class EditorAgent:
    """One editor's agent. The library calls each method in a task of its own, in the order of the requests."""

    def __init__(self, services: EditorServices, version: str, tasks: TaskGroup) -> None:
        self._services = services
        self._version = version
        self._tasks = tasks
        self._client: Client | None = None
        self._conversations: dict[str, EditorConversation] = {}
        self._opening: dict[str, asyncio.Future[None]] = {}
        self._is_ending = False

    def on_connect(self, conn: Client) -> None:
        """Take the line back to the editor."""
        self._client = conn

    def end(self) -> None:
        """The editor has left: end every prompt, those too that are still being read."""
        self._is_ending = True
        for conversation in self._conversations.values():
            self._tasks.start_soon(conversation.stop, LEFT)

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: ClientCapabilities | None = None,
        client_info: Implementation | None = None,
        **_: Any,
    ) -> InitializeResponse:
        """Say what we can do. There is one version of the protocol; an editor of another decides for itself."""
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
        """Nothing to do: keys are in the settings."""
        return AuthenticateResponse()

    # Sessions.

    async def new_session(self, cwd: str, mcp_servers: list[Server] | None = None, **_: Any) -> NewSessionResponse:
        """Make a session that works in a folder."""
        try:
            session = await self._services.create(read_place(cwd, mcp_servers))
        except WorkspaceError as error:
            raise RequestError(INVALID, str(error)) from error
        return NewSessionResponse(session_id=session.id, **self._offered(await self._converse(session)))

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: list[Server] | None = None, **_: Any
    ) -> LoadSessionResponse:
        """Open a session again, and show all that was said in it."""
        conversation = await self._opened(session_id, read_place(cwd, mcp_servers))
        for update in replay((await conversation.session.history()).messages, conversation.standing.folder):
            conversation.outbox.put(update)
        await conversation.outbox.flushed()
        return LoadSessionResponse(**self._offered(conversation))

    async def resume_session(
        self, session_id: str, cwd: str, mcp_servers: list[Server] | None = None, **_: Any
    ) -> ResumeSessionResponse:
        """Open a session again, and show nothing."""
        conversation = await self._opened(session_id, read_place(cwd, mcp_servers))
        return ResumeSessionResponse(**self._offered(conversation))

    async def list_sessions(self, cwd: str | None = None, cursor: str | None = None, **_: Any) -> ListSessionsResponse:
        """List the sessions that editors had, page by page."""
        if cursor is not None and not cursor.isdecimal():
            raise RequestError(INVALID, f"{cursor!r} is no cursor that we gave")
        try:
            listed = await self._services.listed(None if cwd is None else normal(cwd))
        except WorkspaceError as error:
            raise RequestError(INVALID, str(error)) from error
        first = int(cursor or 0)
        rest = str(first + PAGE) if len(listed) > first + PAGE else None
        return ListSessionsResponse(sessions=list(_infos(listed[first : first + PAGE])), next_cursor=rest)

    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        """End what runs in a session, and forget that it was open."""
        conversation = self._conversations.pop(session_id, None)
        if conversation is not None:
            await conversation.close()
        return CloseSessionResponse()

    # Prompts.

    async def prompt(self, session_id: str, prompt: list[Block], **_: Any) -> PromptResponse:
        """Run a prompt to its end. Up to its being noted nothing is awaited, so that a cancel can't overtake it."""
        said = read_prompt(prompt)
        if not said.text.strip() and not said.attachments:
            raise RequestError(INVALID, "The prompt is empty: it needs a text or a picture.")
        if session_id in self._opening:
            await asyncio.shield(self._opening[session_id])
        conversation = self._known(session_id)
        return await conversation.prompt(said, LEFT if self._is_ending else "")

    async def cancel(self, session_id: str, **_: Any) -> None:
        """End the prompts that were read before this; whoever asked for them is told by their responses."""
        if session_id in self._opening:
            await asyncio.shield(self._opening[session_id])
        conversation = self._conversations.get(session_id)
        if conversation is not None:
            await conversation.stop()

    # Choices.

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> SetSessionModeResponse:
        """Ask more or less often in this session."""
        await self._choose(self._known(session_id), MODE, mode_id)
        return SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> SetSessionConfigOptionResponse:
        """Choose the mode or the route of this session."""
        conversation = self._known(session_id)
        await self._choose(conversation, config_id, str(value))
        return SetSessionConfigOptionResponse(config_options=config_options(conversation.standing))

    async def _choose(self, conversation: EditorConversation, option: str, value: str) -> None:
        refusal = await self._change(conversation, option, value)
        if refusal is not None:
            raise RequestError(INVALID, refusal.message)
        await conversation.refresh()

    async def _change(self, conversation: EditorConversation, option: str, value: str) -> Refusal | None:
        session = conversation.session
        if option == MODE and value in tuple(ApprovalMode):
            return await session.choose_mode(ApprovalMode(value))
        if option == MODEL and value in conversation.standing.routes:
            return await session.choose_route(value)
        return Refusal("unknown", f"There is no {value!r} for the option {option!r}.")

    # Conversations.

    async def _opened(self, session_id: str, place: Workspace) -> EditorConversation:
        """Open a session; requests about it that come meanwhile wait, and go on in their order."""
        known = self._conversations.get(session_id)
        if known is not None and known.standing.folder == place.folder:
            return known
        done = self._opening[session_id] = asyncio.get_running_loop().create_future()
        try:
            if known is not None:
                await known.close()
            return await self._converse(await self._services.open(session_id, place))
        except UnknownSession as error:
            raise RequestError(NOT_FOUND, str(error)) from error
        except WorkspaceError as error:
            raise RequestError(INVALID, str(error)) from error
        finally:
            del self._opening[session_id]
            done.set_result(None)

    async def _converse(self, session: Session) -> EditorConversation:
        standing = await session.status()
        assert self._client is not None, "the library connects before it calls"
        conversation = EditorConversation(session, self._client, standing, self._tasks)
        self._conversations[session.id] = conversation
        return conversation

    def _offered(self, conversation: EditorConversation) -> dict[str, Any]:
        """Show the slash commands and return the choices for the response.

        The commands are sent behind the response, as nothing is awaited from here on.
        """
        conversation.outbox.put(commands(self._services.commands()))
        standing = conversation.standing
        return {"modes": modes(standing), "config_options": config_options(standing)}

    def _known(self, session_id: str) -> EditorConversation:
        conversation = self._conversations.get(session_id)
        if conversation is None:
            raise RequestError(NOT_FOUND, f"Session {session_id!r} is not open here: make a new one, or load it.")
        return conversation


def _infos(listed: Iterable[tuple[SessionLine, str]]) -> Iterable[SessionInfo]:
    for line, folder in listed:
        summary = line.summary
        updated_at = datetime.fromtimestamp(summary.updated_at, UTC).isoformat() if summary.updated_at else None
        yield SessionInfo(session_id=line.session, cwd=folder, title=summary.title or None, updated_at=updated_at)
