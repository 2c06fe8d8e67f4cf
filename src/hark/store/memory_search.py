"""Search by reading everything: for sessions in memory, which are few."""

import asyncio

from hark.protocol.store import BACKGROUND, Hit, Journal, Query
from hark.store.search_text import Phrase, SearchableLine, has_phrase, lines_of, phrases, snippet, words


class MemorySearch:
    """Reads the journals of all sessions, one after the other."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def find(self, query: Query) -> list[Hit]:
        """Return the messages with these words; with `is_any`, those with most of them first."""
        wanted = phrases(query.words)
        found: list[tuple[int, Hit]] = []
        if not wanted:
            return []
        for line in await self._journal.sessions():
            if BACKGROUND not in line.session and query.session in ("", line.session):
                found.extend(await self._in_session(line.session, query, wanted))
                await asyncio.sleep(0)  # others may run, and a cancel comes through
        found.sort(key=lambda one: (one[0] if query.is_any else 0, one[1].at), reverse=True)
        return [hit for _, hit in found[: max(0, query.limit)]]

    async def _in_session(self, session: str, query: Query, wanted: list[Phrase]) -> list[tuple[int, Hit]]:
        hits: list[tuple[int, Hit]] = []
        for record in await self._journal.read(session):
            for line in lines_of(record):
                count = _count(line, query, wanted)
                if count >= (1 if query.is_any else len(wanted)):
                    hits.append((count, Hit(session, line.turn, line.at, line.who, snippet(line.text, wanted))))
        return hits


def _count(line: SearchableLine, query: Query, wanted: list[Phrase]) -> int:
    """Return how many of the phrases a line has, none when the query is about others."""
    if line.at < query.since or (query.without_turn and line.turn == query.without_turn):
        return 0
    kept = words(line.text)
    return sum(has_phrase(kept, phrase) for phrase in wanted)
