"""The `recall` tool: searches past sessions."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated

from msgspec import structs

from hark.protocol.messages import Effect
from hark.protocol.store import Search, SearchHit, SearchQuery, StoreError
from hark.protocol.tool import CallContext, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, doc, tool_spec

DEFAULT_LIMIT = 10
MAX_LIMIT = 50
_AGO = re.compile(r"(\d{1,5}) *(hour|h|day|d|week|w|month|m|year|y)s?(?: ago)?", re.IGNORECASE)
_HOURS = {"h": 1, "d": 24, "w": 24 * 7, "m": 24 * 30, "y": 24 * 365}


class RecallArguments(ToolArguments, frozen=True):
    """Search all past sessions for messages from users, yourself and tools.

    Use this tool when the user refers to something earlier that is not in this conversation. A few distinctive words
    find more than a sentence. A word also matches longer words that begin with it.
    """

    query: Annotated[str, doc("The words to search for.")]
    session: Annotated[str, doc("Search only this session.")] = ""
    since: Annotated[str, doc("The earliest date (2026-05-31) or an age (3 days, 2 weeks, 6 months).")] = ""
    limit: Annotated[int, doc(f"The maximum number of results (default: {DEFAULT_LIMIT}, at most {MAX_LIMIT}).")] = 0


class RecallTool:
    """The tool that searches the sessions in one home. `now` returns the current local time."""

    spec = tool_spec(RecallArguments, "recall")

    def __init__(self, search: Search, now: Callable[[], datetime] = datetime.now) -> None:
        self._search = search
        self._now = now

    async def run(self, arguments: RecallArguments, context: CallContext) -> ToolOutput:
        """Return the matches, newest first. Cancelling takes effect immediately."""
        since = self._parse_since(arguments.since)
        if since is None:
            raise ToolError("since: expected a date such as 2026-05-31, or an age such as 3 days, 2 weeks, 6 months.")
        query = SearchQuery(
            arguments.query,
            session=arguments.session.encode(errors="replace").decode(),
            since=since,
            limit=min(MAX_LIMIT, max(1, arguments.limit or DEFAULT_LIMIT)),
            without_turn=context.turn,
        )
        try:
            return ToolOutput(await self._search_sessions(query))
        except StoreError as error:
            raise ToolError(f"Past sessions can't be searched at the moment: {error}", Effect.COMPLETED) from error

    async def _search_sessions(self, query: SearchQuery) -> str:
        hits = await self._search.find(query)
        if hits:
            return _format_hits(hits)
        hits = await self._search.find(structs.replace(query, is_any=True))
        if hits:
            return f"No message contains all of these words. These contain some:\n{_format_hits(hits)}"
        return "No matches. Try fewer or other words."

    def _parse_since(self, text: str) -> float | None:
        """Parse a date or age from a model. Return a Unix time, 0 for empty text, or None for invalid text."""
        if not text.strip():
            return 0.0
        ago = _AGO.fullmatch(text.strip())
        try:
            if ago:
                return (self._now() - timedelta(hours=int(ago[1]) * _HOURS[ago[2][0].lower()])).timestamp()
            return datetime.fromisoformat(text.strip()).timestamp()
        except (ValueError, OverflowError, OSError):
            return None


def _format_hits(hits: list[SearchHit]) -> str:
    lines = [
        f"{datetime.fromtimestamp(hit.at):%Y-%m-%d %H:%M}  {hit.session}  {hit.turn}  {hit.who}: {hit.snippet}"
        for hit in hits
    ]
    return "\n".join(["[time, session, turn, author: original text, which may be outdated]", *lines])
