"""What there is to read: sessions, what was said in them, where a turn's time went, and how all of it stands."""

import time
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from hark.protocol.agent import GatewayState
from hark.protocol.messages import Message
from hark.protocol.session import RunningTurn
from hark.protocol.store import SessionLine
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
        lines = await self._place.agent.sessions(_words(request), limit)
        return json_answer({"sessions": [_session_row(line) for line in lines]})

    async def search(self, request: Request) -> Response:
        """Find messages in which all the words stand."""
        limit = read_number(request, "limit", 50, USUAL_SESSIONS)
        return json_answer({"hits": await self._place.agent.search(_words(request), limit)})

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
        past = await session.history()
        rows = [_message_row(message, turn) for message, turn in zip(past.messages, past.turns, strict=True)]
        return json_answer({"messages": rows, "running": running, "seq": seq, "cut": past.cut})

    async def timeline(self, request: Request) -> Response:
        """Tell where a turn's time went."""
        turn = request.path_params["turn"]
        timeline = await self._place.agent.timeline(turn)
        if timeline is None:
            raise ApiError(404, "unknown_turn", "There is no such turn; a turn's name is like demo.t4.")
        return json_answer(timeline)

    async def health(self, request: Request) -> Response:
        """Tell whether new turns are begun."""
        standing = self._place.agent.state
        return json_answer({"status": standing}, 200 if standing is GatewayState.READY else 503)

    async def metrics(self, request: Request) -> Response:
        """Tell the counters, in Prometheus' words."""
        return PlainTextResponse(self._place.metrics.text(self._place.agent), media_type=TEXT_FORMAT)

    async def status(self, request: Request) -> Response:
        """Tell how all of it stands."""
        agent, metrics = self._place.agent, self._place.metrics
        busy = agent.busy()
        running = [{"session": session, "turn": turn} for session, turn in sorted(busy.turns.items())]
        return json_answer(
            {
                "status": agent.state,
                "version": self._version,
                "uptime_seconds": time.time() - metrics.started_at,
                "sessions": {"open": busy.sessions, "running": len(busy.turns)},
                "running": running[:MOST_SESSIONS],
                "turns": metrics.turns,
                "messages": metrics.messages,
                "interrupts": metrics.interrupts_told(),
                "routes": agent.routes(),
                "mcp": agent.servers(),
                "lag_ms": agent.lag(),
                "tokens": metrics.tokens,
                "cost_usd": {"since_start": metrics.cost_usd, "today": await agent.cost_today()},
            }
        )


def _session_row(line: SessionLine) -> dict[str, Any]:
    """Return a session in a list. `is_open`: a turn of it has begun and not ended; `is_waiting`: a message may run."""
    summary = line.summary
    return {
        "session": line.session,
        "title": summary.title,
        "turns": summary.turns,
        "updated_at": summary.updated_at,
        "is_open": summary.is_open,
        "is_waiting": summary.is_waiting,
    }


def _message_row(message: Message, turn: str) -> dict[str, Any]:
    """Return a message as programs read it. Files are told by name: their bytes are not for a transcript."""
    row: dict[str, Any] = {"text": "", **msgspec.to_builtins(message), "turn": turn}
    row.pop("reasoning", None)
    if "attachments" in row:
        row["attachments"] = [
            {key: value for key, value in file.items() if key in ("media_type", "name")} for file in row["attachments"]
        ]
    return row


def _words(request: Request) -> str:
    words = request.query_params.get("q", "")
    if len(words) > WORDS_CHARACTERS:
        raise ApiError(400, "bad_request", f"q must have at most {WORDS_CHARACTERS} characters.")
    return words
