"""What there is to read: sessions, what was said in them, where a turn's time went, and how all of it stands."""

import time

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from hark.protocol.gateway import GatewayState, RunningTurn
from hark.surfaces.web.api.body import read_number
from hark.surfaces.web.api.context import WebPlace
from hark.surfaces.web.api.errors import ApiError
from hark.surfaces.web.api.json_response import json_answer
from hark.surfaces.web.metrics import TEXT_FORMAT

MOST_SESSIONS = 1_000
USUAL_SESSIONS = 200
WORDS_CHARACTERS = 500


class Reading:
    """The endpoints that change nothing."""

    def __init__(self, place: WebPlace, version: str) -> None:
        self._place = place
        self._version = version

    async def sessions(self, request: Request) -> Response:
        """List the sessions; `q` are words of a name or title."""
        limit = read_number(request, "limit", USUAL_SESSIONS, MOST_SESSIONS)
        return json_answer({"sessions": await self._place.gateway.sessions(_words(request), limit)})

    async def search(self, request: Request) -> Response:
        """Find messages in which all the words stand."""
        limit = read_number(request, "limit", 50, USUAL_SESSIONS)
        return json_answer({"hits": await self._place.gateway.search(_words(request), limit)})

    async def transcript(self, request: Request) -> Response:
        """Tell what was said; and what runs, so that a reader can go on with the events behind `seq`."""
        session = self._place.session(request)
        feed = self._place.feeds.known(session.id)
        if feed is not None:
            await feed.level()
        running = session.running()
        if feed is not None:
            asked = tuple(feed.questions.values())
            running = None if feed.turn is None else RunningTurn(feed.turn, feed.reply, asked)
        seq = feed.kept.last if feed is not None else None
        past = await session.past()
        return json_answer({"messages": past.rows, "running": running, "seq": seq, "cut": past.cut})

    async def timeline(self, request: Request) -> Response:
        """Tell where a turn's time went."""
        turn = request.path_params["turn"]
        timeline = await self._place.gateway.timeline(turn)
        if timeline is None:
            raise ApiError(404, "unknown_turn", "There is no such turn; a turn's name is like demo.t4.")
        return json_answer(timeline)

    async def health(self, request: Request) -> Response:
        """Tell whether new turns are begun."""
        standing = self._place.gateway.standing
        return json_answer({"status": standing}, 200 if standing is GatewayState.READY else 503)

    async def metrics(self, request: Request) -> Response:
        """Tell the counters, in Prometheus' words."""
        return PlainTextResponse(self._place.metrics.text(self._place.gateway), media_type=TEXT_FORMAT)

    async def status(self, request: Request) -> Response:
        """Tell how all of it stands."""
        gateway, metrics = self._place.gateway, self._place.metrics
        busy = gateway.busy()
        running = [{"session": session, "turn": turn} for session, turn in sorted(busy.turns.items())]
        return json_answer(
            {
                "status": gateway.standing,
                "version": self._version,
                "uptime_seconds": time.time() - metrics.started_at,
                "sessions": {"open": busy.sessions, "running": len(busy.turns)},
                "running": running[:MOST_SESSIONS],
                "turns": metrics.turns,
                "messages": metrics.messages,
                "interrupts": metrics.interrupts_told(),
                "routes": gateway.routes(),
                "mcp": gateway.servers(),
                "lag_ms": gateway.lag(),
                "tokens": metrics.tokens,
                "cost_usd": {"since_start": metrics.cost_usd, "today": await gateway.cost_today()},
            }
        )


def _words(request: Request) -> str:
    words = request.query_params.get("q", "")
    if len(words) > WORDS_CHARACTERS:
        raise ApiError(400, "bad_request", f"q must have at most {WORDS_CHARACTERS} characters.")
    return words
