"""The tool that looks up what was said in past sessions."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated

from msgspec import structs

from hark.protocol.messages import Effect
from hark.protocol.store import Hit, Query, Search, StoreError
from hark.protocol.tool import CallContext, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, doc, tool_spec

DEFAULT_LIMIT = 10
MOST = 50
_AGO = re.compile(r"(\d{1,5}) *(hour|h|day|d|week|w|month|m|year|y)s?(?: ago)?", re.IGNORECASE)
_HOURS = {"h": 1, "d": 24, "w": 24 * 7, "m": 24 * 30, "y": 24 * 365}


class RecallArguments(ToolArguments, frozen=True):
    """Search all past sessions for what people, you and tools said.

    Use it when the person refers to something earlier that is not in this conversation. A few telling words find more
    than a sentence; a word also finds longer words that begin with it.
    """

    query: Annotated[str, doc("The words to look for.")]
    session: Annotated[str, doc("Only in this session.")] = ""
    since: Annotated[str, doc("Not before this: 2026-05-31, or 3 days, 2 weeks, 6 months.")] = ""
    limit: Annotated[int, doc(f"How many at most: {DEFAULT_LIMIT} unless told, up to {MOST}.")] = 0


class Recall:
    """Searches the sessions of one home; `now` tells the time of day."""

    spec = tool_spec(RecallArguments, "recall")

    def __init__(self, search: Search, now: Callable[[], datetime] = datetime.now) -> None:
        self._search = search
        self._now = now

    async def run(self, arguments: RecallArguments, context: CallContext) -> ToolOutput:
        """Return what was found, the newest first. Cancelling takes effect at once."""
        since = self._since(arguments.since)
        if since is None:
            raise ToolError("since: expected a date such as 2026-05-31, or a time such as 3 days, 2 weeks, 6 months.")
        query = Query(
            arguments.query,
            session=arguments.session.encode(errors="replace").decode(),
            since=since,
            limit=min(MOST, max(1, arguments.limit or DEFAULT_LIMIT)),
            without_turn=context.turn,
        )
        try:
            return ToolOutput(await self._found(query))
        except StoreError as error:
            raise ToolError(f"The past sessions can't be searched now: {error}", Effect.COMPLETED) from error

    async def _found(self, query: Query) -> str:
        hits = await self._search.find(query)
        if hits:
            return _as_text(hits)
        hits = await self._search.find(structs.replace(query, is_any=True))
        if hits:
            return f"No message has all of these words. These have some:\n{_as_text(hits)}"
        return "Nothing was found. Try fewer or other words."

    def _since(self, text: str) -> float | None:
        """Return a time that a model wrote as Unix time, 0 for none; None when it can't be read."""
        if not text.strip():
            return 0.0
        ago = _AGO.fullmatch(text.strip())
        try:
            if ago:
                return (self._now() - timedelta(hours=int(ago[1]) * _HOURS[ago[2][0].lower()])).timestamp()
            return datetime.fromisoformat(text.strip()).timestamp()
        except (ValueError, OverflowError, OSError):
            return None


def _as_text(hits: list[Hit]) -> str:
    lines = [
        f"{datetime.fromtimestamp(hit.at):%Y-%m-%d %H:%M}  {hit.session}  {hit.turn}  {hit.who}: {hit.snippet}"
        for hit in hits
    ]
    return "\n".join(["[when, session, turn, who: what was said then, to be weighed as such]", *lines])
