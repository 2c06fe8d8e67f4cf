"""Follows a session that another process owns. The session's journal shows the results of our commands."""

import asyncio
from collections.abc import Callable

from hark.engine.session.announcements import apply_records, publish, set_receipts
from hark.engine.session.fanout import Fanout
from hark.engine.session.in_flight import InFlightMessages
from hark.engine.session.state import SessionState
from hark.protocol.commands import Command
from hark.protocol.receipts import Refusal, Settled
from hark.protocol.records import AnyRecord, CommandHandled, CommandRefused, TurnEnded
from hark.protocol.store import Store


class Follower:
    """Follows a session's journal without making decisions. Writes only to the inbox."""

    def __init__(self, session: str, store: Store, published: int | None = None) -> None:
        """`published` is the number of records already published to local readers; None for all existing records."""
        self.id = session
        self.state = SessionState()
        self._store = store
        self._published = published
        self._callbacks: list[Callable[[AnyRecord], None]] = []

    async def follow(self, in_flight: InFlightMessages, fanout: Fanout) -> None:
        """Read new journal records and publish them. Records that were already published only set receipts."""
        known = self.state.length
        records = await self._store.journal.read(self.id, known)
        if self._published is None:
            self._published = len(records)
        for position, announcements in enumerate(apply_records(self.id, self.state, records), known + 1):
            if position > self._published:
                publish(announcements, in_flight, fanout)
            else:
                set_receipts(announcements, in_flight)
        for record in records:
            self._notify(record)

    def apply_record(self, record: AnyRecord) -> None:
        """Apply a journal record and notify the commands that wait for it."""
        self.state.apply(record)
        self._notify(record)

    def _notify(self, record: AnyRecord) -> None:
        for callback in list(self._callbacks):
            callback(record)

    @property
    def has_pending_commands(self) -> bool:
        """True when a command from this process is waiting for the owner's response."""
        return bool(self._callbacks)

    async def send(self, command: Command) -> int:
        """Put a command into the owner's inbox and wake the owner. Return the command's position in the inbox."""
        accepted = await self._store.inbox.put(self.id, command)
        await self._store.bus.wake(self.id)
        return accepted.seq

    async def interrupt(self, command: Command) -> Settled | None:
        """Ask the owner to interrupt its running turn. Another task must call `follow` meanwhile."""
        loop = asyncio.get_running_loop()
        settled: asyncio.Future[Settled | None] = loop.create_future()
        turn = ""

        def on_record(record: AnyRecord) -> None:
            nonlocal turn
            if isinstance(record, CommandHandled) and record.command == command.id:
                turn = record.turn
            elif isinstance(record, CommandRefused) and record.command == command.id:
                settled.set_result(None)
            elif isinstance(record, TurnEnded) and record.turn == turn:
                settled.set_result(Settled(record.turn, record.outcome, record.timings))

        return await self._send_and_wait(command, on_record, settled)

    async def change(self, command: Command) -> Refusal | None:
        """Ask the owner to change the session or accept an answer. Another task must call `follow` meanwhile."""
        done: asyncio.Future[Refusal | None] = asyncio.get_running_loop().create_future()
        position = 0

        def on_record(record: AnyRecord) -> None:
            if isinstance(record, CommandRefused) and record.command == command.id:
                done.set_result(Refusal(record.code, record.message))
            elif position and record.inbox == position:
                done.set_result(None)

        self._callbacks.append(on_record)
        try:
            position = await self.send(command)
            if self.state.cursor >= position and not done.done():
                # the owner processed the command before our put returned; a refusal would already have set the result
                done.set_result(None)
            return await done
        finally:
            self._callbacks.remove(on_record)

    async def _send_and_wait(
        self, command: Command, on_record: Callable[[AnyRecord], None], done: "asyncio.Future[Settled | None]"
    ) -> Settled | None:
        self._callbacks.append(on_record)
        try:
            await self.send(command)
            return await done
        finally:
            self._callbacks.remove(on_record)
