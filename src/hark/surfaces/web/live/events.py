"""The event stream of a session, with replay of the events that a client missed."""

import asyncio
import time
from collections.abc import AsyncGenerator

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from hark.protocol.events import Notice
from hark.surfaces.web.api.context import WebContext
from hark.surfaces.web.live.feed import Feed
from hark.surfaces.web.live.stream import SseResponse, encode_sse

KEEP_ALIVE_SECONDS = 15.0
RETRY_MILLISECONDS = 1000
RESYNC = "resync"
_RESYNC_TEXT = "Some events are no longer available. Read the transcript, then continue from here."


class EventsQuery(Struct, frozen=True):
    """The id of the last event that the client received, for clients that can't send Last-Event-ID."""

    last_event_id: str = ""


async def stream_events(web: WebContext, request: Request, query: EventsQuery) -> Response:
    """Stream a session's events. With Last-Event-ID, replay the events after it. A disconnect doesn't stop the turn."""
    session = web.session(request)
    feed = web.feeds.get_or_start(session)
    last_id = request.headers.get("last-event-id") or query.last_event_id
    await feed.catch_up()
    position: int | None = feed.buffer.end
    if last_id:
        position = feed.buffer.position_after(int(last_id)) if _is_event_id(last_id) else None
    return SseResponse(encode_events(session.id, feed, position, last_id))


async def encode_events(
    session: str, feed: Feed, position: int | None, last_event_id: str, keep_alive_seconds: float = KEEP_ALIVE_SECONDS
) -> AsyncGenerator[bytes]:
    """Yield the events starting at `position`. If it is None, start with a resync notice."""
    with feed.reading():
        yield b"retry: %d\n\n" % RETRY_MILLISECONDS
        while True:
            pieces = feed.buffer.encoded_from(position) if position is not None else None
            if pieces is None:
                position = feed.buffer.end
                yield _resync_notice(session, feed, last_event_id)
            elif pieces:
                position = feed.buffer.end
                yield b"".join(pieces)
            elif feed.is_closed:
                return
            else:
                try:
                    async with asyncio.timeout(keep_alive_seconds):
                        await feed.wait_for_event()
                except TimeoutError:
                    yield b": still here\n\n"


def _resync_notice(session: str, feed: Feed, last_event_id: str) -> bytes:
    """Return the notice for a client that missed too many events. It has the id of the feed's latest event."""
    seq = feed.buffer.last_seq or (int(last_event_id) if _is_event_id(last_event_id) else 0)
    notice = Notice(session, feed.turn, seq, time.time(), RESYNC, _RESYNC_TEXT)
    return encode_sse(notice.type, msgspec.json.encode(notice), feed.buffer.last_seq)


def _is_event_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20
