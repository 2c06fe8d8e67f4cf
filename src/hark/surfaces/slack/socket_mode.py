"""Socket Mode: one connection after the other, each acknowledging what was heard on it."""

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
from hark.surfaces.slack.web_api import Web

PING_SECONDS = 10.0
CONNECT_SECONDS = 9.0  # less than the library pauses before it would try the same address again
CLOSE_SECONDS = 0.4
FINISH_SECONDS = 3.0
SHORT_SECONDS = 10.0
MOST_SHORT = 3


class SocketConnection(SocketModeClient):
    """One connection. It never connects again by itself: `ended` tells that another is needed."""

    def __init__(self, web: Web, app: AsyncApp, app_token: str, address: str) -> None:
        super().__init__(
            app_token,
            logger=web.silent,
            web_client=web.client,
            auto_reconnect_enabled=False,
            ping_interval=PING_SECONDS,
        )
        self.wss_uri = address
        self.ended = asyncio.Event()
        self._app = app
        self._taking: set[asyncio.Task[None]] = set()
        self.socket_mode_request_listeners.append(self._take)

    async def begin(self) -> None:
        """Connect.

        Raises:
            ChatError: It could not be done in time.
        """
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self.connect()
        except TimeoutError:
            raise ChatError("Slack's Socket Mode server can't be reached.") from None

    async def finish(self) -> None:
        """Let what was received come to its ack, for a while."""
        if self._taking:
            await asyncio.wait(self._taking, timeout=FINISH_SECONDS)

    async def end(self) -> None:
        """Close the connection, within a second; nothing of it runs when this returns."""
        self.closed = True
        with anyio.CancelScope(shield=True):
            tasks = self._tasks()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
            with anyio.move_on_after(CLOSE_SECONDS):
                await self.disconnect()
            await self.aiohttp_client_session.close()

    def _tasks(self) -> list[asyncio.Future[None]]:
        library = cast("Any", self)
        tasks = [library.message_processor, library.current_session_monitor, library.message_receiver]
        return [task for task in tasks if task is not None] + [*self._taking]

    # What the library calls.

    async def receive_messages(self) -> None:
        """Take what comes until the connection is lost, which the library's own would ask again and again."""
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
        """Start to deal with the next message, in a task that `end` knows of."""
        raw: str = await cast("asyncio.Queue[str]", cast("Any", self).message_queue).get()
        message = cast("dict[str, Any]", json.loads(raw)) if raw.startswith("{") else {}
        task = asyncio.create_task(cast("Any", self).run_message_listeners(message, raw), name="slack message")
        self._taking.add(task)
        task.add_done_callback(self._taking.discard)

    async def connect_to_new_endpoint(self, force: bool = False) -> None:
        """Slack asks us to connect anew: whoever runs us does."""
        self.ended.set()

    async def _take(self, client: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        payload = cast("Any", request).payload
        response = await self._app.async_dispatch(AsyncBoltRequest(mode="socket_mode", body=payload))
        if response.status == 200:
            await client.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))


async def receive(web: Web, app: AsyncApp, app_token: str) -> None:
    """Receive until cancelled. The next connection is there before the last one is closed.

    Raises:
        ChatError: Slack can't be reached or refuses us.
    """
    last: SocketConnection | None = None
    short = 0
    try:
        while True:
            connection = SocketConnection(web, app, app_token, await web.open_socket(app_token))
            before, last = last, connection
            try:
                await connection.begin()
                if before is not None:
                    await before.finish()
            finally:
                if before is not None:
                    await before.end()
            began = time.monotonic()
            await connection.ended.wait()
            short = short + 1 if time.monotonic() - began < SHORT_SECONDS else 0
            if short > MOST_SHORT:
                raise ChatError("Slack closes each connection at once.")
            await asyncio.sleep(short * 0.1)
    finally:
        if last is not None:
            await last.end()
