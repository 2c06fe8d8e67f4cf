"""Discord's gateway over a real WebSocket: sessions that are begun, resumed, invalidated and cut."""

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
class Session:
    """What Discord keeps of a client: the events, which it replays to whoever resumes."""

    id: str
    events: list[Json] = field(default_factory=list[Json])
    is_open: bool = True


class Socket:
    """One connection, compressed as the client asked for."""

    def __init__(self, socket: web.WebSocketResponse, transport: asyncio.Transport, compression: str | None) -> None:
        self.socket = socket
        self.transport = transport
        self.closed_with = 0
        self.session: Session | None = None
        self._packer = zlib.compressobj() if compression == "zlib-stream" else None

    async def send(self, payload: Json) -> None:
        text = json.dumps(payload)
        if self._packer is None:
            await self.socket.send_str(text)
        else:
            packed = self._packer.compress(text.encode()) + self._packer.flush(zlib.Z_SYNC_FLUSH)
            half = len(packed) // 2  # a message may come in more frames than one
            await self.socket.send_bytes(packed[:half])
            await self.socket.send_bytes(packed[half:])


class DiscordGateway:
    """Speaks opcodes. `identified` and `resumed` count what clients asked for; `closings` are their close codes."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.url = ""
        self.heartbeat_ms = 45000
        self.allowed_intents = ALLOWED_INTENTS
        self.sessions: dict[str, Session] = {}
        self.sockets: list[Socket] = []
        self.identified = 0
        self.resumed: list[int] = []
        self.beats = 0
        self.is_deaf = False
        self.refuses = 0
        self.starts_left = 1000
        self.closings: list[int | None] = []
        self.changed = asyncio.Event()
        self._names = itertools.count(1)

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        """One connection, to its end."""
        raw = web.WebSocketResponse(autoclose=False)
        await raw.prepare(request)
        if request.query.get("v") != "10" or request.query.get("encoding") != "json":
            await raw.close(code=4012)
            return raw
        assert isinstance(request.transport, asyncio.Transport)
        if self.refuses:
            self.refuses -= 1
            await raw.close(code=4000)
            return raw
        socket = Socket(raw, request.transport, request.query.get("compress"))
        self.sockets.append(socket)
        await socket.send({"op": 10, "d": {"heartbeat_interval": self.heartbeat_ms}, "s": None, "t": None})
        async for frame in raw:
            if frame.type is not WSMsgType.TEXT or len(frame.data) > 4096:
                await raw.close(code=4002)
                break
            await self._take(socket, json.loads(frame.data))
            self._change()
        self.sockets.remove(socket)
        code = socket.closed_with or raw.close_code
        self.closings.append(code)
        if socket.session is not None and code in (WSCloseCode.OK, WSCloseCode.GOING_AWAY, 4009):
            socket.session.is_open = False
        while self.is_deaf and not socket.transport.is_closing():  # noqa: ASYNC110
            await asyncio.sleep(0.02)  # the client waits for an answer to its closing
        if not raw.closed:
            await raw.close()
        self._change()
        return raw

    async def dispatch(self, kind: str, body: Json) -> None:
        """Tell all sessions; those without a connection get it when they resume."""
        for session in self.sessions.values():
            if session.is_open:
                await self._tell(session, kind, body)

    async def redeliver(self) -> None:
        """Send the last event once more, under the same number."""
        for socket in self.sockets:
            if socket.session is not None:
                await socket.send(socket.session.events[-1])

    async def invalidate(self, *, is_resumable: bool = False) -> None:
        """Tell all that their session is not valid."""
        for socket in list(self.sockets):
            if socket.session is not None and not is_resumable:
                socket.session.is_open = False
            await socket.send({"op": 9, "d": is_resumable, "s": None, "t": None})

    async def ask_to_reconnect(self) -> None:
        for socket in list(self.sockets):
            await socket.send({"op": 7, "d": None, "s": None, "t": None})

    def drop(self) -> None:
        """Cut all connections, without a word."""
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

    async def _take(self, socket: Socket, payload: Json) -> None:
        match payload["op"]:
            case 1:
                self.beats += 1
                await socket.send({"op": 11, "d": None, "s": None, "t": None})
            case 2:
                await self._identify(socket, payload["d"])
            case 6:
                await self._resume(socket, payload["d"])
            case _ if socket.session is None:
                await socket.socket.close(code=4003)
            case _:
                await socket.socket.close(code=4001)

    async def _identify(self, socket: Socket, asked: Json) -> None:
        if socket.session is not None:
            await socket.socket.close(code=4005)
        elif asked["token"] != self.token:
            await socket.socket.close(code=4004)
        elif asked["intents"] & PRIVILEGED & ~self.allowed_intents:
            await socket.socket.close(code=4014)
        else:
            assert asked["intents"] == NEEDED_INTENTS, "it asks for more than it needs"
            self.identified += 1
            session = socket.session = Session(f"s{next(self._names)}")
            self.sessions[session.id] = session
            ready: dict[str, Any] = {
                "v": 10, "user": ROBOT, "guilds": [{"id": GUILD, "unavailable": True}], "session_id": session.id,
                "resume_gateway_url": self.url, "application": {"id": application()["id"], "flags": 0},
            }  # fmt: skip
            await self._tell(session, "READY", ready)
            await self._tell(session, "GUILD_CREATE", guild())

    async def _resume(self, socket: Socket, asked: Json) -> None:
        session = self.sessions.get(asked["session_id"])
        if asked["token"] != self.token:
            await socket.socket.close(code=4004)
        elif session is None or not session.is_open:
            await socket.send({"op": 9, "d": False, "s": None, "t": None})
        elif asked["seq"] > len(session.events):
            await socket.socket.close(code=4007)
        else:
            self.resumed.append(asked["seq"])
            for event in session.events[asked["seq"] :]:
                await socket.send(event)
            socket.session = session
            await self._tell(session, "RESUMED", {})

    async def _tell(self, session: Session, kind: str, body: Json) -> None:
        event = {"op": 0, "t": kind, "s": len(session.events) + 1, "d": body}
        session.events.append(event)
        for socket in self.sockets:
            if socket.session is session and not socket.socket.closed:
                with suppress(ConnectionError):  # the client is gone: it gets the event when it resumes
                    await socket.send(event)

    def _change(self) -> None:
        self.changed.set()
