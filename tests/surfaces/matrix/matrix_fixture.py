"""People with the real client library, and our account at work on the same homeserver."""

import asyncio
import io
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import nio  # pyright: ignore[reportMissingTypeStubs]

from hark.protocol.chat import Address, Incoming
from hark.surfaces.matrix.platform import MatrixSettings
from hark.surfaces.matrix.surface import Matrix
from tests.surfaces.matrix.synapse import Account, Synapse
from tests.waiting import until

TEXT = "m.room.message"
END_SECONDS = 20  # a second on an idle machine


class Person:
    """Somebody with a client. `seen` is all that happened in their rooms, as the homeserver told it."""

    def __init__(self, client: nio.AsyncClient, account: Account) -> None:
        self.client = client
        self.id = account.id
        self.seen: list[dict[str, Any]] = []

    async def room(self, *others: str, name: str = "") -> str:
        """Make a room and ask others in."""
        made = await self.client.room_create(name=name, invite=list(others), is_direct=len(others) == 1)
        assert isinstance(made, nio.RoomCreateResponse), made
        return made.room_id

    async def room_with(self, bot: Account, *others: str) -> str:
        """Make a room in which our account is."""
        room = await self.room(bot.id, *others)
        await self.until(lambda: self.is_in(room, bot.id))
        return room

    def is_in(self, room: str, person: str) -> bool:
        is_joined = [event["content"].get("membership") for event in self.seen if event.get("state_key") == person]
        known = self.client.rooms.get(room)
        return is_joined[-1:] == ["join"] or (
            known is not None and person in known.users and not known.users[person].invited
        )

    async def put(self, room: str, content: dict[str, Any], kind: str = TEXT) -> str:
        sent = await self.client.room_send(room, kind, content)
        assert isinstance(sent, nio.RoomSendResponse), sent
        return sent.event_id

    async def write(self, room: str, text: str, **more: Any) -> str:
        return await self.put(room, {"msgtype": "m.text", "body": text, **more})

    async def reply(self, room: str, to: str, text: str) -> str:
        return await self.write(room, text, **{"m.relates_to": {"m.in_reply_to": {"event_id": to}}})

    async def edit(self, room: str, message: str, text: str) -> str:
        new = {"msgtype": "m.text", "body": text}
        relation = {"rel_type": "m.replace", "event_id": message}
        return await self.write(room, f"* {text}", **{"m.new_content": new, "m.relates_to": relation})

    async def react(self, room: str, message: str, sign: str) -> str:
        relation = {"rel_type": "m.annotation", "event_id": message, "key": sign}
        return await self.put(room, {"m.relates_to": relation}, "m.reaction")

    async def redact(self, room: str, message: str) -> None:
        done = await self.client.room_redact(room, message)
        assert isinstance(done, nio.RoomRedactResponse), done

    async def upload(self, data: bytes, media_type: str) -> str:
        done, _ = await self.client.upload(io.BytesIO(data), media_type, "upload", filesize=len(data))
        assert isinstance(done, nio.UploadResponse), done
        return done.content_uri

    async def sync(self, wait_ms: int = 0) -> None:
        done = await self.client.sync(wait_ms)
        assert isinstance(done, nio.SyncResponse), done
        for joined in done.rooms.join.values():
            events = cast("list[Any]", joined.timeline.events)  # pyright: ignore[reportUnknownMemberType]
            self.seen += [event.source for event in events]

    async def until(self, is_true: Callable[[], bool]) -> None:
        """Wait until what was seen makes it true."""
        await self.sync()
        await until(is_true, changed=lambda: self.sync(5000), shows=lambda: self.seen)

    def texts_of(self, author: str) -> list[str]:
        """Return the messages of somebody as they read now, the oldest first."""
        now: dict[str, str] = {}
        for event in self.seen:
            content = event["content"]
            if event["type"] != TEXT or event["sender"] != author or "body" not in content:
                continue
            if "m.new_content" in content:
                now[content["m.relates_to"]["event_id"]] = content["m.new_content"]["body"]
            else:
                now[event["event_id"]] = content["body"]
        return list(now.values())

    def events_of(self, author: str, kind: str = TEXT) -> list[dict[str, Any]]:
        return [event for event in self.seen if event["sender"] == author and event["type"] == kind]


@asynccontextmanager
async def person(synapse: Synapse, name: str = "ann") -> AsyncGenerator[Person]:
    account = synapse.register(name, name.capitalize())
    client = nio.AsyncClient(synapse.url, account.id)
    client.access_token, client.user_id = account.token, account.id
    try:
        yield Person(client, account)
    finally:
        await client.close()


class Inbox:
    """Takes what is delivered. While `free` is not set, deliveries of chat `held` (of all, when "") stay open."""

    def __init__(self) -> None:
        self.taken: list[Incoming] = []
        self.begun: list[Incoming] = []
        self.free = asyncio.Event()
        self.free.set()
        self.held = ""
        self.failing: list[Exception] = []
        self._changed = asyncio.Event()

    async def deliver(self, incoming: Incoming) -> None:
        self.begun.append(incoming)
        self._changed.set()
        if self.held in ("", incoming.address.chat):
            await self.free.wait()
        if self.failing:
            raise self.failing.pop(0)
        self.taken.append(incoming)
        self._changed.set()

    async def until(self, is_true: Callable[[], bool]) -> None:
        await until(is_true, changed=self._changed, shows=lambda: (self.begun, self.taken))

    async def of(self, count: int) -> list[Incoming]:
        """Return what was taken, when it is so many."""
        await self.until(lambda: len(self.taken) >= count)
        return self.taken


def matrix(synapse: Synapse, bot: Account, folder: Path, **more: Any) -> Matrix:
    """Return our surface, which follows everybody's invites but those of strangers."""
    settings = MatrixSettings(api_base=synapse.url, **more)
    return Matrix(settings, bot.token, folder / "matrix", lambda author: "stranger" not in author.id)


@asynccontextmanager
async def at_work(surface: Matrix, inbox: Inbox | None = None) -> AsyncGenerator[Inbox]:
    """Run a surface; at the end it must be gone soon, with all that it started."""
    inbox = inbox or Inbox()
    before = asyncio.all_tasks()
    running = asyncio.create_task(surface.run(inbox.deliver))
    watching = asyncio.create_task(_pass_on(running, asyncio.current_task()))
    try:
        yield inbox
    finally:
        watching.cancel()
        running.cancel()
        await asyncio.wait([watching])
        async with asyncio.timeout(END_SECONDS):
            await asyncio.wait([running])
        left = {task for task in asyncio.all_tasks() - before if not task.done() and task.get_name() != "relay"}
        assert not left, left


async def _pass_on(running: "asyncio.Task[None]", test: "asyncio.Task[Any] | None") -> None:
    """A surface that ends by itself ends the test."""
    await asyncio.wait([running])
    if test is not None:
        test.cancel(f"the surface ended: {running.exception()!r}")


def home(room: str, thread: str = "") -> Address:
    return Address("matrix", room, thread)


def new_key() -> str:
    return uuid.uuid4().hex
