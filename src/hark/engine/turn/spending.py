"""The cost of today's turns and side questions in all sessions of a home, read incrementally from the journals."""

from datetime import datetime

from hark.protocol.clock import Clock
from hark.protocol.records import AnyRecord, TurnEnded, UsageRecorded
from hark.protocol.store import Journal


class DailySpending:
    """The day's total cost, including other processes' turns once they are in the journal."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock
        self._midnight = 0.0
        self._read_counts: dict[str, int] = {}
        self._usd = 0.0

    async def cost_today(self) -> float:
        """Return the cost in US dollars of all turns and side questions that ended since midnight."""
        midnight = _midnight(self._clock.now())
        if midnight != self._midnight:
            self._midnight, self._read_counts, self._usd = midnight, {}, 0.0
        for line in await self._journal.sessions():
            if line.summary.updated_at >= midnight:
                await self._add(line.session)
        return self._usd

    async def _add(self, session: str) -> None:
        after = self._read_counts.get(session, 0)
        records = await self._journal.read(session, after)
        if self._read_counts.get(session, 0) != after:
            return  # another turn read these records first
        self._read_counts[session] = after + len(records)
        self._usd += sum(_cost(record) for record in records if record.at >= self._midnight)


def _cost(record: AnyRecord) -> float:
    """Return the cost of a turn or a side question. The cost of a child is counted in the child's own journal."""
    if isinstance(record, TurnEnded) or (isinstance(record, UsageRecorded) and not record.child):
        return record.cost or 0.0
    return 0.0


def _midnight(now: float) -> float:
    return datetime.fromtimestamp(now).astimezone().replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
