"""The tool that looks up what was said in past sessions."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec import structs

from hark.protocol.messages import Effect
from hark.protocol.store import Hit, Query, Search, StoreError
from hark.protocol.tool import CallContext, ToolOutput, ToolSpec
from hark.tools.arguments import check

DEFAULT_LIMIT = 10
MOST = 50
_AGO = re.compile(r"(\d{1,5}) *(hour|h|day|d|week|w|month|m|year|y)s?(?: ago)?", re.IGNORECASE)
_HOURS = {"h": 1, "d": 24, "w": 24 * 7, "m": 24 * 30, "y": 24 * 365}

_SPEC = ToolSpec(
    name="recall",
    description=(
        "Search all past sessions for what people, you and tools said. Use it when the person refers to something "
        "earlier that is not in this conversation. A few telling words find more than a sentence; a word also finds "
        "longer words that begin with it."
    ),
    parameters={
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "The words to look for."},
            "session": {"type": "string", "description": "Only in this session."},
            "since": {"type": "string", "description": "Not before this: 2026-05-31, or 3 days, 2 weeks, 6 months."},
            "limit": {
                "type": "integer",
                "description": f"How many at most: {DEFAULT_LIMIT} unless told, up to {MOST}.",
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    },
)


class Recall:
    """Searches the sessions of one home; `now` tells the time of day."""

    def __init__(self, search: Search, now: Callable[[], datetime] = datetime.now) -> None:
        self._search = search
        self._now = now

    @property
    def spec(self) -> ToolSpec:
        """What it is."""
        return _SPEC

    async def run(self, arguments: Mapping[str, Any], context: CallContext) -> ToolOutput:
        """Return what was found, the newest first. Cancelling takes effect at once."""
        if problem := check(_SPEC, arguments):
            return _refused(problem)
        since = self._since(arguments.get("since") or "")
        if since is None:
            return _refused("since: expected a date such as 2026-05-31, or a time such as 3 days, 2 weeks, 6 months.")
        limit = arguments.get("limit") or DEFAULT_LIMIT
        query = Query(
            arguments["query"],
            session=_plain(arguments.get("session") or ""),
            since=since,
            limit=min(MOST, max(1, limit)),
            without_turn=context.turn,
        )
        try:
            return ToolOutput(await self._found(query))
        except StoreError as error:
            return ToolOutput(f"The past sessions can't be searched now: {error}", is_error=True)

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
    lines = [f"{_when(hit.at)}  {hit.session}  {hit.turn}  {hit.who}: {hit.snippet}" for hit in hits]
    return "\n".join(["[when, session, turn, who: what was said then, to be weighed as such]", *lines])


def _when(at: float) -> str:
    return datetime.fromtimestamp(at).strftime("%Y-%m-%d %H:%M")


def _plain(text: str) -> str:
    return text.encode(errors="replace").decode()


def _refused(why: str) -> ToolOutput:
    return ToolOutput(why, is_error=True, effect=Effect.NOT_STARTED)
