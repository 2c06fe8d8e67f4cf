"""The agent works with the official ACP client library."""

import asyncio
import sys
from pathlib import Path
from typing import Any, cast

from acp import PROTOCOL_VERSION, Client, spawn_agent_process, text_block
from acp.schema import AllowedOutcome, PermissionOption, RequestPermissionResponse, ToolCallUpdate

from tests.fakes.models.behaviours import hanging, text
from tests.fakes.models.server import ModelServer
from tests.interrupts.points import call_shell
from tests.surfaces.acp.editor import COMMAND, Editor
from tests.waiting import until


class ApprovingClient:
    """A test client that allows every call and records the updates."""

    def __init__(self) -> None:
        self.updates: list[Any] = []
        self.permission_requests: list[ToolCallUpdate] = []
        self.update_arrived = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)
        self.update_arrived.set()

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        self.permission_requests.append(tool_call)
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=options[0].option_id))

    def on_connect(self, conn: object) -> None:
        pass


async def test_client_library_can_run_a_whole_conversation(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    script = [call_shell("touch made"), text(["done"]), hanging(2)]
    async with ModelServer(script, is_strict=True) as server:
        editor = Editor(tmp_path / "home", folder, server)
        editor.configure(text='[approvals]\nmode = "ask"\n')
        client = ApprovingClient()
        environment = {"HARK_HOME": str(editor.home)}
        async with spawn_agent_process(
            cast("Client", client), sys.executable, *COMMAND, env=environment, cwd=Path.cwd()
        ) as (connection, process):
            initialized = await connection.initialize(protocol_version=PROTOCOL_VERSION)
            assert initialized.agent_capabilities is not None
            assert initialized.agent_capabilities.load_session
            session = await connection.new_session(cwd=str(folder), mcp_servers=[])
            assert session.modes is not None
            ended = await connection.prompt(session_id=session.session_id, prompt=[text_block("go")])
            assert ended.stop_reason == "end_turn"
            assert [call.title for call in client.permission_requests] == ["`touch made`"]
            assert (folder / "made").exists()

            running = asyncio.create_task(connection.prompt(session_id=session.session_id, prompt=[text_block("hang")]))
            await until(
                lambda: any("tok1" in str(update) for update in client.updates),
                changed=client.update_arrived,
                shows=lambda: client.updates,
            )
            await connection.cancel(session_id=session.session_id)
            assert (await running).stop_reason == "cancelled"
            listed = await connection.list_sessions()
            assert [one.session_id for one in listed.sessions] == [session.session_id]
            await connection.load_session(cwd=str(folder), session_id=session.session_id, mcp_servers=[])
        assert process.returncode is not None
