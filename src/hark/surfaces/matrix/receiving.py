"""Receive events from all rooms, processing rooms independently. The sync token advances only after delivery."""

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
from hark.surfaces.chat.retry import retry_call
from hark.surfaces.matrix.matrix_client import MatrixClient
from hark.surfaces.matrix.sync_state import SyncState
from hark.surfaces.matrix.wire_types import (
    InvitedRoom,
    JoinedRoom,
    RoomEvent,
    Unsigned,
    content_of,
    events_of,
    parse_json,
)
from hark.timing.rate_limit import RateLimit

MAX_OPEN_BATCHES = 2000  # Limits the memory for sync responses that wait for a slow room.
MAX_UNKNOWN_INVITES_PER_HOUR = 20
LOG = logging.getLogger(__name__)


class InvitePolicy:
    """Decides which invites to accept. Invites from unknown users are limited per hour."""

    def __init__(self, bot_id: str, is_allowed: Callable[[str], bool]) -> None:
        self._bot_id = bot_id
        self._is_allowed = is_allowed
        self._direct: set[str] = set()
        self._unknown_limit = RateLimit(MAX_UNKNOWN_INVITES_PER_HOUR, MAX_UNKNOWN_INVITES_PER_HOUR / 3600)

    def remember_direct_rooms(self, invites: Mapping[str, InvitedRoom]) -> None:
        """Remember which invites are for direct chats, because the client library doesn't provide this information."""
        for room, invite in invites.items():
            events = events_of(invite.invite_state.events)
            contents = [content_of(event) for event in events if event.state_key == self._bot_id]
            if any(content.membership == "invite" and content.is_direct for content in contents):
                self._direct.add(room)

    def should_join(self, room: str, inviter: str) -> bool:
        """Return whether to join a room. Accepting an invite from an unknown user counts towards the hourly limit."""
        if self._is_allowed(inviter):
            return True
        if room not in self._direct or not self._unknown_limit.try_consume_token():
            return False
        self._direct.discard(room)
        return True


@dataclass
class SyncBatch:
    """One sync response: its tokens, and the number of its rooms that have not been processed."""

    since: str
    token: str
    rooms_left: int


