"""Turns that ended, told as traces: by a task of its own, never waited for by a turn."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable

from hark.protocol.names import session_of
from hark.protocol.records import AnyRecord, TurnEnded
from hark.protocol.store import Journal, StoreError
from hark.trace.from_journal import story_of, turns_of
from hark.trace.turn_trace import TurnTrace

MOST_WAITING = 1_000
MOST_SESSIONS = 10_000


class EndedTurns:
    """Turns whose trace is to be told; of too many, the oldest are left out."""

    def __init__(self, journal: Journal, export: Callable[[TurnTrace], None]) -> None:
        self._journal = journal
        self._export = export
        self._waiting: deque[TurnEnded] = deque(maxlen=MOST_WAITING)
        self._changed = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._read: OrderedDict[str, int] = OrderedDict()  # how much of each journal was seen

    def put(self, end: TurnEnded) -> None:
        """Take a turn that ended; waits for nothing."""
        self._waiting.append(end)
        self._empty.clear()
        self._changed.set()

    async def told(self) -> None:
        """Return when all turns so far were told."""
        await self._empty.wait()

    async def run(self) -> None:
        """Tell turn after turn, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            while self._waiting:
                end = self._waiting.popleft()
                try:
                    records = await self._records(end)
                except StoreError:
                    records = []  # what was measured is enough for a trace
                self._export(story_of([*records, end], end.turn))
                await asyncio.sleep(0)
            self._empty.set()

    async def _records(self, end: TurnEnded) -> list[AnyRecord]:
        """Return the turn's records, without reading again what came before them."""
        session = session_of(end.turn)
        known = self._read.pop(session, 0)
        records = await self._journal.read(session, known)
        if known and end.turn not in turns_of(records):  # told out of order, or the journal begins anew
            known, records = 0, await self._journal.read(session)
        self._read[session] = known + len(records)
        if len(self._read) > MOST_SESSIONS:
            self._read.popitem(last=False)
        return records
