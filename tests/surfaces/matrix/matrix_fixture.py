"""Matrix test users with the real client library, and the bot's account on the same homeserver."""

import asyncio
import io
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import nio  # pyright: ignore[reportMissingTypeStubs]

from hark.protocol.chat import Address, IncomingEvent
from hark.surfaces.matrix.platform import MatrixSettings
from hark.surfaces.matrix.surface import MatrixSurface
from tests.surfaces.matrix.synapse import Account, Synapse
from tests.waiting import until

MESSAGE_TYPE = "m.room.message"
SHUTDOWN_SECONDS = 20  # takes a second on an idle machine


class MatrixUser:
    """A test user with a Matrix client. `seen` holds all events in the user's rooms, as sent by the homeserver."""

    def __init__(self, client: nio.AsyncClient, account: Account) -> None:
        self.client = client
        self.id = account.id
        self.seen: list[dict[str, Any]] = []

    async def create_room(self, *invited: str, name: str = "") -> str:
        """Create a room and invite others."""
        created = await self.client.room_create(name=name, invite=list(invited), is_direct=len(invited) == 1)
        assert isinstance(created, nio.RoomCreateResponse), created
        return created.room_id

    async def create_room_with(self, bot: Account, *invited: str) -> str:
        """Create a room and wait until the bot has joined it."""
        room = await self.create_room(bot.id, *invited)
        await self.until(lambda: self.is_member(room, bot.id))
        return room

    def is_member(self, room: str, user_id: str) -> bool:
        memberships = [event["content"].get("membership") for event in self.seen if event.get("state_key") == user_id]
        known = self.client.rooms.get(room)
        return memberships[-1:] == ["join"] or (
            known is not None and user_id in known.users and not known.users[user_id].invited
        )

    async def send_event(self, room: str, content: dict[str, Any], event_type: str = MESSAGE_TYPE) -> str:
        sent = await self.client.room_send(room, event_type, content)
        assert isinstance(sent, nio.RoomSendResponse), sent
        return sent.event_id

    async def write(self, room: str, text: str, **extra: Any) -> str:
        return await self.send_event(room, {"msgtype": "m.text", "body": text, **extra})

    async def reply(self, room: str, to: str, text: str) -> str:
        return await self.write(room, text, **{"m.relates_to": {"m.in_reply_to": {"event_id": to}}})

    async def edit(self, room: str, message: str, text: str) -> str:
        new = {"msgtype": "m.text", "body": text}
        relation = {"rel_type": "m.replace", "event_id": message}
        return await self.write(room, f"* {text}", **{"m.new_content": new, "m.relates_to": relation})

    async def react(self, room: str, message: str, reaction: str) -> str:
        relation = {"rel_type": "m.annotation", "event_id": message, "key": reaction}
        return await self.send_event(room, {"m.relates_to": relation}, "m.reaction")

    async def redact(self, room: str, message: str) -> None:
        response = await self.client.room_redact(room, message)
        assert isinstance(response, nio.RoomRedactResponse), response

    async def upload(self, data: bytes, media_type: str) -> str:
        response, _ = await self.client.upload(io.BytesIO(data), media_type, "upload", filesize=len(data))
        assert isinstance(response, nio.UploadResponse), response
        return response.content_uri

    async def sync(self, wait_ms: int = 0) -> None:
        response = await self.client.sync(wait_ms)
        assert isinstance(response, nio.SyncResponse), response
        for joined in response.rooms.join.values():
            events = cast("list[Any]", joined.timeline.events)  # pyright: ignore[reportUnknownMemberType]
            self.seen += [event.source for event in events]

    async def until(self, is_done: Callable[[], bool]) -> None:
        """Sync until the condition is true."""
        await self.sync()
        await until(is_done, changed=lambda: self.sync(5000), shows=lambda: self.seen)

    def texts_of(self, author: str) -> list[str]:
        """Return the current texts of an author's messages, oldest first."""
        texts: dict[str, str] = {}
        for event in self.seen:
            content = event["content"]
            if event["type"] != MESSAGE_TYPE or event["sender"] != author or "body" not in content:
                continue
            if "m.new_content" in content:
                texts[content["m.relates_to"]["event_id"]] = content["m.new_content"]["body"]
            else:
                texts[event["event_id"]] = content["body"]
        return list(texts.values())

    def events_of(self, author: str, event_type: str = MESSAGE_TYPE) -> list[dict[str, Any]]:
        return [event for event in self.seen if event["sender"] == author and event["type"] == event_type]


@asynccontextmanager
async def matrix_user(synapse: Synapse, name: str = "ann") -> AsyncGenerator[MatrixUser]:
    account = synapse.register(name, name.capitalize())
    client = nio.AsyncClient(synapse.url, account.id)
    client.access_token, client.user_id = account.token, account.id
    try:
        yield MatrixUser(client, account)
    finally:
        await client.close()


class DeliveryRecorder:
    """Records deliveries. While `gate` is closed, deliveries from `held_room` wait (from all rooms if it is "")."""

    def __init__(self) -> None:
        self.events: list[IncomingEvent] = []
        self.attempts: list[IncomingEvent] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.held_room = ""
        self.errors: list[Exception] = []
        self._changed = asyncio.Event()

    async def deliver(self, incoming: IncomingEvent) -> None:
        self.attempts.append(incoming)
        self._changed.set()
        if self.held_room in ("", incoming.address.chat):
            await self.gate.wait()
        if self.errors:
            raise self.errors.pop(0)
        self.events.append(incoming)
        self._changed.set()

    async def until(self, is_done: Callable[[], bool]) -> None:
        await until(is_done, changed=self._changed, shows=lambda: (self.attempts, self.events))

    async def wait_for(self, count: int) -> list[IncomingEvent]:
        """Wait until this many events were delivered, and return all of them."""
        await self.until(lambda: len(self.events) >= count)
        return self.events


def make_matrix_surface(synapse: Synapse, bot: Account, directory: Path, **options: Any) -> MatrixSurface:
    """Return a surface that accepts invites from all users except those named "stranger"."""
    settings = MatrixSettings(api_base=synapse.url, **options)
    return MatrixSurface(settings, bot.token, directory / "matrix", lambda author: "stranger" not in author.id)


@asynccontextmanager
async def running_surface(
    surface: MatrixSurface, recorder: DeliveryRecorder | None = None
) -> AsyncGenerator[DeliveryRecorder]:
    """Run a surface. At the end, check that the surface and all its tasks stop quickly."""
    recorder = recorder or DeliveryRecorder()
    before = asyncio.all_tasks()
    running = asyncio.create_task(surface.run(recorder.deliver))
    watching = asyncio.create_task(_cancel_test_when_ended(running, asyncio.current_task()))
    try:
        yield recorder
    finally:
        watching.cancel()
        running.cancel()
        await asyncio.wait([watching])
        async with asyncio.timeout(SHUTDOWN_SECONDS):
            await asyncio.wait([running])
        leftover_tasks = {
            task for task in asyncio.all_tasks() - before if not task.done() and task.get_name() != "relay"
        }
        assert not leftover_tasks, leftover_tasks


async def _cancel_test_when_ended(running: "asyncio.Task[None]", test: "asyncio.Task[Any] | None") -> None:
    """Cancel the test if the surface ends unexpectedly."""
    await asyncio.wait([running])
    if test is not None:
        test.cancel(f"the surface ended: {running.exception()!r}")


def room_address(room: str, thread: str = "") -> Address:
    return Address("matrix", room, thread)


def new_key() -> str:
    return uuid.uuid4().hex
