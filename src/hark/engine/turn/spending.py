"""What was spent today, in all sessions of a home: read from their journals, each part once."""

from datetime import datetime

from hark.protocol.clock import Clock
from hark.protocol.records import TurnEnded
from hark.protocol.store import Journal


class Spending:
    """The day's account. It counts what other processes spent as well, as far as it is journalled."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock
        self._midnight = 0.0
        self._read: dict[str, int] = {}
        self._usd = 0.0

    async def today(self) -> float:
        """Return the US dollars of all turns that ended since midnight."""
        midnight = _midnight(self._clock.now())
        if midnight != self._midnight:
            self._midnight, self._read, self._usd = midnight, {}, 0.0
        for line in await self._journal.sessions():
            if line.summary.updated_at >= midnight:
                await self._add(line.session)
        return self._usd

    async def _add(self, session: str) -> None:
        after = self._read.get(session, 0)
        records = await self._journal.read(session, after)
        if self._read.get(session, 0) != after:
            return  # another turn's look was faster
        self._read[session] = after + len(records)
        self._usd += sum(
            record.cost or 0.0 for record in records if isinstance(record, TurnEnded) and record.at >= self._midnight
        )


def _midnight(now: float) -> float:
    return datetime.fromtimestamp(now).astimezone().replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