class RoomReceiver:
    """Receives room events by syncing. A slow room, with a large file or a long gap, doesn't delay other rooms.

    Order within a room is preserved. The saved token belongs to the last sync response before the first response
    that is not completely delivered. After a crash, undelivered events are received again.
    """

    def __init__(
        self,
        wire: MatrixClient,
        state: SyncState,
        bot_id: str,
        process_event: Callable[[str, RoomEvent], Awaitable[None]],
        invites: InvitePolicy,
    ) -> None:
        self._wire = wire
        self._state = state
        self._bot_id = bot_id
        self._process_event = process_event
        self._invites = invites
        self._open_batches: deque[SyncBatch] = deque()
        self._room_queues: dict[str, deque[tuple[SyncBatch, JoinedRoom]]] = {}
        self._rooms_with_members: set[str] = set()
        self._batch_closed = asyncio.Event()
        self._unsaved = b""
        self._token_changed = asyncio.Event()

    async def run(self) -> None:
        """Receive until cancelled.

        Raises:
            ChatError: The homeserver can't be reached or refused the request.
        """
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._save_tokens)
                await self._sync_forever(tasks)
        except BaseExceptionGroup as group:
            raise _first_error(group) from None

    async def _sync_forever(self, tasks: TaskGroup) -> None:
        since = self._state.since
        while True:
            try:
                response = await self._wire.sync(since)
            except ChatGone as error:
                raise ChatError(f"{error} If the homeserver was reinstalled, delete {self._state.path}.") from error
            updates = response.rooms.join if since else {}  # Messages from before the first sync are not for the bot.
            updates = {room: joined for room, joined in updates.items() if joined.timeline.events}
            batch = SyncBatch(since, response.next_batch, len(updates))
            self._open_batches.append(batch)
            for room, joined in updates.items():
                self._enqueue(tasks, room, batch, joined)
            self._invites.remember_direct_rooms(response.rooms.invite)
            self._join_invited_rooms(tasks)
            self._advance_token()
            since = response.next_batch
            while len(self._open_batches) >= MAX_OPEN_BATCHES:
                self._batch_closed.clear()
                await self._batch_closed.wait()

    def _enqueue(self, tasks: TaskGroup, room: str, batch: SyncBatch, joined: JoinedRoom) -> None:
        queue = self._room_queues.get(room)
        if queue is not None:
            queue.append((batch, joined))
            return
        self._room_queues[room] = deque([(batch, joined)])
        tasks.start_soon(self._process_room, room, name=f"matrix {room}")

    async def _process_room(self, room: str) -> None:
        queue = self._room_queues[room]
        while queue:
            batch, joined = queue[0]
            await self._load_members(room, joined)
            for event in await self._fetch_all_events(room, batch.since, joined):
                await self._process_event(room, event)
            queue.popleft()
            batch.rooms_left -= 1
            self._advance_token()
        del self._room_queues[room]

    async def _load_members(self, room: str, joined: JoinedRoom) -> None:
        """Load the members of a room before its events are read."""
        is_new = joined.timeline.limited or _join_index(events_of(joined.timeline.events), self._bot_id) is not None
        if room in self._rooms_with_members and not is_new:
            return
        try:
            await retry_call(lambda: self._wire.load_members(room))
        except ChatGone as error:
            LOG.info("matrix: the members of %s could not be loaded: %s", room, error)
        self._rooms_with_members.add(room)

    async def _fetch_all_events(self, room: str, since: str, joined: JoinedRoom) -> list[RoomEvent]:
        """Return a room's events, including events that the server omitted because there were too many."""
        events = events_of(joined.timeline.events)
        start = joined.timeline.prev_batch if joined.timeline.limited else ""
        while start and _join_index(events, self._bot_id) is None:
            try:
                page = await retry_call(partial(self._wire.fetch_page, room, start, since))
            except ChatGone as error:
                LOG.warning("matrix: the missed messages of %s could not be read: %s", room, error)
                break
            events = [*reversed(events_of(page.chunk)), *events]
            start = page.end if page.end and page.chunk else ""
        return events[_join_index(events, self._bot_id) or 0 :]

    def _join_invited_rooms(self, tasks: TaskGroup) -> None:
        """Join the rooms whose invites are accepted. Other invites stay open in case their sender is paired later."""
        for room, inviter in self._wire.pending_invites().items():
            if inviter and self._invites.should_join(room, inviter):
                self._wire.forget_invite(room)
                tasks.start_soon(self._join_room, room)

    async def _join_room(self, room: str) -> None:
        try:
            await retry_call(lambda: self._wire.join(room))
        except ChatError as error:
            LOG.warning("matrix: room %s could not be joined: %s", room, error)

    def _advance_token(self) -> None:
        while self._open_batches and self._open_batches[0].rooms_left == 0:
            batch = self._open_batches.popleft()
            if batch.token != self._state.since:
                self._unsaved = self._state.advance(batch.token)
                self._token_changed.set()
            self._batch_closed.set()

    async def _save_tokens(self) -> None:
        while True:
            await self._token_changed.wait()
            self._token_changed.clear()
            await anyio.to_thread.run_sync(self._state.save, self._unsaved)


def _join_index(events: list[RoomEvent], bot_id: str) -> int | None:
    """Return the index of the first event after the bot's invite or join, or None if these events contain no join."""
    for index in reversed(range(len(events))):
        if _membership(events[index], bot_id) != "join" or _was_joined_before(events[index]):
            continue
        for earlier in reversed(range(index)):
            if _membership(events[earlier], bot_id) == "invite":
                return earlier + 1
        return index + 1
    return None


def _membership(event: RoomEvent, bot_id: str) -> str:
    return content_of(event).membership if event.type == "m.room.member" and event.state_key == bot_id else ""


def _was_joined_before(event: RoomEvent) -> bool:
    unsigned = parse_json(event.unsigned, Unsigned)
    return unsigned is not None and unsigned.prev_content.membership == "join"


def _first_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the error that caused the other tasks to be cancelled."""
    errors = group.exceptions
    while isinstance(errors[0], BaseExceptionGroup):
        errors = cast("BaseExceptionGroup[BaseException]", errors[0]).exceptions
    return errors[0]
