"""News of all rooms, dealt with room by room; the token moves only over what was delivered."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import cast

import anyio
from anyio.abc import TaskGroup

from hark.protocol.chat import ChatError, ChatGone
from hark.surfaces.chat.retry import retried
from hark.surfaces.matrix.sync_state import SyncState
from hark.surfaces.matrix.wire import Wire
from hark.surfaces.matrix.wire_types import (
    Invited,
    JoinedRoom,
    RoomEvent,
    Unsigned,
    content_of,
    events_of,
    understood,
)
from hark.timing.rate_limit import RateLimit

MOST_OPEN = 2000  # answers of which some room is slow; more would not be held in memory
STRANGERS_AN_HOUR = 20
LOG = logging.getLogger(__name__)


class Invites:
    """Decides about each invite. Strangers can't fill us with rooms: an hour has only so many of them."""

    def __init__(self, me: str, may_talk: Callable[[str], bool]) -> None:
        self._me = me
        self._may_talk = may_talk
        self._direct: set[str] = set()
        self._strangers = RateLimit(STRANGERS_AN_HOUR, STRANGERS_AN_HOUR / 3600)

    def note(self, invited: Mapping[str, Invited]) -> None:
        """Learn which rooms are chats of two; the client library does not tell."""
        for room, invite in invited.items():
            events = events_of(invite.invite_state.events)
            mine = [content_of(event) for event in events if event.state_key == self._me]
            if any(content.membership == "invite" and content.is_direct for content in mine):
                self._direct.add(room)

    def is_followed(self, room: str, person: str) -> bool:
        """Tell whether to enter a room; counts it when it is a stranger's."""
        if self._may_talk(person):
            return True
        if room not in self._direct or not self._strangers.take():
            return False
        self._direct.discard(room)
        return True


@dataclass
class Batch:
    """One answer to a sync: up to which token it reaches, and how many rooms of it are not dealt with."""

    since: str
    token: str
    rooms_left: int


class Receiving:
    """Syncs until cancelled. A room that is slow (a large file, a long gap) holds no other room's news.

    Order within a room is kept. The token that is kept in the file is that of the last answer before the first one
    that is not wholly delivered, so that a crash at any point has it delivered again.
    """

    def __init__(
        self,
        wire: Wire,
        memory: SyncState,
        me: str,
        deal_with: Callable[[str, RoomEvent], Awaitable[None]],
        invites: Invites,
    ) -> None:
        self._wire = wire
        self._memory = memory
        self._me = me
        self._deal_with = deal_with
        self._invites = invites
        self._open: deque[Batch] = deque()
        self._lanes: dict[str, deque[tuple[Batch, JoinedRoom]]] = {}
        self._learned: set[str] = set()
        self._closed = asyncio.Event()
        self._unsaved = b""
        self._moved = asyncio.Event()

    async def run(self) -> None:
        """Receive until cancelled.

        Raises:
            ChatError: The homeserver can't be reached or refuses us.
        """
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._save)
                await self._sync(tasks)
        except BaseExceptionGroup as group:
            raise _first(group) from None

    async def _sync(self, tasks: TaskGroup) -> None:
        since = self._memory.since
        while True:
            try:
                synced = await self._wire.sync(since)
            except ChatGone as error:
                raise ChatError(f"{error}. If the homeserver was set up anew, remove {self._memory.path}.") from error
            news = synced.rooms.join if since else {}  # what was said before we were ever here is not said to us
            news = {room: joined for room, joined in news.items() if joined.timeline.events}
            batch = Batch(since, synced.next_batch, len(news))
            self._open.append(batch)
            for room, joined in news.items():
                self._queue(tasks, room, batch, joined)
            self._invites.note(synced.rooms.invite)
            self._enter_rooms(tasks)
            self._advance()
            since = synced.next_batch
            while len(self._open) >= MOST_OPEN:
                self._closed.clear()
                await self._closed.wait()

    def _queue(self, tasks: TaskGroup, room: str, batch: Batch, joined: JoinedRoom) -> None:
        lane = self._lanes.get(room)
        if lane is not None:
            lane.append((batch, joined))
            return
        self._lanes[room] = deque([(batch, joined)])
        tasks.start_soon(self._run_lane, room, name=f"matrix {room}")

    async def _run_lane(self, room: str) -> None:
        lane = self._lanes[room]
        while lane:
            batch, joined = lane[0]
            await self._learn(room, joined)
            for event in await self._all_of(room, batch.since, joined):
                await self._deal_with(room, event)
            lane.popleft()
            batch.rooms_left -= 1
            self._advance()
        del self._lanes[room]

    async def _learn(self, room: str, joined: JoinedRoom) -> None:
        """Know who is in a room before its news are read."""
        is_new = joined.timeline.limited or _arrival(events_of(joined.timeline.events), self._me) is not None
        if room in self._learned and not is_new:
            return
        try:
            await retried(lambda: self._wire.learn_members(room))
        except ChatGone as error:
            LOG.info("matrix: who is in %s is not told: %s", room, error)
        self._learned.add(room)

    async def _all_of(self, room: str, since: str, joined: JoinedRoom) -> list[RoomEvent]:
        """Return what happened, with what the server left out because it was much."""
        events = events_of(joined.timeline.events)
        start = joined.timeline.prev_batch if joined.timeline.limited else ""
        while start and _arrival(events, self._me) is None:
            try:
                page = await retried(partial(self._wire.page, room, start, since))
            except ChatGone as error:
                LOG.warning("matrix: what was said in %s meanwhile can't be read: %s", room, error)
                break
            events = [*reversed(events_of(page.chunk)), *events]
            start = page.end if page.end and page.chunk else ""
        return events[_arrival(events, self._me) or 0 :]

    def _enter_rooms(self, tasks: TaskGroup) -> None:
        """Join where we should; other invites wait, should their author be let in."""
        for room, person in self._wire.invites().items():
            if person and self._invites.is_followed(room, person):
                self._wire.forget_invite(room)
                tasks.start_soon(self._enter, room)

    async def _enter(self, room: str) -> None:
        try:
            await retried(lambda: self._wire.join(room))
        except ChatError as error:
            LOG.warning("matrix: %s can't be joined: %s", room, error)

    def _advance(self) -> None:
        while self._open and self._open[0].rooms_left == 0:
            batch = self._open.popleft()
            if batch.token != self._memory.since:
                self._unsaved = self._memory.move(batch.token)
                self._moved.set()
            self._closed.set()

    async def _save(self) -> None:
        while True:
            await self._moved.wait()
            self._moved.clear()
            await anyio.to_thread.run_sync(self._memory.save, self._unsaved)


def _arrival(events: list[RoomEvent], me: str) -> int | None:
    """Return from where on things were said to us, when we came into the room among them: since we were asked in."""
    for place in reversed(range(len(events))):
        if _membership(events[place], me) != "join" or _was_in(events[place]):
            continue
        for earlier in reversed(range(place)):
            if _membership(events[earlier], me) == "invite":
                return earlier + 1
        return place + 1
    return None


def _membership(event: RoomEvent, me: str) -> str:
    return content_of(event).membership if event.type == "m.room.member" and event.state_key == me else ""


def _was_in(event: RoomEvent) -> bool:
    unsigned = understood(event.unsigned, Unsigned)
    return unsigned is not None and unsigned.prev_content.membership == "join"


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the error that made the others end."""
    errors = group.exceptions
    while isinstance(errors[0], BaseExceptionGroup):
        errors = cast("BaseExceptionGroup[BaseException]", errors[0]).exceptions
    return errors[0]
