"""Receive over Socket Mode with successive connections. Each connection acknowledges the events it received."""

import asyncio
import json
import time
from typing import Any, cast

import anyio
from aiohttp import WSMsgType
from slack_bolt.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse

from hark.protocol.chat import ChatError
from hark.surfaces.slack.web_api import SlackWebApi

PING_SECONDS = 10.0
CONNECT_SECONDS = 9.0  # shorter than the library's pause before it would retry the same URL
CLOSE_SECONDS = 0.4
ACK_SECONDS = 3.0
SHORT_CONNECTION_SECONDS = 10.0
MAX_SHORT_CONNECTIONS = 3


class SocketConnection(SocketModeClient):
    """One Socket Mode connection. It never reconnects; the event `ended` is set when a new connection is needed."""

    def __init__(self, web: SlackWebApi, app: AsyncApp, app_token: str, url: str) -> None:
        super().__init__(
            app_token,
            logger=web.silent_logger,
            web_client=web.client,
            auto_reconnect_enabled=False,
            ping_interval=PING_SECONDS,
        )
        self.wss_uri = url
        self.ended = asyncio.Event()
        self._app = app
        self._processing: set[asyncio.Task[None]] = set()
        self.socket_mode_request_listeners.append(self._dispatch)

    async def connect_with_timeout(self) -> None:
        """Connect to Slack.

        Raises:
            ChatError: The connection was not established in time.
        """
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self.connect()
        except TimeoutError:
            raise ChatError("Slack's Socket Mode server can't be reached.") from None

    async def wait_for_acks(self) -> None:
        """Wait for a limited time until the received events are acknowledged."""
        if self._processing:
            await asyncio.wait(self._processing, timeout=ACK_SECONDS)

    async def shut_down(self) -> None:
        """Close the connection and cancel its tasks, within a second."""
        self.closed = True
        with anyio.CancelScope(shield=True):
            tasks = self._all_tasks()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
            with anyio.move_on_after(CLOSE_SECONDS):
                await self.disconnect()
            await self.aiohttp_client_session.close()

    def _all_tasks(self) -> list[asyncio.Future[None]]:
        library = cast("Any", self)
        tasks = [library.message_processor, library.current_session_monitor, library.message_receiver]
        return [task for task in tasks if task is not None] + [*self._processing]

    # Overrides of methods that the library calls.

    async def receive_messages(self) -> None:
        """Receive messages until the connection is lost. The library's own method would retry forever."""
        session = self.current_session
        assert session is not None
        try:
            async for message in session:
                if message.type is WSMsgType.TEXT:
                    await self.enqueue_message(cast("str", message.data))
                elif message.type is WSMsgType.PING:
                    await session.pong(cast("bytes", message.data))
        finally:
            self.ended.set()

    async def process_message(self) -> None:
        """Start processing the next message in a task that `shut_down` can cancel."""
        raw: str = await cast("asyncio.Queue[str]", cast("Any", self).message_queue).get()
        message = cast("dict[str, Any]", json.loads(raw)) if raw.startswith("{") else {}
        task = asyncio.create_task(cast("Any", self).run_message_listeners(message, raw), name="slack message")
        self._processing.add(task)
        task.add_done_callback(self._processing.discard)

    async def connect_to_new_endpoint(self, force: bool = False) -> None:
        """Signal that Slack asks for a new connection. The caller creates it."""
        self.ended.set()

    async def _dispatch(self, client: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        payload = cast("Any", request).payload
        response = await self._app.async_dispatch(AsyncBoltRequest(mode="socket_mode", body=payload))
        if response.status == 200:
            await client.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))


async def receive_events(web: SlackWebApi, app: AsyncApp, app_token: str) -> None:
    """Receive events until cancelled. A new connection is opened before the old one is closed.

    Raises:
        ChatError: Slack can't be reached or refused the connection.
    """
    current: SocketConnection | None = None
    short_count = 0
    try:
        while True:
            connection = SocketConnection(web, app, app_token, await web.new_socket_url(app_token))
            previous, current = current, connection
            try:
                await connection.connect_with_timeout()
                if previous is not None:
                    await previous.wait_for_acks()
            finally:
                if previous is not None:
                    await previous.shut_down()
            connected_at = time.monotonic()
            await connection.ended.wait()
            short_count = short_count + 1 if time.monotonic() - connected_at < SHORT_CONNECTION_SECONDS else 0
            if short_count > MAX_SHORT_CONNECTIONS:
                raise ChatError("Slack closed several connections right after they were opened.")
            await asyncio.sleep(short_count * 0.1)
    finally:
        if current is not None:
            await current.shut_down()
