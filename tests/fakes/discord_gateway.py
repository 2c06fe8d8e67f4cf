"""A fake Discord gateway over a real WebSocket. Sessions can be identified, resumed, invalidated and dropped."""

import asyncio
import itertools
import json
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

from tests.fakes.discord_payloads import GUILD, ROBOT, Json, application, guild

NEEDED_INTENTS = 1 << 0 | 1 << 9 | 1 << 12 | 1 << 15
ALLOWED_INTENTS = NEEDED_INTENTS
PRIVILEGED = 1 << 1 | 1 << 8 | 1 << 15


@dataclass
class GatewaySession:
    """A client's session on the fake gateway. Its events are replayed when the client resumes."""

    id: str
    events: list[Json] = field(default_factory=list[Json])
    is_open: bool = True


class GatewaySocket:
    """One connection to the fake gateway, compressed if the client requested compression."""

    def __init__(self, socket: web.WebSocketResponse, transport: asyncio.Transport, compression: str | None) -> None:
        self.socket = socket
        self.transport = transport
        self.closed_with = 0
        self.session: GatewaySession | None = None
        self._packer = zlib.compressobj() if compression == "zlib-stream" else None

    async def send(self, payload: Json) -> None:
        text = json.dumps(payload)
        if self._packer is None:
            await self.socket.send_str(text)
        else:
            packed = self._packer.compress(text.encode()) + self._packer.flush(zlib.Z_SYNC_FLUSH)
            half = len(packed) // 2  # a message may be split into several frames
            await self.socket.send_bytes(packed[:half])
            await self.socket.send_bytes(packed[half:])


class DiscordGateway:
    """The fake gateway. It counts identified sessions and records resumed sequence numbers and close codes."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.url = ""
        self.heartbeat_ms = 45000
        self.allowed_intents = ALLOWED_INTENTS
        self.sessions: dict[str, GatewaySession] = {}
        self.sockets: list[GatewaySocket] = []
        self.identified = 0
        self.resumed: list[int] = []
        self.heartbeats = 0
        self.ignores_closing = False
        self.connections_to_refuse = 0
        self.session_starts_left = 1000
        self.closings: list[int | None] = []
        self.changed = asyncio.Event()
        self._numbers = itertools.count(1)

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        """Serve one connection until it ends."""
        raw = web.WebSocketResponse(autoclose=False)
        await raw.prepare(request)
        if request.query.get("v") != "10" or request.query.get("encoding") != "json":
            await raw.close(code=4012)
            return raw
        assert isinstance(request.transport, asyncio.Transport)
        if self.connections_to_refuse:
            self.connections_to_refuse -= 1
            await raw.close(code=4000)
            return raw
        socket = GatewaySocket(raw, request.transport, request.query.get("compress"))
        self.sockets.append(socket)
        await socket.send({"op": 10, "d": {"heartbeat_interval": self.heartbeat_ms}, "s": None, "t": None})
        async for frame in raw:
            if frame.type is not WSMsgType.TEXT or len(frame.data) > 4096:
                await raw.close(code=4002)
                break
            await self._handle(socket, json.loads(frame.data))
            self._notify()
        self.sockets.remove(socket)
        code = socket.closed_with or raw.close_code
        self.closings.append(code)
        if socket.session is not None and code in (WSCloseCode.OK, WSCloseCode.GOING_AWAY, 4009):
            socket.session.is_open = False
        while self.ignores_closing and not socket.transport.is_closing():  # noqa: ASYNC110
            await asyncio.sleep(0.02)  # the client waits for a response to its closing frame
        if not raw.closed:
            await raw.close()
        self._notify()
        return raw

    async def dispatch(self, kind: str, body: Json) -> None:
        """Send an event to all sessions. Sessions without a connection receive it when they resume."""
        for session in self.sessions.values():
            if session.is_open:
                await self._send_event(session, kind, body)

    async def redeliver(self) -> None:
        """Send the last event again, with the same sequence number."""
        for socket in self.sockets:
            if socket.session is not None:
                await socket.send(socket.session.events[-1])

    async def invalidate(self, *, is_resumable: bool = False) -> None:
        """Report to all clients that their session is invalid."""
        for socket in list(self.sockets):
            if socket.session is not None and not is_resumable:
                socket.session.is_open = False
            await socket.send({"op": 9, "d": is_resumable, "s": None, "t": None})

    async def ask_to_reconnect(self) -> None:
        for socket in list(self.sockets):
            await socket.send({"op": 7, "d": None, "s": None, "t": None})

    def drop(self) -> None:
        """Abort all connections without a close frame."""
        for socket in list(self.sockets):
            socket.transport.abort()

    async def close(self, code: int) -> None:
        """Close all connections with a code."""
        for socket in list(self.sockets):
            socket.closed_with = code
            await socket.socket.close(code=code)

    @property
    def is_ready(self) -> bool:
        return any(socket.session is not None for socket in self.sockets)

    async def _handle(self, socket: GatewaySocket, payload: Json) -> None:
        match payload["op"]:
            case 1:
                self.heartbeats += 1
                await socket.send({"op": 11, "d": None, "s": None, "t": None})
            case 2:
                await self._identify(socket, payload["d"])
            case 6:
                await self._resume(socket, payload["d"])
            case _ if socket.session is None:
                await socket.socket.close(code=4003)
            case _:
                await socket.socket.close(code=4001)

    async def _identify(self, socket: GatewaySocket, identify: Json) -> None:
        if socket.session is not None:
            await socket.socket.close(code=4005)
        elif identify["token"] != self.token:
            await socket.socket.close(code=4004)
        elif identify["intents"] & PRIVILEGED & ~self.allowed_intents:
            await socket.socket.close(code=4014)
        else:
            assert identify["intents"] == NEEDED_INTENTS, "the client requests intents that it does not need"
            self.identified += 1
            session = socket.session = GatewaySession(f"s{next(self._numbers)}")
            self.sessions[session.id] = session
            ready: dict[str, Any] = {
                "v": 10, "user": ROBOT, "guilds": [{"id": GUILD, "unavailable": True}], "session_id": session.id,
                "resume_gateway_url": self.url, "application": {"id": application()["id"], "flags": 0},
            }  # fmt: skip
            await self._send_event(session, "READY", ready)
            await self._send_event(session, "GUILD_CREATE", guild())

    async def _resume(self, socket: GatewaySocket, resume: Json) -> None:
        session = self.sessions.get(resume["session_id"])
        if resume["token"] != self.token:
            await socket.socket.close(code=4004)
        elif session is None or not session.is_open:
            await socket.send({"op": 9, "d": False, "s": None, "t": None})
        elif resume["seq"] > len(session.events):
            await socket.socket.close(code=4007)
        else:
            self.resumed.append(resume["seq"])
            for event in session.events[resume["seq"] :]:
                await socket.send(event)
            socket.session = session
            await self._send_event(session, "RESUMED", {})

    async def _send_event(self, session: GatewaySession, kind: str, body: Json) -> None:
        event = {"op": 0, "t": kind, "s": len(session.events) + 1, "d": body}
        session.events.append(event)
        for socket in self.sockets:
            if socket.session is session and not socket.socket.closed:
                with suppress(ConnectionError):  # the client is gone and receives the event when it resumes
                    await socket.send(event)

    def _notify(self) -> None:
        self.changed.set()
