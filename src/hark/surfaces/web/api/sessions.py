"""Read-only endpoints: sessions, transcripts, search, a turn's timeline, health and status."""

import time
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, structs
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from hark.protocol.agent import GatewayState, LagStats, McpServerStatus, RouteStatus
from hark.protocol.events import QuestionAsked
from hark.protocol.messages import AssistantMessage, Message
from hark.protocol.session import RunningTurn
from hark.protocol.store import SearchHit, SessionListEntry
from hark.surfaces.web.api.context import WebContext
from hark.surfaces.web.api.errors import ApiError, json_response
from hark.surfaces.web.metrics import TEXT_FORMAT

MAX_SESSIONS = 1_000
DEFAULT_SESSIONS = 200
_MESSAGE_SCHEMA = {
    "required": ["role", "text", "turn"],
    "properties": {name: {"type": "string"} for name in ("role", "text", "turn")},
}


class SessionListFilter(Struct, frozen=True):
    """Filters for the session list: words in the name or title, and the maximum number of sessions."""

    q: Annotated[str, Meta(max_length=500, description="Words that must all occur in the text")] = ""
    limit: Annotated[int, Meta(ge=1, le=MAX_SESSIONS)] = DEFAULT_SESSIONS


class MessageQuery(SessionListFilter, frozen=True):
    """The words to search for, and the maximum number of results."""

    limit: Annotated[int, Meta(ge=1, le=DEFAULT_SESSIONS)] = 50


class SessionRow(Struct, frozen=True):
    """A session in a list. `is_open`: a turn has started but not ended. `is_waiting`: a queued message can run."""

    session: str
    title: str
    turns: int
    updated_at: float
    is_open: bool
    is_waiting: bool


class SessionList(Struct, frozen=True):
    """Sessions, most recently changed first."""

    sessions: list[SessionRow]


class SearchHits(Struct, frozen=True):
    """The messages that contain all the words, newest first."""

    hits: list[SearchHit]


class SessionTranscript(Struct, frozen=True):
    """The messages and the running turn. The transcript includes all events up to `seq`.

    `questions` are the open questions of children, which belong to no turn of this session.
    `resumable` lists the interrupted turns that `/continue` would resume, and `cut` those that a restart interrupted.
    """

    messages: list[Annotated[dict[str, Any], Meta(extra_json_schema=_MESSAGE_SCHEMA)]]
    running: RunningTurn | None
    seq: int | None
    questions: list[QuestionAsked]
    cut: list[str]
    resumable: list[str]


class HealthStatus(Struct, frozen=True):
    """Whether the server starts new turns."""

    status: GatewayState


class AgentStatus(Struct, frozen=True):
    """The state of the process, and its counters since it started."""

    status: GatewayState
    version: str
    uptime_seconds: float
    sessions: dict[str, int]
    running: list[dict[str, str]]
    turns: dict[str, int]
    messages: dict[str, int]
    interrupts: dict[str, Any]
    routes: list[RouteStatus]
    mcp: list[McpServerStatus]
    lag_ms: LagStats
    tokens: dict[str, int]
    cost_usd: dict[str, float]


async def list_sessions(web: WebContext, request: Request, query: SessionListFilter) -> SessionList:
    """List the sessions, most recently changed first."""
    return SessionList([_session_row(line) for line in await web.agent.sessions(query.q, query.limit)])


async def search_messages(web: WebContext, request: Request, query: MessageQuery) -> SearchHits:
    """Find the messages that contain all the words."""
    return SearchHits(await web.agent.search(query.q, query.limit))


async def get_transcript(web: WebContext, request: Request) -> SessionTranscript:
    """Return the messages of a session and its running turn."""
    session = web.session(request)
    feed = web.feeds.get(session.id)
    if feed is not None:
        await feed.catch_up()
    running = session.running_turn()
    questions = session.open_questions()
    if feed is not None:
        questions = list(feed.questions.values())
        running = None if feed.turn is None else RunningTurn(feed.turn, feed.reply, tuple(questions))
    seq = feed.buffer.last_seq if feed is not None else None
    history = await session.history()
    messages = list(zip(history.messages, history.turns, strict=True))
    running = drop_repeated_reply(messages, running)
    rows = [_message_row(message, turn) for message, turn in messages]
    for_children = [asked for asked in questions if asked.turn is None]
    return SessionTranscript(rows, running, seq, for_children, list(history.cut), list(history.resumable))


def drop_repeated_reply(messages: list[tuple[Message, str]], running: RunningTurn | None) -> RunningTurn | None:
    """Return the running turn without a reply that is already in `messages`.

    A reply enters the history a moment before its end is published. If its last deltas have not been published,
    the reply is removed from `messages` instead.
    """
    if running is None or not running.text:
        return running
    replies = [
        index
        for index, (item, turn) in enumerate(messages)
        if turn == running.turn and isinstance(item, AssistantMessage)
    ]
    reply = messages[replies[-1]][0] if replies else None
    if reply is None or not reply.text.startswith(running.text):
        return running
    if reply.text == running.text:
        return structs.replace(running, text="")
    if replies[-1] == len(messages) - 1:
        messages.pop()
    return running


async def get_timeline(web: WebContext, request: Request) -> dict[str, Any]:
    """Return how long each part of a turn took."""
    trace = await web.agent.timeline(request.path_params["turn"])
    if trace is None:
        raise ApiError(404, "unknown_turn", "No such turn. A turn's name looks like demo.t4.")
    return trace


async def get_health(web: WebContext, request: Request) -> Response:
    """Report the server's state: 200 if it is ready or paused, 503 if it is draining."""
    state = web.agent.state
    return json_response(HealthStatus(state), 503 if state is GatewayState.DRAINING else 200)


async def get_metrics(web: WebContext, request: Request) -> Response:
    """Return the counters in Prometheus' text format."""
    return PlainTextResponse(web.metrics.text(web.agent), media_type=TEXT_FORMAT)


async def get_status(web: WebContext, request: Request) -> AgentStatus:
    """Report the state of the process, its routes and MCP servers, and its counters."""
    agent, counters = web.agent, web.metrics
    busy = agent.running_turns()
    running = [{"session": session, "turn": turn} for session, turn in sorted(busy.turns.items())]
    return AgentStatus(
        status=agent.state,
        version=web.version,
        uptime_seconds=time.time() - counters.started_at,
        sessions={"open": busy.sessions, "running": len(busy.turns)},
        running=running[:MAX_SESSIONS],
        turns=counters.turns,
        messages=counters.messages,
        interrupts=counters.interrupt_summary(),
        routes=agent.routes(),
        mcp=agent.servers(),
        lag_ms=agent.lag_stats(),
        tokens=counters.tokens,
        cost_usd={"since_start": counters.cost_usd, "today": await agent.cost_today()},
    )


def _session_row(entry: SessionListEntry) -> SessionRow:
    summary = entry.summary
    return SessionRow(
        entry.session, summary.title, summary.turns, summary.updated_at, summary.is_open, summary.is_waiting
    )


def _message_row(message: Message, turn: str) -> dict[str, Any]:
    """Return a message as JSON, with the media types and names of its files instead of their contents."""
    row: dict[str, Any] = {"text": "", **msgspec.to_builtins(message), "turn": turn}
    row.pop("reasoning", None)
    if "attachments" in row:
        row["attachments"] = [
            {key: value for key, value in file.items() if key in ("media_type", "name")} for file in row["attachments"]
        ]
    return row
