"""Reading: sessions, transcripts, search, a turn's timeline, health and status."""

import time
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, structs
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from hark.protocol.agent import GatewayState, Lag, RouteRow, ServerRow
from hark.protocol.messages import AssistantMessage, Message
from hark.protocol.session import RunningTurn
from hark.protocol.store import Hit, SessionLine
from hark.surfaces.web.api.context import WebContext
from hark.surfaces.web.api.errors import ApiError, json_response
from hark.surfaces.web.metrics import TEXT_FORMAT

MOST_SESSIONS = 1_000
USUAL_SESSIONS = 200
_ROW = {
    "required": ["role", "text", "turn"],
    "properties": {name: {"type": "string"} for name in ("role", "text", "turn")},
}


class SessionQuery(Struct, frozen=True):
    """Which sessions to list: words of the name or title, and how many at most."""

    q: Annotated[str, Meta(max_length=500, description="Words that must all occur")] = ""
    limit: Annotated[int, Meta(ge=1, le=MOST_SESSIONS)] = USUAL_SESSIONS


class MessageQuery(SessionQuery, frozen=True):
    """Which messages to find."""

    limit: Annotated[int, Meta(ge=1, le=USUAL_SESSIONS)] = 50


class SessionRow(Struct, frozen=True):
    """A session in a list. `is_open`: a turn of it has begun and not ended; `is_waiting`: a message may run."""

    session: str
    title: str
    turns: int
    updated_at: float
    is_open: bool
    is_waiting: bool


class SessionList(Struct, frozen=True):
    """Sessions, the last changed first."""

    sessions: list[SessionRow]


class SearchHits(Struct, frozen=True):
    """Messages with all the words, newest first."""

    hits: list[Hit]


class SessionTranscript(Struct, frozen=True):
    """The messages and the running turn. The events after `seq` continue exactly here.

    `cut` names the turns that a restart cut and that `/continue` would resume.
    """

    messages: list[Annotated[dict[str, Any], Meta(extra_json_schema=_ROW)]]
    running: RunningTurn | None
    seq: int | None
    cut: list[str]


class HealthStatus(Struct, frozen=True):
    """Whether new turns are started."""

    status: GatewayState


class AgentStatus(Struct, frozen=True):
    """The state of the process and its counters since the start."""

    status: GatewayState
    version: str
    uptime_seconds: float
    sessions: dict[str, int]
    running: list[dict[str, str]]
    turns: dict[str, int]
    messages: dict[str, int]
    interrupts: dict[str, Any]
    routes: list[RouteRow]
    mcp: list[ServerRow]
    lag_ms: Lag
    tokens: dict[str, int]
    cost_usd: dict[str, float]


async def show(web: WebContext, request: Request, query: SessionQuery) -> SessionList:
    """List the sessions, the last changed first."""
    return SessionList([_session_row(line) for line in await web.agent.sessions(query.q, query.limit)])


async def search(web: WebContext, request: Request, query: MessageQuery) -> SearchHits:
    """Find the messages that contain all the words."""
    return SearchHits(await web.agent.search(query.q, query.limit))


async def transcript(web: WebContext, request: Request) -> SessionTranscript:
    """Return the messages of a session and its running turn."""
    session = web.session(request)
    feed = web.feeds.known(session.id)
    if feed is not None:
        await feed.level()
    running = session.running()
    if feed is not None:
        asked = tuple(feed.questions.values())
        running = None if feed.turn is None else RunningTurn(feed.turn, feed.reply, asked)
    seq = feed.kept.last if feed is not None else None
    past = await session.history()
    said = list(zip(past.messages, past.turns, strict=True))
    running = drop_repeated_reply(said, running)
    rows = [_message_row(message, turn) for message, turn in said]
    return SessionTranscript(rows, running, seq, list(past.cut))


def drop_repeated_reply(said: list[tuple[Message, str]], running: RunningTurn | None) -> RunningTurn | None:
    """Return the running turn without a reply that the history has already.

    A reply is in the history a moment before its end is published. If its last pieces are still to be published as
    events, it is taken out of `said` instead.
    """
    if running is None or not running.text:
        return running
    replies = [
        place for place, (one, turn) in enumerate(said) if turn == running.turn and isinstance(one, AssistantMessage)
    ]
    reply = said[replies[-1]][0] if replies else None
    if reply is None or not reply.text.startswith(running.text):
        return running
    if reply.text == running.text:
        return structs.replace(running, text="")
    if replies[-1] == len(said) - 1:
        said.pop()
    return running


async def timeline(web: WebContext, request: Request) -> dict[str, Any]:
    """Show where a turn's time went."""
    found = await web.agent.timeline(request.path_params["turn"])
    if found is None:
        raise ApiError(404, "unknown_turn", "There is no such turn; a turn's name is like demo.t4.")
    return found


async def health(web: WebContext, request: Request) -> Response:
    """Report whether new turns are started: 200 if so, else 503."""
    state = web.agent.state
    return json_response(HealthStatus(state), 200 if state is GatewayState.READY else 503)


async def metrics(web: WebContext, request: Request) -> Response:
    """Return the counters in Prometheus' text format."""
    return PlainTextResponse(web.metrics.text(web.agent), media_type=TEXT_FORMAT)


async def status(web: WebContext, request: Request) -> AgentStatus:
    """Report the state of the process, its routes and MCP servers, and its counters."""
    agent, counters = web.agent, web.metrics
    busy = agent.busy()
    running = [{"session": session, "turn": turn} for session, turn in sorted(busy.turns.items())]
    return AgentStatus(
        status=agent.state,
        version=web.version,
        uptime_seconds=time.time() - counters.started_at,
        sessions={"open": busy.sessions, "running": len(busy.turns)},
        running=running[:MOST_SESSIONS],
        turns=counters.turns,
        messages=counters.messages,
        interrupts=counters.interrupts_told(),
        routes=agent.routes(),
        mcp=agent.servers(),
        lag_ms=agent.lag(),
        tokens=counters.tokens,
        cost_usd={"since_start": counters.cost_usd, "today": await agent.cost_today()},
    )


def _session_row(line: SessionLine) -> SessionRow:
    summary = line.summary
    return SessionRow(
        line.session, summary.title, summary.turns, summary.updated_at, summary.is_open, summary.is_waiting
    )


def _message_row(message: Message, turn: str) -> dict[str, Any]:
    """Return a message as programs read it, with the names of its files in place of their contents."""
    row: dict[str, Any] = {"text": "", **msgspec.to_builtins(message), "turn": turn}
    row.pop("reasoning", None)
    if "attachments" in row:
        row["attachments"] = [
            {key: value for key, value in file.items() if key in ("media_type", "name")} for file in row["attachments"]
        ]
    return row
